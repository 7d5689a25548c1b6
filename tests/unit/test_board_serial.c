/* SPDX-License-Identifier: Apache-2.0
 *
 * COM1. Expected values follow from the 16550A's data sheet.
 */
#include "board_rig.h"

static void serial_sends(void **state)
{
  struct rig *rig = *state;

  for (const char *text = "hello"; *text; text++) {
    assert_int_equal(in(rig, 0x3FD), 0x60);
    out(rig, 0x3F8, (uint8_t)*text);
  }
  assert_string_equal(rig->serial, "hello");
  out(rig, 0x3FF, 0x5A);
  assert_int_equal(in(rig, 0x3FF), 0x5A);
}

static void serial_divisor_hides_data(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x3FB, 0x83);
  board_out(rig->board, 0x3F8, 2, 0x0102);
  assert_int_equal(board_in(rig->board, 0x3F8, 2), 0x0102);
  assert_int_equal(rig->serial_size, 0);
  out(rig, 0x3FB, 0x03);
  assert_int_equal(in(rig, 0x3F9), 0);
}

static void serial_loops_back(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x3FB, 0x03);
  out(rig, 0x3FC, 0x1F);
  assert_int_equal(in(rig, 0x3FE) & 0xF0, 0xF0);
  out(rig, 0x3F8, 'a');
  assert_int_equal(rig->serial_size, 0);
  assert_int_equal(in(rig, 0x3FD), 0x61);
  out(rig, 0x3F8, 'b');
  assert_int_equal(in(rig, 0x3FD), 0x63); /* overrun */
  assert_int_equal(in(rig, 0x3FD), 0x61);
  assert_int_equal(in(rig, 0x3F8), 'b');
  out(rig, 0x3FC, 0x10);
  assert_int_equal(in(rig, 0x3FE), 0x0F); /* all went away: four changes, RI's trailing edge too */
  assert_false(board_serial_receive(rig->board, 'x'));
}

static void serial_interrupts_by_priority(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x3FB, 0x03);
  out(rig, 0x3FC, 0x1B);
  in(rig, 0x3FE);
  out(rig, 0x3F9, 0x0F);
  out(rig, 0x3FC, 0x18);
  out(rig, 0x3F8, 'a');
  out(rig, 0x3F8, 'b');
  assert_int_equal(in(rig, 0x3FA), 0x06); /* line status */
  in(rig, 0x3FD);
  assert_int_equal(in(rig, 0x3FA), 0x04); /* data */
  in(rig, 0x3F8);
  assert_int_equal(in(rig, 0x3FA), 0x02); /* sent; reading tells */
  assert_int_equal(in(rig, 0x3FA), 0x00); /* modem */
  in(rig, 0x3FE);
  assert_int_equal(in(rig, 0x3FA), 0x01);
}

static void serial_sent_interrupt_has_edges(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xEF, 0xFF);
  out(rig, 0x3FC, 0x08);
  out(rig, 0x3F9, 0x02);
  for (unsigned i = 0; i < 3; i++) {
    assert_int_equal(acknowledge(rig), 0x0C);
    assert_int_equal(in(rig, 0x3FA), 0x02);
    out(rig, 0x3F8, 'x');
    eoi(rig, 0x0C);
  }
  assert_string_equal(rig->serial, "xxx");
  out(rig, 0x3FC, 0x00); /* OUT2 cuts it off */
  assert_false(rig->intr);
}

static void serial_fifo_and_timeout(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xEF, 0xFF);
  out(rig, 0x3FB, 0x03);
  out(rig, 0x3FA, 0x81); /* 8 bytes */
  out(rig, 0x3FC, 0x08);
  out(rig, 0x3F9, 0x01);
  for (unsigned i = 0; i < 7; i++)
    assert_true(board_serial_receive(rig->board, (uint8_t)('0' + i)));
  assert_false(rig->intr);
  assert_true(board_can_wake(rig->board));
  pass(rig, 10 * MS);
  assert_int_equal(acknowledge(rig), 0x0C);
  assert_int_equal(in(rig, 0x3FA), 0xCC);
  assert_int_equal(in(rig, 0x3F8), '0');
  assert_int_equal(in(rig, 0x3FA), 0xC1);
  board_serial_receive(rig->board, '7');
  board_serial_receive(rig->board, '8');
  assert_int_equal(in(rig, 0x3FA), 0xC4);
  unsigned count = 8;
  while (board_serial_receive(rig->board, '9'))
    count++;
  assert_int_equal(count, 16);
  out(rig, 0x3FA, 0x83);
  assert_int_equal(in(rig, 0x3FD), 0x60);
}

PART(TEST(serial_sends), TEST(serial_divisor_hides_data), TEST(serial_loops_back), TEST(serial_interrupts_by_priority),
     TEST(serial_sent_interrupt_has_edges), TEST(serial_fifo_and_timeout));
