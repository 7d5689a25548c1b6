/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8042 and the keyboard behind it. Expected values follow from IBM's PS/2 technical reference.
 */
#include "board_rig.h"

static uint8_t key_read(struct rig *rig)
{
  pass(rig, MS);
  assert_true(in(rig, 0x64) & 1);
  return in(rig, 0x60);
}

static void keyboard_answers(struct rig *rig, uint8_t byte, const char *answer)
{
  out(rig, 0x60, byte);
  for (; *answer; answer++)
    assert_int_equal(key_read(rig), (uint8_t)*answer);
  pass(rig, MS);
  assert_false(in(rig, 0x64) & 1);
}

static void controller_tests_itself(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x64, 0xAA);
  assert_int_equal(in(rig, 0x64) & 0x0D, 0x0D);
  assert_int_equal(in(rig, 0x60), 0x55);
  out(rig, 0x64, 0xAB);
  assert_int_equal(in(rig, 0x60), 0x00);
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x45);
  out(rig, 0x64, 0x20);
  assert_int_equal(in(rig, 0x60), 0x45);
  out(rig, 0x64, 0xAD);
  out(rig, 0x64, 0x20);
  assert_int_equal(in(rig, 0x60), 0x55);
  out(rig, 0x64, 0xD0);
  assert_int_equal(in(rig, 0x60), 0xC3); /* no reset, A20 */
}

static void controller_has_no_mouse(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x64, 0xD4);
  out(rig, 0x60, 0xFF);
  assert_int_equal(in(rig, 0x64) & 0x61, 0x61); /* from the second port: timed out */
  assert_int_equal(in(rig, 0x60), 0xFE);
}

static void keyboard_commands(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x04); /* not translated */
  keyboard_answers(rig, 0xFF, "\xFA\xAA");
  keyboard_answers(rig, 0xF2, "\xFA\xAB\x83");
  keyboard_answers(rig, 0xED, "\xFA");
  keyboard_answers(rig, 0x07, "\xFA");
  keyboard_answers(rig, 0xF3, "\xFA");
  keyboard_answers(rig, 0x20, "\xFA");
  keyboard_answers(rig, 0xEE, "\xEE");
  keyboard_answers(rig, 0xF0, "\xFA");
  keyboard_answers(rig, 0x00, "\xFA\x02");
  keyboard_answers(rig, 0xF0, "\xFA");
  keyboard_answers(rig, 0x03, "\xFE");
  keyboard_answers(rig, 0x80, "\xFE");
}

static void controller_loops_bytes(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xF9, 0xEF);
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x47); /* both interrupts */
  out(rig, 0x64, 0xD2);
  out(rig, 0x60, 0x12);
  assert_int_equal(acknowledge(rig), 0x09);
  assert_int_equal(in(rig, 0x60), 0x12);
  eoi(rig, 0x09);
  out(rig, 0x64, 0xD3);
  out(rig, 0x60, 0x34);
  assert_int_equal(acknowledge(rig), 0x74);
  assert_int_equal(in(rig, 0x64) & 0x21, 0x21);
  assert_int_equal(in(rig, 0x60), 0x34);
  out(rig, 0x64, 0x7F);
  out(rig, 0x60, 0x99);
  out(rig, 0x64, 0x3F);
  assert_int_equal(in(rig, 0x60), 0x99); /* its memory */
  out(rig, 0x64, 0xC0);
  assert_int_equal(in(rig, 0x60), 0xB0);
  out(rig, 0x64, 0xD1);
  out(rig, 0x60, 0xDE);
  assert_int_equal(rig->init, 1);
}

static void keyboard_waits_behind_a_closed_wire(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x64, 0xAD);
  assert_true(board_key(rig->board, 0x1E));
  pass(rig, MS);
  assert_false(in(rig, 0x64) & 1);
  out(rig, 0x64, 0xAE);
  assert_int_equal(key_read(rig), 0x1E);
  out(rig, 0x60, 0xFE);
  assert_int_equal(key_read(rig), 0x1E); /* again */
  keyboard_answers(rig, 0xF5, "\xFA");
  keyboard_answers(rig, 0xF4, "\xFA");
  keyboard_answers(rig, 0xF0, "\xFA");
  keyboard_answers(rig, 0x01, "\xFA"); /* set 1, which is translated once more: 9E stays, 1E becomes 03 */
  board_key(rig->board, 0x1E);
  assert_int_equal(key_read(rig), 0x03);
}

static void keyboard_translates(void **state)
{
  struct rig *rig = *state;

  assert_true(board_key(rig->board, 0x1E));
  assert_true(board_key(rig->board, 0x9E));
  assert_true(board_key(rig->board, 0xE0));
  assert_true(board_key(rig->board, 0xC8));
  assert_int_equal(key_read(rig), 0x1E);
  assert_int_equal(in(rig, 0x60), 0x1E); /* read twice, it is the same byte */
  assert_int_equal(key_read(rig), 0x9E);
  assert_int_equal(key_read(rig), 0xE0);
  assert_int_equal(key_read(rig), 0xC8);
  out(rig, 0x64, 0x60);
  out(rig, 0x60, 0x04);
  board_key(rig->board, 0x9E);
  assert_int_equal(key_read(rig), 0xF0); /* set 2 */
  assert_int_equal(key_read(rig), 0x1C);
}

static void keyboard_every_code_survives_translation(void **state)
{
  struct rig *rig = *state;

  for (unsigned code = 1; code <= 0x58; code++) {
    board_key(rig->board, (uint8_t)code);
    assert_int_equal(key_read(rig), code);
    board_key(rig->board, (uint8_t)(code | 0x80));
    assert_int_equal(key_read(rig), code | 0x80);
  }
}

static void keyboard_interrupts(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFD, 0xFF);
  board_key(rig->board, 0x1E);
  board_key(rig->board, 0x9E);
  assert_int_equal(acknowledge(rig), 0x09);
  assert_false(board_can_wake(rig->board)); /* the buffer is full: nothing more comes */
  assert_int_equal(in(rig, 0x60), 0x1E);
  eoi(rig, 9);
  assert_false(rig->intr);
  assert_true(board_can_wake(rig->board));
  pass(rig, MS);
  assert_int_equal(acknowledge(rig), 0x09);
  assert_int_equal(in(rig, 0x60), 0x9E);
}

static void keyboard_buffer_ends(void **state)
{
  struct rig *rig = *state;
  unsigned count = 0;

  while (board_key(rig->board, 0x1E) && count < 100)
    count++;
  assert_int_equal(count, 17);              /* one in the controller */
  keyboard_answers(rig, 0xF5, "\x1E\xFA");  /* the byte in the output buffer stays */
  assert_true(board_key(rig->board, 0x1E)); /* not scanned */
  pass(rig, MS);
  assert_false(in(rig, 0x64) & 1);
}

PART(TEST(controller_tests_itself), TEST(controller_has_no_mouse), TEST(keyboard_commands),
     TEST(controller_loops_bytes), TEST(keyboard_waits_behind_a_closed_wire), TEST(keyboard_translates),
     TEST(keyboard_every_code_survives_translation), TEST(keyboard_interrupts), TEST(keyboard_buffer_ends));
