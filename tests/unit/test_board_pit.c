/* SPDX-License-Identifier: Apache-2.0
 *
 * The 8254. Expected values follow from the data sheet.
 */
#include "board_rig.h"

static uint64_t ticks(uint64_t count)
{
  return (count * S + 1193181) / 1193182;
}

static void pit_load(struct rig *rig, unsigned channel, uint8_t control, uint16_t count)
{
  out(rig, 0x43, (uint8_t)(channel << 6 | control));
  out(rig, (uint16_t)(0x40 + channel), (uint8_t)count);
  out(rig, (uint16_t)(0x40 + channel), (uint8_t)(count >> 8));
}

static uint16_t pit_count(struct rig *rig, unsigned channel)
{
  out(rig, 0x43, (uint8_t)(channel << 6));
  uint8_t low = in(rig, (uint16_t)(0x40 + channel));
  return (uint16_t)(low | in(rig, (uint16_t)(0x40 + channel)) << 8);
}

static bool pit_out2(struct rig *rig)
{
  return in(rig, 0x61) & 0x20;
}

static void pit_mode_2_interrupts_periodically(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFE, 0xFF);
  pit_load(rig, 0, 0x34, 1000);
  eoi(rig, acknowledge(rig)); /* OUT went up with the control word */
  assert_int_equal(board_deadline(rig->board), ticks(1000));
  pass(rig, ticks(1000) - 1);
  assert_false(rig->intr);
  pass(rig, 1);
  assert_int_equal(acknowledge(rig), 0x08);
  eoi(rig, 8);
  assert_int_equal(board_deadline(rig->board), ticks(2000));
  pass(rig, 10 * S);
  assert_true(rig->intr);
  eoi(rig, acknowledge(rig));
  assert_false(rig->intr); /* what was missed is one interrupt */
}

static void pit_mode_2_counts_down(void **state)
{
  struct rig *rig = *state;

  pit_load(rig, 0, 0x34, 1000);
  assert_int_equal(pit_count(rig, 0), 1000);
  pass(rig, ticks(300));
  assert_int_equal(pit_count(rig, 0), 700);
  pass(rig, ticks(1000));
  assert_in_range(pit_count(rig, 0), 699, 700);
}

static void pit_new_count_waits_for_the_cycle(void **state)
{
  struct rig *rig = *state;

  pit_load(rig, 0, 0x34, 1000);
  pass(rig, ticks(400));
  out(rig, 0x40, 0x64);
  out(rig, 0x40, 0x00);                  /* 100 */
  out(rig, 0x43, 0xE2);                  /* status of channel 0 */
  assert_int_equal(in(rig, 0x40), 0xF4); /* OUT, null count, both bytes, mode 2 */
  assert_int_equal(pit_count(rig, 0), 600);
  pass(rig, ticks(650));
  assert_in_range(pit_count(rig, 0), 49, 50);
  out(rig, 0x43, 0xE2);
  assert_int_equal(in(rig, 0x40), 0xB4);
}

static void pit_mode_3_is_a_square_wave(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x61, 1);
  pit_load(rig, 2, 0x36, 1000);
  assert_true(pit_out2(rig));
  pass(rig, ticks(100));
  assert_int_equal(pit_count(rig, 2), 800); /* by two */
  pass(rig, ticks(400));
  assert_false(pit_out2(rig));
  pass(rig, ticks(500));
  assert_true(pit_out2(rig));
}

static void pit_mode_0_ends_once(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x61, 1);
  pit_load(rig, 2, 0x30, 1000);
  assert_false(pit_out2(rig));
  pass(rig, ticks(999));
  assert_false(pit_out2(rig));
  pass(rig, ticks(1));
  assert_true(pit_out2(rig));
  pass(rig, ticks(70000));
  assert_true(pit_out2(rig));
}

static void pit_gate_stops_mode_0(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x61, 0);
  pit_load(rig, 2, 0x30, 1000);
  pass(rig, ticks(5000));
  assert_int_equal(pit_count(rig, 2), 1000);
  out(rig, 0x61, 1);
  pass(rig, ticks(400));
  assert_in_range(pit_count(rig, 2), 599, 600);
  out(rig, 0x61, 0);
  pass(rig, ticks(400));
  assert_in_range(pit_count(rig, 2), 599, 600);
  assert_false(pit_out2(rig));
  out(rig, 0x61, 1);
  pass(rig, ticks(601));
  assert_true(pit_out2(rig));
}

