/* SPDX-License-Identifier: Apache-2.0
 *
 * The disk. Expected values follow from the ATA specification.
 */
#include "board_rig.h"

static void ide_address(struct rig *rig, uint32_t lba, uint8_t count)
{
  out(rig, 0x1F2, count);
  out(rig, 0x1F3, (uint8_t)lba);
  out(rig, 0x1F4, (uint8_t)(lba >> 8));
  out(rig, 0x1F5, (uint8_t)(lba >> 16));
  out(rig, 0x1F6, (uint8_t)(0xE0 | (lba >> 24 & 15)));
}

static uint8_t ide_wait(struct rig *rig)
{
  unsigned i = 0;

  for (; (in(rig, 0x3F6) & 0x80) && i < 1000; i++)
    rig->now += 100;
  assert_true(i < 1000);
  return in(rig, 0x3F6);
}

static void ide_read_sector(struct rig *rig, uint8_t *bytes)
{
  assert_int_equal(ide_wait(rig), 0x58);
  for (unsigned i = 0; i < 512; i += 2) {
    uint32_t word = board_in(rig->board, 0x1F0, 2);

    bytes[i] = (uint8_t)word;
    bytes[i + 1] = (uint8_t)(word >> 8);
  }
}

static void ide_identifies(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];

  out(rig, 0x1F6, 0xA0);
  out(rig, 0x1F7, 0xEC);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[2] | bytes[3] << 8, 32);
  assert_int_equal(bytes[6] | bytes[7] << 8, 4);
  assert_int_equal(bytes[12] | bytes[13] << 8, 16);
  assert_int_equal(bytes[120] | bytes[121] << 8, DISK_SECTORS);
  assert_int_equal(bytes[200] | bytes[201] << 8, DISK_SECTORS);
  assert_memory_equal(bytes + 54, "ALTSRBNAHCD SI K", 16);
  assert_int_equal(in(rig, 0x1F7), 0x50);
}

static void ide_reads_with_interrupts(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];

  wire(rig);
  pic_program(rig, 0xFB, 0xBF);
  ide_address(rig, 5, 2);
  out(rig, 0x1F7, 0x20);
  assert_false(rig->intr);
  assert_true(board_can_wake(rig->board));
  for (unsigned i = 0; i < 2; i++) {
    pass(rig, 10 * US);
    assert_int_equal(acknowledge(rig), 0x76);
    assert_int_equal(in(rig, 0x1F7), 0x58); /* which takes the interrupt back */
    eoi(rig, 0x76);
    ide_read_sector(rig, bytes);
    assert_int_equal(bytes[0], 5 + i);
    assert_int_equal(bytes[511], 5 + i);
  }
  pass(rig, MS);
  assert_false(rig->intr);
  out(rig, 0x3F6, 2); /* nIEN */
  ide_address(rig, 5, 1);
  out(rig, 0x1F7, 0x20);
  pass(rig, MS);
  assert_false(rig->intr);
}

static void ide_reads_chs_and_lba48(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];

  out(rig, 0x1F2, 1);
  out(rig, 0x1F3, 3); /* cylinder 1, head 2, sector 3 */
  out(rig, 0x1F4, 1);
  out(rig, 0x1F5, 0);
  out(rig, 0x1F6, 0xA2);
  out(rig, 0x1F7, 0x20);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[0], (1 * 4 + 2) * 16 + 2);
  out(rig, 0x1F6, 0xE0);
  for (unsigned i = 0; i < 2; i++) { /* upper bytes first */
    out(rig, 0x1F2, (uint8_t)i);
    out(rig, 0x1F3, i ? 0x07 : 0);
    out(rig, 0x1F4, i ? 0x01 : 0);
    out(rig, 0x1F5, 0);
  }
  out(rig, 0x1F7, 0x24);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[0], 0x07);
}

static void ide_multiple(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];

  ide_address(rig, 10, 6);
  out(rig, 0x1F7, 0xC4);
  assert_int_equal(ide_wait(rig), 0x51); /* not set up */
  out(rig, 0x1F2, 3);
  out(rig, 0x1F7, 0xC6);
  assert_int_equal(in(rig, 0x1F1), 0x04);
  out(rig, 0x1F2, 4);
  out(rig, 0x1F7, 0xC6);
  assert_int_equal(in(rig, 0x1F7), 0x50);
  ide_address(rig, 10, 6);
  out(rig, 0x1F7, 0xC4);
  for (unsigned i = 0; i < 6; i++) {
    if (i != 0 && i != 4)
      assert_int_equal(in(rig, 0x3F6), 0x58); /* no wait within a block */
    ide_read_sector(rig, bytes);
    assert_int_equal(bytes[0], 10 + i);
  }
  assert_int_equal(in(rig, 0x1F7), 0x50);
}

static void ide_writes_to_memory(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xBF);
  ide_address(rig, 100, 2);
  out(rig, 0x1F7, 0x30);
  for (unsigned i = 0; i < 2; i++) {
    assert_int_equal(ide_wait(rig), 0x58);
    assert_false(rig->intr);
    for (unsigned k = 0; k < 128; k++)
      board_out(rig->board, 0x1F0, 4, 0x04030201 + i);
    pass(rig, 10 * US);
    assert_int_equal(acknowledge(rig), 0x76);
    in(rig, 0x1F7);
    eoi(rig, 0x76);
  }
  assert_int_equal(in(rig, 0x1F7), 0x50);
  assert_memory_equal(rig->disk + 100 * 512, "\x01\x02\x03\x04", 4);
  assert_memory_equal(rig->disk + 102 * 512 - 4, "\x02\x02\x03\x04", 4);
  assert_int_equal(rig->disk[102 * 512], 102);
}

