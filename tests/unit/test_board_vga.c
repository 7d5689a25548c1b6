/* SPDX-License-Identifier: Apache-2.0
 *
 * The VGA's registers. Expected values follow from IBM's VGA technical reference.
 */
#include "board_rig.h"

static void vga_shows_text(void **state)
{
  struct rig *rig = *state;
  struct board_screen screen = board_screen(rig->board);

  assert_int_equal(screen.columns, 80);
  assert_int_equal(screen.rows, 25);
  assert_true(screen.has_cursor);
  board_out(rig->board, 0x3D4, 2, 0x010C); /* index and data at once */
  board_out(rig->board, 0x3D4, 2, 0x020D);
  board_out(rig->board, 0x3B4, 2, 0x030E);
  board_out(rig->board, 0x3D4, 2, 0x040F);
  screen = board_screen(rig->board);
  assert_int_equal(screen.start, 0x0102);
  assert_int_equal(screen.cursor, 0x0304);
  board_set_cursor(rig->board, 0x1234);
  out(rig, 0x3D4, 0x0E);
  assert_int_equal(in(rig, 0x3D5), 0x12);
  board_set_cursor_shape(rig->board, 0x20, 0x0E);
  assert_false(board_screen(rig->board).has_cursor);
  board_out(rig->board, 0x3D4, 2, 0x0700); /* locked */
  out(rig, 0x3D4, 0x00);
  assert_int_equal(in(rig, 0x3D5), 0x5F);
}

static void vga_retraces(void **state)
{
  struct rig *rig = *state;
  unsigned frames = 0;
  uint8_t last = 0;

  for (unsigned i = 0; i < 200000; i++) {
    uint8_t status = in(rig, 0x3DA) & 8;

    frames += status && !last;
    last = status;
    rig->now += 5 * US;
  }
  assert_in_range(frames, 69, 71); /* in one second */
}

static void vga_keeps_registers(void **state)
{
  struct rig *rig = *state;

  in(rig, 0x3DA);
  out(rig, 0x3C0, 0x10);
  out(rig, 0x3C0, 0x0C);
  out(rig, 0x3C0, 0x30);
  assert_int_equal(in(rig, 0x3C1), 0x0C);
  out(rig, 0x3C8, 5);
  out(rig, 0x3C9, 1);
  out(rig, 0x3C9, 2);
  out(rig, 0x3C9, 0xFF);
  out(rig, 0x3C7, 5);
  assert_int_equal(in(rig, 0x3C9), 1);
  assert_int_equal(in(rig, 0x3C9), 2);
  assert_int_equal(in(rig, 0x3C9), 0x3F);
  assert_int_equal(in(rig, 0x3CC), 0x67);
  for (uint16_t port = 0x3C4; port <= 0x3CE; port = (uint16_t)(port + 10)) { /* sequencer, graphics */
    board_out(rig->board, port, 2, 0x5A01);
    assert_int_equal(board_in(rig->board, port, 2), 0x5A01);
  }
  out(rig, 0x3C2, 0x66);
  assert_int_equal(in(rig, 0x3CC), 0x66);
  out(rig, 0x3C6, 0x0F);
  assert_int_equal(in(rig, 0x3C6), 0x0F);
  assert_int_equal(in(rig, 0x3C8), 6);
  assert_int_equal(in(rig, 0x3C7), 3);
}

PART(TEST(vga_shows_text), TEST(vga_retraces), TEST(vga_keeps_registers));
