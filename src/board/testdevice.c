/* SPDX-License-Identifier: Apache-2.0
 *
 * A device for kernels that test a processor, which no PC has: memory that is accessed as device memory (0xFF000000, 64
 * KiB), a double word that can be written and read back at ports 0xE0 to 0xE3, and interrupt lines that software
 * drives: OUT to port 0x2000 + n sets line n high or low. Addresses and ports are those of QEMU's pc-testdev, which
 * kvm-unit-tests was written for. The device exists only if the board's configuration asks for it.
 */
#include "base/base.h"
#include "board/state.h"

#define PORT_LATCH 0xE0u
#define ISA_LINES 16u

#define TESTDEVICE_BASE UINT64_C(0xFF000000)
#define TESTDEVICE_SIZE UINT64_C(0x10000)
#define TESTDEVICE_LINES 0x2000u

struct testdevice {
  uint32_t latch;
  uint8_t memory[TESTDEVICE_SIZE];
};

static struct testdevice *testdevice_of(const struct board *board)
{
  return device_state(board, DEVICE_NUMBER_testdevice);
}

/* ---- memory ---- */

static bool testdevice_owns(const struct board *board, uint64_t address)
{
  return board->config.has_test_device && address >= TESTDEVICE_BASE && address - TESTDEVICE_BASE < TESTDEVICE_SIZE;
}

static uint64_t testdevice_read_memory(struct board *board, uint64_t address, unsigned size)
{
  uint64_t offset = address - TESTDEVICE_BASE, value = 0;

  for (unsigned i = 0; i < size && offset + i < TESTDEVICE_SIZE; i++)
    value |= (uint64_t)testdevice_of(board)->memory[offset + i] << 8 * i;
  return value;
}

static void testdevice_write_memory(struct board *board, uint64_t address, unsigned size, uint64_t value)
{
  uint64_t offset = address - TESTDEVICE_BASE;

  for (unsigned i = 0; i < size && offset + i < TESTDEVICE_SIZE; i++)
    testdevice_of(board)->memory[offset + i] = (uint8_t)(value >> 8 * i);
}

/* ---- ports: asked byte by byte ---- */

static uint32_t testdevice_in(struct board *board, uint16_t port, unsigned size)
{
  (void)size;
  if (!board->config.has_test_device || port >= TESTDEVICE_LINES)
    return 0xFF;
  return testdevice_of(board)->latch >> 8 * (port - PORT_LATCH) & 0xFF;
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

static void testdevice_out(struct board *board, uint16_t port, unsigned size, uint32_t value)
{
  (void)size;
  if (!board->config.has_test_device)
    return;
  if (port >= TESTDEVICE_LINES) {
    drive_line(board, port - TESTDEVICE_LINES, value & 0xFF);
    return;
  }
  unsigned shift = 8 * (port - PORT_LATCH);
  testdevice_of(board)->latch = (testdevice_of(board)->latch & ~(UINT32_C(0xFF) << shift)) | (value & 0xFF) << shift;
}

static void testdevice_reset(struct board *board)
{
  testdevice_of(board)->latch = 0;
}

/* ---- saving ---- */

static void testdevice_archive(struct archive *archive, struct board *board)
{
  struct testdevice *testdevice = testdevice_of(board);

  archive_value(archive, &testdevice->latch);
  if (board->config.has_test_device)
    archive_bytes(archive, testdevice->memory, TESTDEVICE_SIZE);
}

static const struct port_range testdevice_ports[] = {
  {0x0E0, 0x0E3, 0, testdevice_in, testdevice_out},
  {0x2000, 0x2017, 0, testdevice_in, testdevice_out},
  {0},
};

const struct device device_testdevice = {
  DEVICE_STATE(testdevice),      .ports = testdevice_ports,      .reset = testdevice_reset,
  .owns = testdevice_owns,       .read = testdevice_read_memory, .write = testdevice_write_memory,
  .archive = testdevice_archive,
};
