/* SPDX-License-Identifier: Apache-2.0
 *
 * The two 8259A. Expected values follow from the data sheet.
 */
#include "board_rig.h"

static void pic_is_silent_before_it_is_programmed(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  assert_false(rig->intr);
  out(rig, 0x20, 0x11);
  out(rig, 0x21, 0x08);
  assert_false(rig->intr);
}

static void pic_gives_vectors_and_takes_eoi(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  assert_int_equal(acknowledge(rig), 0x0C);
  assert_false(rig->intr);
  out(rig, 0x20, 0x0B);
  assert_int_equal(in(rig, 0x20), 0x10); /* ISR */
  out(rig, 0x20, 0x0A);
  assert_int_equal(in(rig, 0x20), 0x00); /* IRR */
  ferr(rig);
  assert_true(rig->intr); /* the slave is at input 2, above 4 */
  assert_int_equal(acknowledge(rig), 0x75);
  eoi(rig, 0x75);
  out(rig, 0x20, 0x0B);
  assert_int_equal(in(rig, 0x20), 0x10);
  eoi(rig, 0x0C);
  assert_int_equal(in(rig, 0x20), 0x00);
}

static void pic_lower_priority_waits(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  ferr(rig);
  assert_int_equal(acknowledge(rig), 0x75);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  assert_false(rig->intr);
  eoi(rig, 0x75);
  assert_int_equal(acknowledge(rig), 0x0C);
}

static void pic_masks(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0x04, 0);
  ferr(rig);
  assert_false(rig->intr);
  out(rig, 0x21, 0);
  assert_true(rig->intr);
  out(rig, 0xA1, 0x20);
  assert_false(rig->intr);
  assert_int_equal(in(rig, 0xA1), 0x20);
}

static void pic_edge_that_falls_is_spurious(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  ferr(rig);
  assert_true(rig->intr);
  ferr_clear(rig);
  assert_false(rig->intr);
  assert_int_equal(board_acknowledge(rig->board), 0x0F); /* the processor was too late: IRQ 7 */
  out(rig, 0x20, 0x0B);
  assert_int_equal(in(rig, 0x20), 0); /* which is not in service */
}

static void pic_edge_needs_a_new_edge(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  ferr(rig);
  eoi(rig, acknowledge(rig));
  assert_false(rig->intr); /* the line is still high */
  ferr(rig);
  assert_false(rig->intr);
  ferr_clear(rig);
  ferr(rig);
  assert_true(rig->intr);
}

static void pic_level_repeats(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  board_out(rig->board, 0x4D0, 2, 0xFFFF);
  assert_int_equal(board_in(rig->board, 0x4D0, 2), 0xDEF8); /* 0, 1, 2, 8 and 13 stay edges */
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  eoi(rig, acknowledge(rig));
  assert_true(rig->intr);
  eoi(rig, acknowledge(rig));
  in(rig, 0x3F8);
  assert_false(rig->intr);
}

static void pic_auto_eoi(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  out(rig, 0x20, 0x13); /* single, ICW4 */
  out(rig, 0x21, 0x40);
  out(rig, 0x21, 0x03);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  assert_int_equal(acknowledge(rig), 0x44);
  out(rig, 0x20, 0x0B);
  assert_int_equal(in(rig, 0x20), 0);
}

static void pic_rotates(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  ferr(rig);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  out(rig, 0x20, 0xC2); /* input 2 becomes the lowest: 4 is now higher */
  assert_int_equal(acknowledge(rig), 0x0C);
  out(rig, 0x20, 0xA0); /* rotate on EOI: 4 becomes the lowest */
  assert_int_equal(acknowledge(rig), 0x75);
  eoi(rig, 0x75);
}

static void pic_special_mask_lets_lower_ones_in(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  ferr(rig);
  acknowledge(rig);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  assert_false(rig->intr);
  out(rig, 0x21, 0x04);
  out(rig, 0x20, 0x68);
  assert_int_equal(acknowledge(rig), 0x0C);
  out(rig, 0x20, 0x20); /* ends 4: what is masked is not ended */
  out(rig, 0x20, 0x0B);
  assert_int_equal(in(rig, 0x20), 0x04);
  out(rig, 0x20, 0x62); /* specific */
  assert_int_equal(in(rig, 0x20), 0x00);
}

static void pic_polls(void **state)
{
  struct rig *rig = *state;

  pic_program(rig, 0, 0);
  out(rig, 0x20, 0x0C);
  assert_int_equal(in(rig, 0x20), 0);
  serial_interrupts(rig);
  board_serial_receive(rig->board, 'x');
  out(rig, 0x20, 0x0C);
  assert_int_equal(in(rig, 0x20), 0x84);
  out(rig, 0x20, 0x0B);
  assert_int_equal(in(rig, 0x20), 0x10);
}

static void pic_reaches_the_processor_past_a_disabled_apic(void **state)
{
  struct rig *rig = *state;

  pic_program(rig, 0, 0);
  ferr(rig);
  assert_false(rig->intr); /* LINT0 is masked at power-on */
  msr_put(rig, 0x1B, LAPIC | 0x100);
  assert_true(rig->intr);
  assert_int_equal(acknowledge(rig), 0x75);
}

PART(TEST(pic_is_silent_before_it_is_programmed), TEST(pic_gives_vectors_and_takes_eoi), TEST(pic_lower_priority_waits),
     TEST(pic_masks), TEST(pic_edge_that_falls_is_spurious), TEST(pic_edge_needs_a_new_edge), TEST(pic_level_repeats),
     TEST(pic_auto_eoi), TEST(pic_rotates), TEST(pic_special_mask_lets_lower_ones_in), TEST(pic_polls),
     TEST(pic_reaches_the_processor_past_a_disabled_apic));
