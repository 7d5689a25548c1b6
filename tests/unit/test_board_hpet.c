/* SPDX-License-Identifier: Apache-2.0
 *
 * The HPET, which counts at 100 MHz. Expected values follow from the HPET specification.
 */
#include "board_apic_rig.h"

static void hpet_put(struct rig *rig, unsigned offset, uint64_t value)
{
  board_write(rig->board, HPET + offset, 8, value);
}

static uint64_t hpet_get(struct rig *rig, unsigned offset)
{
  return board_read(rig->board, HPET + offset, 8);
}

static void hpet_counts(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(hpet_get(rig, 0), UINT64_C(0x009896808086A201));
  pass(rig, MS);
  assert_int_equal(hpet_get(rig, 0xF0), 0);
  hpet_put(rig, 0x10, 1);
  pass(rig, MS);
  assert_int_equal(hpet_get(rig, 0xF0), 100000);
  hpet_put(rig, 0x10, 0);
  pass(rig, MS);
  assert_int_equal(hpet_get(rig, 0xF0), 100000);
  hpet_put(rig, 0xF0, UINT64_C(0x1FFFFFFFF));
  hpet_put(rig, 0x10, 1);
  pass(rig, 10);
  assert_int_equal(board_read(rig->board, HPET + 0xF0, 4), 0);
  assert_int_equal(board_read(rig->board, HPET + 0xF4, 4), 2);
}

static void hpet_one_shot(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 20, 0x60);
  hpet_put(rig, 0x108, 1000);
  hpet_put(rig, 0x100, 20 << 9 | 4);
  assert_int_equal(hpet_get(rig, 0x100), UINT64_C(0x00FF000000000034) | 20 << 9);
  hpet_put(rig, 0x10, 1);
  assert_int_equal(board_deadline(rig->board), 10 * US);
  pass(rig, 10 * US);
  assert_int_equal(acknowledge(rig), 0x60);
  apic_put(rig, EOI, 0);
  pass(rig, S);
  assert_false(rig->intr);
}

static void hpet_level(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 20, 0x8060);
  hpet_put(rig, 0x128, 1000);
  hpet_put(rig, 0x120, 20 << 9 | 6);
  hpet_put(rig, 0x10, 1);
  pass(rig, 10 * US);
  assert_int_equal(hpet_get(rig, 0x20), 2);
  acknowledge(rig);
  hpet_put(rig, 0x20, 2);
  assert_int_equal(hpet_get(rig, 0x20), 0);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
}

static void hpet_periodic(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 20, 0x60);
  hpet_put(rig, 0x100, 20 << 9 | 0x4C); /* periodic, comparator is set too */
  hpet_put(rig, 0x108, 1000);           /* the first */
  hpet_put(rig, 0x108, 500);            /* then every */
  hpet_put(rig, 0x10, 1);
  pass(rig, 10 * US);
  assert_int_equal(acknowledge(rig), 0x60);
  apic_put(rig, EOI, 0);
  assert_int_equal(board_deadline(rig->board), 15 * US);
  rig->now += 1000 * S;
  board_advance(rig->board, rig->now);
  acknowledge(rig);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
  assert_int_equal(board_deadline(rig->board) - rig->now, 5 * US);
}

/* As a kernel with 32-bit accesses does it: the bit for the comparator is used up by the first write. */
static void hpet_halves(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 20, 0x60);
  board_write(rig->board, HPET + 0x100, 4, 20 << 9 | 0x14C);
  board_write(rig->board, HPET + 0x108, 4, 3000);
  board_write(rig->board, HPET + 0x108, 4, 500);
  board_write(rig->board, HPET + 0x10, 4, 1);
  assert_int_equal(board_deadline(rig->board), 30 * US);
  pass(rig, 30 * US);
  assert_int_equal(board_deadline(rig->board), 35 * US);
  board_write(rig->board, HPET + 0x10, 4, 0);
  board_write(rig->board, HPET + 0xF4, 4, 7);
  assert_int_equal(hpet_get(rig, 0xF0) >> 32, 7);
  board_write(rig->board, HPET + 0xF0, 1, 7); /* only halves and wholes */
  assert_int_equal(hpet_get(rig, 0xF0) & 0xFFFFFFFF, 3000);
}

static void hpet_32_bits_wrap(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 20, 0x60);
  hpet_put(rig, 0xF0, 0xFFFFFF00);
  hpet_put(rig, 0x100, 20 << 9 | 0x104);
  hpet_put(rig, 0x108, 0x100);
  hpet_put(rig, 0x10, 1);
  assert_int_equal(board_deadline(rig->board), 0x200 * 10);
  pass(rig, 0x200 * 10);
  assert_true(rig->intr);
}

static void hpet_replaces_the_old_timers(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFA, 0xFE);
  out(rig, 0x43, 0x34);
  out(rig, 0x40, 0xE8);
  out(rig, 0x40, 0x03);
  eoi(rig, acknowledge(rig));
  hpet_put(rig, 0x108, 1000000);
  hpet_put(rig, 0x100, 4);
  hpet_put(rig, 0x128, 2000000);
  hpet_put(rig, 0x120, 4);
  hpet_put(rig, 0x10, 3);
  pass(rig, 10 * MS - 1);
  assert_false(rig->intr); /* the 8254 is cut off */
  pass(rig, 1);
  assert_int_equal(acknowledge(rig), 0x08);
  eoi(rig, 0x08);
  pass(rig, 10 * MS);
  assert_int_equal(acknowledge(rig), 0x70);
  eoi(rig, 0x70);
  hpet_put(rig, 0x10, 1);
  pass(rig, MS);
  assert_int_equal(acknowledge(rig), 0x08); /* and back */
}

/* IRQ 8 leaves the RTC low, and is as high as the RTC has it when it comes back: as with QEMU's hpet. */
static void hpet_gives_the_clock_its_line_back(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xFE);
  hpet_put(rig, 0x10, 3);
  out(rig, 0x70, 0x0B);
  out(rig, 0x71, 0x12); /* an interrupt every second */
  pass(rig, 3 * S);
  assert_false(rig->intr);
  hpet_put(rig, 0x10, 1);
  assert_true(rig->intr);
  out(rig, 0xA0, 0x0A); /* IRR is read */
  assert_int_equal(in(rig, 0xA0), 1);
  hpet_put(rig, 0x10, 3);
  assert_int_equal(in(rig, 0xA0), 0);
  hpet_put(rig, 0x10, 1);
  assert_int_equal(acknowledge(rig), 0x70);
}

PART(TEST(hpet_counts), TEST(hpet_one_shot), TEST(hpet_level), TEST(hpet_periodic), TEST(hpet_halves),
     TEST(hpet_32_bits_wrap), TEST(hpet_replaces_the_old_timers), TEST(hpet_gives_the_clock_its_line_back));
