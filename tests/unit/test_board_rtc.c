/* SPDX-License-Identifier: Apache-2.0
 *
 * The clock of the MC146818A, and CMOS memory. Expected values follow from the data sheet.
 */
#include "board_rig.h"

static void rtc_shows_the_time(void **state)
{
  struct rig *rig = *state;

  pass(rig, (13 * 3600 + 14 * 60 + 15) * S);
  assert_int_equal(cmos_get(rig, 0), 0x15);
  assert_int_equal(cmos_get(rig, 2), 0x14);
  assert_int_equal(cmos_get(rig, 4), 0x13);
  assert_int_equal(cmos_get(rig, 6), 5); /* Thursday */
  assert_int_equal(cmos_get(rig, 7), 1);
  assert_int_equal(cmos_get(rig, 8), 1);
  assert_int_equal(cmos_get(rig, 9), 0x26);
  assert_int_equal(cmos_get(rig, 0x32), 0x20);
  cmos_put(rig, 0x0B, 0x06);
  assert_int_equal(cmos_get(rig, 4), 13);
  assert_int_equal(cmos_get(rig, 9), 26);
  cmos_put(rig, 0x0B, 0x00);
  assert_int_equal(cmos_get(rig, 4), 0x81); /* 1 PM */
  pass(rig, 11 * 3600 * S);
  assert_int_equal(cmos_get(rig, 4), 0x12); /* midnight */
  assert_int_equal(cmos_get(rig, 7), 2);
}

static void rtc_can_be_set(void **state)
{
  struct rig *rig = *state;

  cmos_put(rig, 0x0B, 0x82);
  cmos_put(rig, 0, 0x58);
  cmos_put(rig, 2, 0x59);
  cmos_put(rig, 4, 0x23);
  cmos_put(rig, 7, 0x28);
  cmos_put(rig, 8, 0x02);
  cmos_put(rig, 9, 0x24);
  pass(rig, 5 * S);
  assert_int_equal(cmos_get(rig, 0), 0x58); /* stands still */
  cmos_put(rig, 0x0B, 0x02);
  pass(rig, 2 * S);
  assert_int_equal(cmos_get(rig, 0), 0x00);
  assert_int_equal(cmos_get(rig, 4), 0x00);
  assert_int_equal(cmos_get(rig, 7), 0x29); /* 2024 was a leap year */
  board_reset(rig->board);
  assert_int_equal(cmos_get(rig, 9), 0x24); /* a reset does not stop a clock with a battery */
}

static void rtc_warns_of_updates(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(cmos_get(rig, 0x0A), 0x26);
  pass(rig, S - 2228 * US);
  assert_int_equal(cmos_get(rig, 0x0A), 0xA6);
  pass(rig, 2228 * US);
  assert_int_equal(cmos_get(rig, 0x0A), 0x26);
  assert_int_equal(cmos_get(rig, 0x0D), 0x80);
}

static void rtc_periodic_interrupt(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xFE);
  assert_int_equal(board_deadline(rig->board), NEVER);
  cmos_put(rig, 0x0B, 0x42);
  assert_int_equal(board_deadline(rig->board), (S + 1023) / 1024);
  pass(rig, S / 1024 + 1);
  assert_int_equal(acknowledge(rig), 0x70);
  eoi(rig, 0x70);
  pass(rig, S / 2);
  assert_false(rig->intr); /* not before C is read */
  assert_int_equal(board_deadline(rig->board), NEVER);
  assert_int_equal(cmos_get(rig, 0x0C), 0xC0);
  assert_int_equal(cmos_get(rig, 0x0C), 0x00);
  pass(rig, S / 1024 + 1);
  assert_true(rig->intr);
}

static void rtc_update_interrupt(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xFE);
  cmos_put(rig, 0x0B, 0x12);
  assert_int_equal(board_deadline(rig->board), S);
  pass(rig, S);
  assert_int_equal(acknowledge(rig), 0x70);
  assert_int_equal(cmos_get(rig, 0x0C) & 0x90, 0x90);
}

static void rtc_alarm_interrupt(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xFE);
  cmos_put(rig, 1, 0x30);
  cmos_put(rig, 3, 0x15);
  cmos_put(rig, 5, 0x06);
  cmos_put(rig, 0x0B, 0x22);
  assert_int_equal(board_deadline(rig->board), (6 * 3600 + 15 * 60 + 30) * S);
  cmos_put(rig, 5, 0xFF); /* every hour */
  assert_int_equal(board_deadline(rig->board), (15 * 60 + 30) * S);
  pass(rig, 3600 * S);
  assert_int_equal(acknowledge(rig), 0x70);
  eoi(rig, 0x70);
  assert_int_equal(cmos_get(rig, 0x0C) & 0xA0, 0xA0);
  cmos_put(rig, 5, 0x55); /* there is no such hour */
  assert_int_equal(board_deadline(rig->board), NEVER);
}

static void cmos_knows_the_machine(void **state)
{
  struct rig *rig = *state;
  unsigned sum = 0;

  assert_int_equal(cmos_get(rig, 0x10), 0x40);
  assert_int_equal(cmos_get(rig, 0x12), 0xF0);
  assert_int_equal(cmos_get(rig, 0x15) | cmos_get(rig, 0x16) << 8, 640);
  assert_int_equal(cmos_get(rig, 0x17) | cmos_get(rig, 0x18) << 8, 0xFFFF);
  assert_int_equal(cmos_get(rig, 0x34) | cmos_get(rig, 0x35) << 8, 112 * 16);
  for (uint8_t i = 0x10; i < 0x2E; i++)
    sum += cmos_get(rig, i);
  assert_int_equal(cmos_get(rig, 0x2E) << 8 | cmos_get(rig, 0x2F), sum);
  cmos_put(rig, 0x0F, 0x5A);
  board_reset(rig->board);
  assert_int_equal(cmos_get(rig, 0x0F), 0x5A);
}

PART(TEST(rtc_shows_the_time), TEST(rtc_can_be_set), TEST(rtc_warns_of_updates), TEST(rtc_periodic_interrupt),
     TEST(rtc_update_interrupt), TEST(rtc_alarm_interrupt), TEST(cmos_knows_the_machine));
