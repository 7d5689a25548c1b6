/* SPDX-License-Identifier: Apache-2.0
 *
 * Devices that only virtual machines have: fw_cfg and the test device. Expected values follow from QEMU's
 * fw_cfg and pc-testdev.
 */
#include "board_rig.h"

static uint64_t fwcfg_item(struct rig *rig, uint16_t item, unsigned bytes)
{
  uint64_t value = 0;

  board_out(rig->board, 0x510, 2, item);
  for (unsigned i = 0; i < bytes; i++)
    value |= (uint64_t)in(rig, 0x511) << 8 * i;
  return value;
}

/* QEMU's docs/specs/fw_cfg. */
static void fwcfg_tells_of_the_machine(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(fwcfg_item(rig, 0, 4), 0x554D4551); /* "QEMU" */
  assert_int_equal(in(rig, 0x511), 0);                 /* behind the end */
  assert_int_equal(fwcfg_item(rig, 1, 4), 1);          /* no DMA */
  assert_int_equal(fwcfg_item(rig, 3, 8), rig->config.ram);
  assert_int_equal(fwcfg_item(rig, 5, 2), 1);
  assert_int_equal(fwcfg_item(rig, 0xF, 2), 1);
  assert_int_equal(fwcfg_item(rig, 0x19, 4), 0); /* no files */
  assert_int_equal(fwcfg_item(rig, 0x4005, 8), 0);
  out(rig, 0x510, 5); /* a byte selects nothing */
  assert_int_equal(in(rig, 0x511), 0);
  assert_int_equal(fwcfg_item(rig, 5, 1), 1);
  board_reset(rig->board);
  assert_int_equal(in(rig, 0x511), 'Q');
}

static void test_device_is_not_there_unasked(void **state)
{
  struct rig *rig = *state;

  assert_false(board_owns(rig->board, 0xFF000000));
  board_out(rig->board, 0xE0, 4, 0x12345678);
  assert_int_equal(board_in(rig->board, 0xE0, 4), UINT32_MAX);
  out(rig, 0x200E, 1);
  assert_int_equal(in(rig, 0x200E), 0xFF);
  assert_false(rig->intr);
}

static void test_device_keeps_and_drives(void **state)
{
  struct rig *rig = *state;

  board_free(rig->board);
  rig->config.has_test_device = true;
  assert_int_equal(rig_start(rig), 0);
  assert_true(board_owns(rig->board, 0xFF00FFFF));
  assert_false(board_owns(rig->board, 0xFF010000));
  board_write(rig->board, 0xFF000010, 8, UINT64_C(0x1122334455667788));
  assert_int_equal(board_read(rig->board, 0xFF000012, 2), 0x5566);
  board_write(rig->board, 0xFF00FFFF, 4, 0xABCD); /* three bytes of it have no place */
  assert_int_equal(board_read(rig->board, 0xFF00FFFF, 4), 0xCD);
  board_out(rig->board, 0xE0, 4, 0x12345678);
  out(rig, 0xE2, 0xAB);
  assert_int_equal(board_in(rig->board, 0xE0, 4), 0x12AB5678);

  board_write(rig->board, LAPIC + 0xF0, 4, 0x1FF);
  for (unsigned pin = 14; pin <= 20; pin += 6) { /* edge-triggered, vector 0x40 + pin */
    board_write(rig->board, IOAPIC, 4, 0x10 + 2 * pin);
    board_write(rig->board, IOAPIC + 0x10, 4, 0x40 + pin);
    out(rig, (uint16_t)(0x2000 + pin), 1);
    assert_true(rig->intr);
    assert_int_equal(board_acknowledge(rig->board), 0x40 + pin);
    board_write(rig->board, LAPIC + 0xB0, 4, 0);
    assert_false(rig->intr);
    out(rig, (uint16_t)(0x2000 + pin), 0);
  }
}

PART(TEST(fwcfg_tells_of_the_machine), TEST(test_device_is_not_there_unasked), TEST(test_device_keeps_and_drives));
