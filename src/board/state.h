/* SPDX-License-Identifier: Apache-2.0
 *
 * The inside of the board: all devices, and the wires between them. Devices change lines, masks and timers only inside
 * the functions of board.h, and these end in board_settle, which tells the host what has changed.
 */
#ifndef BOARD_STATE_H
#define BOARD_STATE_H

#include <string.h>

#include "board/board.h"
#include "board/clock.h"
#include "board/device.h"
#include "board/hpet.h"
#include "board/ide.h"
#include "board/ioapic.h"
#include "board/keyboard.h"
#include "board/lapic.h"
#include "board/pic.h"
#include "board/pit.h"
#include "board/power.h"
#include "board/rtc.h"

#define PORT_RANGES 64u

struct board {
  struct board_config config;
  struct board_host host;
  bool is_touched; /* lines or deadlines may have changed since board_settle */
  bool is_advancing;
  uint8_t intr;      /* INTR as last reported to the host: a bit for each processor */
  uint64_t deadline; /* as the host knows it */
  uint32_t lines;    /* interrupt lines that are high */
  bool a20_is_open;
  struct pic pic;
  struct rtc rtc;
  struct i8042 i8042;
  struct lapic lapics[BOARD_CPUS];
  struct lapic *asking; /* local APIC of the calling processor: board_select */
  struct ioapic ioapic;
  struct ide ide;
  struct power power;
  void *state[DEVICE_COUNT]; /* private state of each device; NULL: it has none */
  const struct port_range *ranges[PORT_RANGES];
  uint8_t port_owner[PORT_COUNT]; /* number in `ranges` + 1, 0: no device */
};

static inline uint64_t board_now(const struct board *board)
{
  return board->host.now(board->host.data);
}

static inline void *device_state(const struct board *board, enum device_number number)
{
  return board->state[number];
}

static inline unsigned lapic_number(const struct board *board, const struct lapic *lapic)
{
  return (unsigned)(lapic - board->lapics);
}

/* ---- board.c ---- */

/* Advances the timers of all devices to now, so that lines are right before masks are read or changed. */
void board_catch_up(struct board *board);
/* Recomputes INTR and the deadline after a change, and tells the host. */
void board_settle(struct board *board);
/* Recomputes INTR alone, after a change of priorities: no deadline depends on them. */
void board_settle_intr(struct board *board);
void board_set_a20(struct board *board, bool is_open);

/* ---- line.c: the interrupt lines of the ISA bus ---- */

/* IRQ `irq` goes to the 8259A and to the I/O APIC: 0 to inputs 0 and 2, all others to the input of their number. */
void line_set(struct board *board, unsigned irq, bool is_high);
/* Could this IRQ reach a processor with the current masks? */
bool line_reaches(const struct board *board, unsigned irq);

#endif
