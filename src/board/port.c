/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the device at a port. Each device's descriptor lists its ports; port_map spreads them over a table with one
 * byte per port.
 */
#include <assert.h>

#include "board/state.h"

static void range_map(struct board *board, const struct port_range *range, unsigned number)
{
  for (unsigned port = range->first; port <= range->last; port++) {
    assert(port < PORT_COUNT && !board->port_owner[port]); /* no two devices have one port */
    board->port_owner[port] = (uint8_t)(number + 1);
  }
}

void port_map(struct board *board)
{
  unsigned count = 0;

  for (unsigned i = 0; i < DEVICE_COUNT; i++)
    for (const struct port_range *range = devices[i]->ports; range && range->in; range++) {
      assert(count < PORT_RANGES);
      board->ranges[count] = range;
      range_map(board, range, count++);
    }
}

static const struct port_range *port_find(const struct board *board, uint16_t port)
{
  unsigned owner = port < PORT_COUNT ? board->port_owner[port] : 0;

  return owner ? board->ranges[owner - 1] : NULL;
}

/* Reads byte by byte: each byte may belong to another device. */
static uint32_t port_in_bytes(struct board *board, uint16_t port, unsigned size)
{
  uint32_t value = 0;

  for (unsigned i = 0; i < size; i++) {
    uint16_t place = (uint16_t)(port + i);
    const struct port_range *range = port_find(board, place);

    value |= (range ? range->in(board, place, 1) & 0xFF : 0xFF) << 8 * i;
  }
  return value;
}

uint32_t board_in(struct board *board, uint16_t port, unsigned size)
{
  const struct port_range *range = port_find(board, port);
  bool is_whole = range && ((range->flags & PORT_WIDE) || size == 1);
  uint32_t value = is_whole ? range->in(board, port, size) : port_in_bytes(board, port, size);

  if (board->is_touched)
    board_settle(board);
  return (uint32_t)(value & ((UINT64_C(1) << 8 * size) - 1));
}

static bool port_out_bytes(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  bool is_quiet = true;

  for (unsigned i = 0; i < size; i++) {
    uint16_t place = (uint16_t)(port + i);
    const struct port_range *range = port_find(board, place);

    if (range)
      range->out(board, place, 1, value >> 8 * i & 0xFF);
    is_quiet = is_quiet && (!range || (range->flags & PORT_QUIET));
  }
  return is_quiet;
}

void board_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  const struct port_range *range = port_find(board, port);
  bool is_quiet;

  if (range && ((range->flags & PORT_WIDE) || size == 1)) {
    range->out(board, port, size, value);
    is_quiet = range->flags & PORT_QUIET;
  } else
    is_quiet = port_out_bytes(board, port, size, value);
  if (!is_quiet || board->is_touched)
    board_settle(board);
}