static void ide_beyond_the_end(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];

  ide_address(rig, DISK_SECTORS - 1, 2);
  out(rig, 0x1F7, 0x21);
  ide_read_sector(rig, bytes);
  assert_int_equal(ide_wait(rig), 0x51);
  assert_int_equal(in(rig, 0x1F1), 0x10);
  assert_int_equal(in(rig, 0x1F4), DISK_SECTORS >> 8); /* where it happened */
  ide_address(rig, DISK_SECTORS, 1);
  out(rig, 0x1F7, 0x40);
  assert_int_equal(ide_wait(rig), 0x51);
  ide_address(rig, 0, 0);
  out(rig, 0x1F7, 0x40);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F7, 0xC8); /* DMA */
  assert_int_equal(ide_wait(rig), 0x51);
  assert_int_equal(in(rig, 0x1F1), 0x04);
}

static void ide_other_commands(void **state)
{
  struct rig *rig = *state;
  uint8_t bytes[512];

  out(rig, 0x1F6, 0xA1); /* two heads */
  out(rig, 0x1F2, 8);
  out(rig, 0x1F7, 0x91);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F2, 1);
  out(rig, 0x1F3, 3);
  out(rig, 0x1F4, 1);
  out(rig, 0x1F5, 0);
  out(rig, 0x1F7, 0x20);
  ide_read_sector(rig, bytes);
  assert_int_equal(bytes[0], (1 * 2 + 1) * 8 + 2);
  out(rig, 0x1F3, 0); /* sectors count from 1 */
  out(rig, 0x1F7, 0x20);
  assert_int_equal(ide_wait(rig), 0x51);
  out(rig, 0x1F1, 0x03);
  out(rig, 0x1F2, 0x0C); /* PIO 4 */
  out(rig, 0x1F7, 0xEF);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F2, 0x22); /* DMA */
  out(rig, 0x1F7, 0xEF);
  assert_int_equal(ide_wait(rig), 0x51);
  out(rig, 0x1F7, 0xE5);
  assert_int_equal(in(rig, 0x1F2), 0xFF);
  out(rig, 0x1F7, 0xE7);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F7, 0x10);
  assert_int_equal(ide_wait(rig), 0x50);
  out(rig, 0x1F7, 0xF8);
  assert_int_equal(in(rig, 0x1F3) | in(rig, 0x1F4) << 8, DISK_SECTORS - 1);
}

static void ide_lba48_beyond_the_end(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x1F6, 0xE0);
  for (unsigned i = 0; i < 2; i++) {
    out(rig, 0x1F2, (uint8_t)i);
    out(rig, 0x1F3, i ? 0x44 : 0x11);
    out(rig, 0x1F4, i ? 0x55 : 0x22);
    out(rig, 0x1F5, i ? 0x66 : 0x33);
  }
  out(rig, 0x1F7, 0x34); /* the error comes with the data */
  assert_int_equal(ide_wait(rig), 0x58);
  for (unsigned i = 0; i < 256; i++)
    board_out(rig->board, 0x1F0, 2, i);
  assert_int_equal(ide_wait(rig), 0x51);
  assert_int_equal(in(rig, 0x1F5), 0x66);
  out(rig, 0x3F6, 0x80); /* the bytes written before */
  assert_int_equal(in(rig, 0x1F3), 0x11);
  assert_int_equal(in(rig, 0x1F5), 0x33);
}

static void ide_registers_are_the_disks_while_it_works(void **state)
{
  struct rig *rig = *state;

  ide_address(rig, 5, 1);
  out(rig, 0x1F7, 0x20);
  out(rig, 0x1F3, 0x77);
  assert_int_equal(in(rig, 0x1F7), 0x80);
  assert_int_equal(in(rig, 0x1F3), 5);
  assert_int_equal(board_in(rig->board, 0x1F0, 2), 0); /* no data yet */
}

static void ide_resets(void **state)
{
  struct rig *rig = *state;

  ide_address(rig, 5, 9);
  out(rig, 0x3F6, 0x04);
  assert_int_equal(in(rig, 0x3F6), 0x80);
  out(rig, 0x3F6, 0x00);
  assert_int_equal(ide_wait(rig), 0x50);
  assert_int_equal(in(rig, 0x1F1), 0x01);
  assert_int_equal(in(rig, 0x1F2), 0x01);
  assert_int_equal(in(rig, 0x1F3), 0x01);
  assert_int_equal(in(rig, 0x1F4), 0x00);
  out(rig, 0x1F7, 0x90);
  assert_int_equal(in(rig, 0x1F1), 0x01);
}

static void ide_has_no_slave(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x1F6, 0xB0);
  assert_int_equal(in(rig, 0x1F7), 0);
  out(rig, 0x1F7, 0xEC);
  pass(rig, MS);
  assert_int_equal(in(rig, 0x1F7), 0);
}

static void ide_may_be_absent(void **state)
{
  struct rig *rig = *state;

  board_free(rig->board);
  rig->config.hda = (struct board_disk){0};
  assert_int_equal(rig_start(rig), 0);
  out(rig, 0x1F6, 0xA0);
  out(rig, 0x1F7, 0xEC);
  assert_int_equal(in(rig, 0x1F7), 0xFF);
  assert_int_equal(board_in(rig->board, 0x1F0, 2), 0xFFFF);
}

PART(TEST(ide_identifies), TEST(ide_reads_with_interrupts), TEST(ide_reads_chs_and_lba48), TEST(ide_multiple),
     TEST(ide_writes_to_memory), TEST(ide_beyond_the_end), TEST(ide_other_commands), TEST(ide_lba48_beyond_the_end),
     TEST(ide_registers_are_the_disks_while_it_works), TEST(ide_resets), TEST(ide_has_no_slave),
     TEST(ide_may_be_absent));
