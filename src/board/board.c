/* SPDX-License-Identifier: Apache-2.0
 *
 * The board as a whole: making and resetting it, device memory, time, and INTR. Every public function ends in
 * board_settle.
 */
#include "board/state.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

const struct device *const devices[DEVICE_COUNT] = {
#define DEVICE(name) &device_##name,
#include "board/device.def"
#undef DEVICE
};

/* ---- settling ---- */

static bool board_wants_intr(struct board *board, const struct lapic *lapic)
{
  return lapic_request(board, lapic) >= 0 || (pic_output(&board->pic) && lapic_passes_extint(board, lapic));
}

static uint64_t board_earliest(const struct board *board)
{
  uint64_t deadline = CLOCK_NEVER;

  if (board_is_asleep(board)) /* nothing else can wake the machine */
    return power_deadline(board);
  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    if (devices[i]->deadline)
      deadline = clock_earlier(deadline, devices[i]->deadline(board));
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

static void board_advance_devices(struct board *board, uint64_t now)
{
  bool is_asleep = board_is_asleep(board);

  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    if (devices[i]->advance && (!is_asleep || devices[i]->runs_asleep))
      devices[i]->advance(board, now);
}

void board_catch_up(struct board *board)
{
  board_advance_devices(board, board_now(board));
}

uint64_t board_deadline(const struct board *board)
{
  return board->deadline;
}

void board_advance(struct board *board, uint64_t now)
{
  assert(!board->is_advancing); /* no callback of the board may advance it */
  board->is_advancing = true;
  board_advance_devices(board, now);
  board_settle(board);
  board->is_advancing = false;
}

/* Only interrupts that are not masked have a deadline. */
bool board_can_wake(const struct board *board)
{
  return board->deadline != CLOCK_NEVER;
}

/* ---- device memory ---- */

/* The device whose memory this is; NULL: none. The processor's own local APIC comes before all of them. */
static const struct device *memory_find(const struct board *board, uint64_t address)
{
  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    if (devices[i]->owns && devices[i]->owns(board, address))
      return devices[i];
  return NULL;
}

static bool is_local_apic(const struct board *board, uint64_t address)
{
  return board->config.has_apic && lapic_owns(board, board->asking, address);
}

bool board_owns(const struct board *board, uint64_t address)
{
  return is_local_apic(board, address) || memory_find(board, address);
}

uint64_t board_read(struct board *board, uint64_t address, unsigned size)
{
  bool is_local = is_local_apic(board, address);
  const struct device *device = is_local ? NULL : memory_find(board, address);
  uint64_t mask = UINT64_MAX >> (64 - 8 * size);

  if (!is_local && !device)
    return mask;
  uint64_t value =
    is_local ? lapic_read_memory(board, board->asking, address, size) : device->read(board, address, size);
  if (board->is_touched)
    board_settle(board);
  return value & mask;
}

void board_write(struct board *board, uint64_t address, unsigned size, uint64_t value)
{
  bool is_local = is_local_apic(board, address);
  const struct device *device = is_local ? NULL : memory_find(board, address);

  if (!is_local && !device)
    return;
  board_catch_up(board);
  if (is_local)
    lapic_write_memory(board, board->asking, address, size, value);
  else
    device->write(board, address, size, value);
  board_settle(board);
}

/* ---- making ---- */

static void board_reset_devices(struct board *board)
{
  board->asking = board->lapics; /* the firmware runs on the bootstrap processor */
  board->a20_is_open = true;     /* as firmware leaves it */
  board->lines = 0;
  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    if (devices[i]->reset)
      devices[i]->reset(board);
}

/* Returns 0 or -ENOMEM. */
static int board_power_on(struct board *board)
{
  for (unsigned i = 0; i < DEVICE_COUNT; i++) {
    size_t size = devices[i]->state_size;

    if (size && !(board->state[i] = calloc(1, size)))
      return -ENOMEM;
  }
  port_map(board);
  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    if (devices[i]->power_on)
      devices[i]->power_on(board);
  return 0;
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
  if (board_power_on(board) < 0) {
    board_free(board);
    return -ENOMEM;
  }
  board_reset_devices(board);
  board->deadline = board_earliest(board);
  *ret_board = board;
  return 0;
}

void board_free(struct board *board)
{
  if (!board)
    return;
  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    free(board->state[i]);
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
