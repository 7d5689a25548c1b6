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

struct pit_channel {
  uint8_t mode;   /* 0 to 5 */
  uint8_t access; /* 1 low byte, 2 high byte, 3 both in turn */
  bool is_bcd;
  bool gate;
  bool has_count;               /* a count was loaded since the control word */
  bool is_started;              /* counts, or has counted: modes 1 and 5 wait for the gate */
  bool writes_high, reads_high; /* the next access is the second of two */
  uint8_t low;                  /* the first byte written */
  uint32_t count;               /* what it counts from: 1 to 65536 */
  uint32_t next_count;          /* takes over when next_start comes, 0 for none */
  uint64_t next_start;
  uint64_t start;  /* tick at which counting began */
  bool is_paused;  /* the gate is low, in the modes that it stops */
  uint64_t paused; /* ticks counted by then */
  uint8_t latched; /* bytes of the latched count still to be read */
  uint16_t latch;
  bool has_status;
  uint8_t status;
};

struct pit {
  struct pit_channel channel[3];
  uint64_t seen; /* tick up to which edges of OUT0 have been reported */
};

void pit_reset(struct board *board);
void pit_advance(struct board *board, uint64_t now);
uint64_t pit_deadline(const struct board *board);
/* GATE and OUT of channel 2, for port 0x61. */
void pit_set_gate(struct board *board, bool is_high);
bool pit_speaker(const struct board *board);

uint32_t pit_in(struct board *board, uint16_t port, unsigned size);
void pit_out(struct board *board, uint16_t port, unsigned size, uint32_t value);

#endif
