/* SPDX-License-Identifier: Apache-2.0
 *
 * What kernels that test a processor want from a board and no PC has: memory that is reached as a device's (0xFF000000,
 * 64 KiB), a double word that can be written and read back at ports 0xE0 to 0xE3, and interrupt lines that software
 * drives: OUT to port 0x2000 + n sets line n high or low. Places are those of QEMU's pc-testdev, which kvm-unit-tests
 * was written for. Only there when the board's configuration asks for it.
 */
#include <errno.h>
#include <stdlib.h>

#include "board/state.h"

#define PORT_LATCH 0xE0u
#define ISA_LINES 16u

int testdevice_init(struct board *board)
{
  if (!board->config.has_test_device)
    return 0;
  board->testdevice.memory = calloc(1, TESTDEVICE_SIZE);
  return board->testdevice.memory ? 0 : -ENOMEM;
}

void testdevice_done(struct board *board)
{
  free(board->testdevice.memory);
}

/* ---- memory ---- */

bool testdevice_owns(const struct board *board, uint64_t address)
{
  return board->testdevice.memory && address >= TESTDEVICE_BASE && address - TESTDEVICE_BASE < TESTDEVICE_SIZE;
}

uint64_t testdevice_read_memory(const struct board *board, uint64_t address, unsigned size)
{
  uint64_t offset = address - TESTDEVICE_BASE, value = 0;
  for (unsigned i = 0; i < size && offset + i < TESTDEVICE_SIZE; i++)
    value |= (uint64_t)board->testdevice.memory[offset + i] << 8 * i;
  return value;
}

void testdevice_write_memory(struct board *board, uint64_t address, unsigned size, uint64_t value)
{
  uint64_t offset = address - TESTDEVICE_BASE;
  for (unsigned i = 0; i < size && offset + i < TESTDEVICE_SIZE; i++)
    board->testdevice.memory[offset + i] = (uint8_t)(value >> 8 * i);
}

/* ---- ports: asked byte by byte ---- */

uint32_t testdevice_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  if (!board->testdevice.memory || port >= TESTDEVICE_LINES)
    return 0xFF;
  return board->testdevice.latch >> 8 * (port - PORT_LATCH) & 0xFF;
}

static void drive_line(struct board *board, unsigned number, bool is_high)
{
  board_catch_up(board);
  if (number < ISA_LINES)
    line_set(board, number, is_high);
  else
    ioapic_set(board, number, is_high);
  board->is_touched = true;
}

void testdevice_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  (void)size;
  if (!board->testdevice.memory)
    return;
  if (port >= TESTDEVICE_LINES) {
    drive_line(board, port - TESTDEVICE_LINES, value & 0xFF);
    return;
  }
  unsigned shift = 8 * (port - PORT_LATCH);
  board->testdevice.latch = (board->testdevice.latch & ~(UINT32_C(0xFF) << shift)) | (value & 0xFF) << shift;
}
