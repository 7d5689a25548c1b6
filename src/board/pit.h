/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8254 interval timer. pit.c.
 */
#ifndef BOARD_PIT_H
#define BOARD_PIT_H

#include <stdbool.h>
#include <stdint.h>

#define PIT_HERTZ UINT64_C(1193182)

struct board;

/* GATE and OUT of channel 2, for port 0x61. */
void pit_set_gate(struct board *board, bool is_high);
bool pit_speaker(const struct board *board);

#endif
