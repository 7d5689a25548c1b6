/* SPDX-License-Identifier: Apache-2.0
 *
 * The board as a whole: making and resetting it, device memory, time, and INTR. Every way in ends in board_settle.
 */
#include "board/state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Everything that time changes. The first one goes on in S3, where the rest has no power. */
static const struct {
  void (*advance)(struct board *board, uint64_t now);
  uint64_t (*deadline)(const struct board *board);
} clocks[] = {
  {rtc_advance, rtc_deadline},
  {pit_advance, pit_deadline},
  {i8042_advance, i8042_deadline},
  {uart_advance, uart_deadline},
  {ide_advance, ide_deadline},
  {hpet_advance, hpet_deadline},
  {lapic_timer_advance, lapic_timer_deadline},
  {power_advance, power_deadline},
};

#define CLOCKS (sizeof(clocks) / sizeof(clocks[0]))
#define CLOCKS_ASLEEP 1u
#define PAGE_OF(address) ((address) >> 12)

/* ---- settling ---- */

static bool board_wants_intr(struct board *board, const struct lapic *lapic)
{
  return lapic_request(board, lapic) >= 0 || (pic_output(&board->pic) && lapic_passes_extint(board, lapic));
}

static uint64_t board_earliest(const struct board *board)
{
  uint64_t deadline = CLOCK_NEVER;
  if (board_is_asleep(board)) /* no processor hears of anything else */
    return power_deadline(board);
  for (unsigned i = 0; i < CLOCKS; i++)
    deadline = clock_earlier(deadline, clocks[i].deadline(board));
  return deadline;
}

void board_settle_intr(struct board *board)
{
  for (unsigned i = 0; i < board->config.cpus; i++) {
    bool intr = board_wants_intr(board, &board->lapics[i]);
    if (intr == (board->intr >> i & 1))
      continue;
    board->intr ^= (uint8_t)(1u << i);
    board->host.intr(board->host.data, i, intr);
  }
}

void board_settle(struct board *board)
{
  uint64_t before = board->deadline;
  lapic_set_pic(board);
  board->is_touched = false;
  board->deadline = board_earliest(board);
  board_settle_intr(board);
  if (board->deadline != before && !board->is_advancing)
    board->host.replan(board->host.data);
}

uint8_t board_acknowledge(struct board *board)
{
  struct lapic *lapic = board->asking;
  int vector = lapic_request(board, lapic);
  uint8_t taken;
  if (vector >= 0)
    taken = lapic_take(lapic, (uint8_t)vector);
  else if (lapic_passes_extint(board, lapic))
    taken = pic_acknowledge(&board->pic);
  else
    taken = (uint8_t)lapic->svr; /* the request has gone: the spurious vector */
  lapic_set_pic(board);
  board_settle_intr(board);
  return taken;
}

void board_select(struct board *board, unsigned cpu)
{
  board->asking = &board->lapics[cpu < board->config.cpus ? cpu : 0];
}

/* ---- time ---- */

static void board_advance_clocks(struct board *board, uint64_t now)
{
  unsigned count = board_is_asleep(board) ? CLOCKS_ASLEEP : CLOCKS;
  for (unsigned i = 0; i < count; i++)
    clocks[i].advance(board, now);
}

void board_catch_up(struct board *board)
{
  board_advance_clocks(board, board_now(board));
}

uint64_t board_deadline(const struct board *board)
{
  return board->deadline;
}

void board_advance(struct board *board, uint64_t now)
{
  assert(!board->is_advancing); /* the board calls nobody who tells it the time */
  board->is_advancing = true;
  board_advance_clocks(board, now);
  board_settle(board);
  board->is_advancing = false;
}

/* Deadlines are those of interrupts that nobody masks: there are no others. */
bool board_can_wake(const struct board *board)
{
  return board->deadline != CLOCK_NEVER;
}

/* ---- device memory ---- */

bool board_owns(const struct board *board, uint64_t address)
{
  uint64_t page = PAGE_OF(address);
  if (page == PAGE_OF(HPET_BASE) || testdevice_owns(board, address))
    return true;
  return board->config.has_apic && (page == PAGE_OF(IOAPIC_BASE) || lapic_owns(board, board->asking, address));
}

uint64_t board_read(struct board *board, uint64_t address, unsigned size)
{
  uint64_t value = UINT64_MAX;
  if (!board_owns(board, address))
    return value >> (64 - 8 * size);
  if (lapic_owns(board, board->asking, address))
    value = lapic_read_memory(board, board->asking, address, size);
  else if (PAGE_OF(address) == PAGE_OF(IOAPIC_BASE))
    value = ioapic_read_memory(board, address, size);
  else if (testdevice_owns(board, address))
    value = testdevice_read_memory(board, address, size);
  else
    value = hpet_read_memory(board, address, size);
  if (board->is_touched)
    board_settle(board);
  return value & UINT64_MAX >> (64 - 8 * size);
}

void board_write(struct board *board, uint64_t address, unsigned size, uint64_t value)
{
  if (!board_owns(board, address))
    return;
  board_catch_up(board);
  if (lapic_owns(board, board->asking, address))
    lapic_write_memory(board, board->asking, address, size, value);
  else if (PAGE_OF(address) == PAGE_OF(IOAPIC_BASE))
    ioapic_write_memory(board, address, size, value);
  else if (testdevice_owns(board, address))
    testdevice_write_memory(board, address, size, value);
  else
    hpet_write_memory(board, address, size, value);
  board_settle(board);
}

/* ---- making ---- */

static void board_reset_devices(struct board *board)
{
  board->asking = board->lapics; /* the firmware runs on the bootstrap processor, whoever asked for the reset */
  board->a20_is_open = true;     /* as firmware leaves it */
  board->lines = 0;
  pic_reset(&board->pic);
  ioapic_reset(board);
  for (unsigned i = 0; i < board->config.cpus; i++)
    lapic_reset(board, &board->lapics[i], true);
  hpet_reset(board);
  pit_reset(board);
  rtc_reset(board);
  i8042_reset(board);
  uart_reset(board);
  vga_reset(board);
  pci_reset(board);
  ide_reset(board);
  power_reset(board);
  board->fwcfg = (struct fwcfg){0};
  board->testdevice.latch = 0;
}

int board_new(const struct board_config *config, const struct board_host *host, struct board **ret_board)
{
  struct board *board = calloc(1, sizeof(*board));
  if (!board)
    return -ENOMEM;
  board->config = *config;
  board->host = *host;
  if (board->config.cpus == 0 || board->config.cpus > BOARD_CPUS)
    board->config.cpus = 1;
  if (board->config.tsc_per_second == 0 || board->config.tsc_per_second > CLOCK_HERTZ_MAX)
    board->config.tsc_per_second = CLOCK_SECOND;
  if (testdevice_init(board) < 0) {
    free(board);
    return -ENOMEM;
  }
  port_map(board);
  rtc_power_on(board);
  board_reset_devices(board);
  board->deadline = board_earliest(board);
  *ret_board = board;
  return 0;
}

void board_free(struct board *board)
{
  if (!board)
    return;
  testdevice_done(board);
  free(board);
}

void board_reset(struct board *board)
{
  bool was_open = board->a20_is_open;
  board_reset_devices(board);
  if (!was_open)
    board->host.a20(board->host.data, true);
  board_settle(board);
}
