/* SPDX-License-Identifier: Apache-2.0
 *
 * The I/O APIC. Expected values follow from the 82093AA's data sheet.
 */
#include "board_apic_rig.h"

static uint32_t ioapic_get(struct rig *rig, uint8_t index)
{
  board_write(rig->board, IOAPIC, 4, index);
  return (uint32_t)board_read(rig->board, IOAPIC + 0x10, 4);
}

static void serial_raise(struct rig *rig)
{
  out(rig, 0x3FC, 0x08);
  out(rig, 0x3F9, 0x01);
  assert_true(board_serial_receive(rig->board, 'x'));
}

static void ioapic_registers(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(ioapic_get(rig, 1), 0x170020);
  ioapic_put(rig, 0, 0x07000000);
  assert_int_equal(ioapic_get(rig, 0), 0x07000000);
  assert_int_equal(ioapic_get(rig, 0x10), MASKED);
  ioapic_put(rig, 0x3F, UINT32_MAX);
  ioapic_put(rig, 0x3E, UINT32_MAX);
  assert_int_equal(ioapic_get(rig, 0x3F), 0xFF000000);
  assert_int_equal(ioapic_get(rig, 0x3E), 0x1AFFF); /* status and remote IRR are not written */
  ioapic_put(rig, 0x40, UINT32_MAX);
  assert_int_equal(ioapic_get(rig, 0x40), 0);
}

static void ioapic_edge(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 4, 0x54);
  serial_raise(rig);
  assert_int_equal(acknowledge(rig), 0x54);
  assert_int_equal(apic_get(rig, TMR + 0x20), 0);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
  in(rig, 0x3F8);
  ioapic_route(rig, 4, MASKED | 0x54);
  serial_raise(rig);
  ioapic_route(rig, 4, 0x54);
  assert_false(rig->intr); /* an edge at a masked input is lost */
}

static void ioapic_level(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 4, 0x8054);
  serial_raise(rig);
  assert_int_equal(ioapic_get(rig, 0x18), 0xC054);
  assert_int_equal(acknowledge(rig), 0x54);
  assert_int_equal(apic_get(rig, TMR + 0x20), 1 << 20);
  apic_put(rig, EOI, 0);
  assert_true(rig->intr); /* the line is still high */
  assert_int_equal(acknowledge(rig), 0x54);
  in(rig, 0x3F8);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
  assert_int_equal(ioapic_get(rig, 0x18), 0x8054);
  ioapic_route(rig, 4, 0x18054);
  serial_raise(rig);
  assert_false(rig->intr);
  ioapic_route(rig, 4, 0x8054);
  assert_true(rig->intr); /* a level waits */
}

static void ioapic_own_eoi(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 4, 0x8054);
  serial_raise(rig);
  acknowledge(rig);
  in(rig, 0x3F8);
  board_write(rig->board, IOAPIC + 0x40, 4, 0x54);
  assert_int_equal(ioapic_get(rig, 0x18), 0x8054);
}

static void ioapic_refused_level_is_offered_again(void **state)
{
  struct rig *rig = *state;

  ioapic_route(rig, 4, 0x8054);
  serial_raise(rig);
  assert_int_equal(ioapic_get(rig, 0x18), 0x8054);
  enable(rig);
  assert_true(rig->intr);
}

static void ioapic_modes_and_destinations(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 13, 0x400);
  board_ferr(rig->board);
  out(rig, 0xF0, 0);
  assert_int_equal(rig->nmi, 1);
  ioapic_route(rig, 13, 0x200);
  board_ferr(rig->board);
  out(rig, 0xF0, 0);
  assert_int_equal(rig->smi, 1);
  ioapic_route(rig, 13, 0x155); /* lowest priority */
  board_ferr(rig->board);
  out(rig, 0xF0, 0);
  assert_int_equal(acknowledge(rig), 0x55);
  apic_put(rig, EOI, 0);
  ioapic_put(rig, 0x2B, 3u << 24); /* another processor's */
  board_ferr(rig->board);
  assert_false(rig->intr);
}

static void ioapic_irq_0_is_pin_2(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  ioapic_route(rig, 2, 0x50);
  out(rig, 0x43, 0x34);
  out(rig, 0x40, 0xE8);
  out(rig, 0x40, 0x03);
  acknowledge(rig);
  apic_put(rig, EOI, 0);
  assert_true(board_can_wake(rig->board));
  pass(rig, MS);
  assert_int_equal(acknowledge(rig), 0x50);
  ioapic_route(rig, 2, MASKED | 0x50);
  assert_false(board_can_wake(rig->board));
}

static void ioapic_passes_the_8259(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  pic_program(rig, 0, 0);
  board_ferr(rig->board);
  assert_false(rig->intr);
  ioapic_route(rig, 0, 0x700);
  assert_int_equal(acknowledge(rig), 0x75);
}

PART(TEST(ioapic_registers), TEST(ioapic_edge), TEST(ioapic_level), TEST(ioapic_own_eoi),
     TEST(ioapic_refused_level_is_offered_again), TEST(ioapic_modes_and_destinations), TEST(ioapic_irq_0_is_pin_2),
     TEST(ioapic_passes_the_8259));