/* Data sheet, modes 2 and 3: a count that is written waits for the end of the cycle or for GATE to rise. */
static void pit_gate_loads_a_new_count(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x61, 1);
  pit_load(rig, 2, 0x34, 1000);
  pass(rig, ticks(100));
  out(rig, 0x42, 5000 & 0xFF);
  out(rig, 0x42, 5000 >> 8);
  assert_in_range(pit_count(rig, 2), 899, 900);
  out(rig, 0x61, 0);
  pass(rig, ticks(3000)); /* longer than the cycle would have been */
  out(rig, 0x61, 1);
  pass(rig, ticks(100));
  assert_in_range(pit_count(rig, 2), 4899, 4900);
}

static void pit_gate_triggers_mode_1_and_5(void **state)
{
  struct rig *rig = *state;

  pit_load(rig, 2, 0x32, 100);
  assert_true(pit_out2(rig));
  pass(rig, ticks(500));
  assert_true(pit_out2(rig));
  out(rig, 0x61, 1);
  assert_false(pit_out2(rig));
  pass(rig, ticks(101));
  assert_true(pit_out2(rig));
  out(rig, 0x61, 0);
  pit_load(rig, 2, 0x3A, 100);
  out(rig, 0x61, 1);
  assert_true(pit_out2(rig));
  pass(rig, ticks(100));
  assert_false(pit_out2(rig)); /* low for one tick */
  pass(rig, ticks(1));
  assert_true(pit_out2(rig));
}

static void pit_mode_4_interrupts_once(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFE, 0xFF);
  pit_load(rig, 0, 0x38, 100);
  eoi(rig, acknowledge(rig));
  pass(rig, ticks(102));
  assert_true(rig->intr);
  eoi(rig, acknowledge(rig));
  assert_int_equal(board_deadline(rig->board), NEVER);
  assert_false(board_can_wake(rig->board));
}

static void pit_counts_in_bcd(void **state)
{
  struct rig *rig = *state;

  pit_load(rig, 0, 0x35, 0x1000);
  pass(rig, ticks(1));
  assert_int_equal(pit_count(rig, 0), 0x0999);
  pit_load(rig, 0, 0x35, 0);
  pass(rig, ticks(1));
  assert_int_equal(pit_count(rig, 0), 0x9999);
}

static void pit_reads_back_count_and_status(void **state)
{
  struct rig *rig = *state;

  pit_load(rig, 0, 0x34, 1000);
  pass(rig, ticks(10));
  out(rig, 0x43, 0xC2); /* both, of channel 0 */
  pass(rig, ticks(100));
  assert_int_equal(in(rig, 0x40), 0xB4);
  assert_int_equal(in(rig, 0x40), 990 & 0xFF); /* latched then */
  assert_int_equal(in(rig, 0x40), 990 >> 8);
  out(rig, 0x43, 0x14); /* low byte only */
  out(rig, 0x40, 200);
  pass(rig, ticks(3));
  assert_in_range(in(rig, 0x40), 196, 197);
}

static void pit_masked_has_no_deadline_but_is_remembered(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFF, 0xFF);
  pit_load(rig, 0, 0x34, 1000);
  assert_int_equal(board_deadline(rig->board), NEVER);
  assert_false(board_can_wake(rig->board));
  pass(rig, S);
  out(rig, 0x20, 0x0A);
  assert_int_equal(in(rig, 0x20), 0x01);
  unsigned replan = rig->replan;
  out(rig, 0x21, 0xFE);
  assert_true(rig->intr);
  assert_true(board_can_wake(rig->board));
  assert_int_equal(rig->replan, replan + 1);
}

static void port_61_refreshes(void **state)
{
  struct rig *rig = *state;
  uint8_t first = in(rig, 0x61) & 0x10;

  pass(rig, 15085);
  assert_int_not_equal(in(rig, 0x61) & 0x10, first);
  out(rig, 0x61, 0xFF);
  assert_int_equal(in(rig, 0x61) & 0xCF, 0x0F);
}

PART(TEST(pit_mode_2_interrupts_periodically), TEST(pit_mode_2_counts_down), TEST(pit_new_count_waits_for_the_cycle),
     TEST(pit_mode_3_is_a_square_wave), TEST(pit_mode_0_ends_once), TEST(pit_gate_stops_mode_0),
     TEST(pit_gate_loads_a_new_count), TEST(pit_gate_triggers_mode_1_and_5), TEST(pit_mode_4_interrupts_once),
     TEST(pit_counts_in_bcd), TEST(pit_reads_back_count_and_status), TEST(pit_masked_has_no_deadline_but_is_remembered),
     TEST(port_61_refreshes));
