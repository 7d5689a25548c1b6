/* SPDX-License-Identifier: Apache-2.0
 *
 * The high precision event timer at 0xFED00000. hpet.c.
 */
#ifndef BOARD_HPET_H
#define BOARD_HPET_H

#include <stdbool.h>
#include <stdint.h>

#define HPET_BASE UINT64_C(0xFED00000)
#define HPET_HERTZ UINT64_C(100000000)
#define HPET_TIMERS 3u
/* 10 ns in femtoseconds, Intel, legacy routes, 64 bits, the last timer's number, revision 1. */
#define HPET_CAPABILITIES (UINT64_C(10000000) << 32 | UINT64_C(0x8086) << 16 | 0xA000 | (HPET_TIMERS - 1) << 8 | 0x01)

struct board;

/* Have timers 0 and 1 replaced the 8254 and the RTC at IRQ 0 and 8? */
bool hpet_replaces_legacy(const struct board *board);

#endif
