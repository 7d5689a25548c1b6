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

struct hpet_timer {
  uint64_t config; /* the bits that software may write */
  uint64_t comparator;
  uint64_t period; /* last value written in periodic mode */
};

struct hpet {
  uint64_t config, status;
  uint64_t counter; /* at `since` */
  uint64_t since;   /* ticks */
  struct hpet_timer timer[HPET_TIMERS];
};

void hpet_reset(struct board *board);
void hpet_advance(struct board *board, uint64_t now);
uint64_t hpet_deadline(const struct board *board);
/* Have timers 0 and 1 replaced the 8254 and the RTC at IRQ 0 and 8? */
bool hpet_replaces_legacy(const struct board *board);
uint64_t hpet_read_memory(struct board *board, uint64_t address, unsigned size);
void hpet_write_memory(struct board *board, uint64_t address, unsigned size, uint64_t value);

#endif
