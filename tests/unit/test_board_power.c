/* SPDX-License-Identifier: Apache-2.0
 *
 * System control ports, debug ports, ACPI's fixed registers, and S3. Expected values follow from data sheets and
 * the ACPI specification.
 */
#include "board_rig.h"

/* ---- ports ---- */

static void ports_of_nobody_read_ones(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(board_in(rig->board, 0x2F8, 1), 0xFF); /* COM2 */
  assert_int_equal(board_in(rig->board, 0x170, 2), 0xFFFF);
  assert_int_equal(board_in(rig->board, 0xFFFF, 4), UINT32_MAX);
  board_out(rig->board, 0xFFFF, 4, 1);
}

static void ports_that_tell_the_host(void **state)
{
  struct rig *rig = *state;

  out(rig, 0x80, 0x5A);
  assert_int_equal(rig->post, 0x5A);
  out(rig, 0xE9, 'h');
  out(rig, 0xE9, 'i');
  assert_string_equal(rig->debug, "hi");
  assert_int_equal(in(rig, 0xE9), 0xE9);
  board_out(rig->board, 0xF4, 4, 0x12345678);
  assert_int_equal(rig->exit_value, 0x12345678);
  out(rig, 0xB3, 7);
  out(rig, 0xB2, 9);
  assert_int_equal(rig->smi, 1);
  assert_int_equal(board_in(rig->board, 0xB2, 2), 0x0709);
}

static void ports_reset(void **state)
{
  struct rig *rig = *state;

  out(rig, 0xCF9, 0x02);
  assert_int_equal(rig->reset, 0);
  out(rig, 0xCF9, 0x06);
  assert_int_equal(rig->reset, 1);
  board_reset(rig->board);
  assert_int_equal(in(rig, 0x92), 0x02);
}

/* The firmware that starts behind a reset runs on the bootstrap processor: its local APIC is meant. */
static void reset_selects_the_first(void **state)
{
  struct rig *rig = *state;

  board_free(rig->board);
  rig->config.cpus = 2;
  assert_int_equal(rig_start(rig), 0);
  board_select(rig->board, 1);
  assert_int_equal(apic_get(rig, 0x20) >> 24, 1);
  board_reset(rig->board);
  assert_int_equal(apic_get(rig, 0x20) >> 24, 0);
}

/* ICH data sheet: port 92h INIT_NOW, RCIN# of the 8042, CF9h with SYS_RST 0. */
static void ports_init_signal(void **state)
{
  struct rig *rig = *state;

  apic_put(rig, 0xF0, 0x1FF);
  out(rig, 0x92, 0x03);
  assert_int_equal(rig->init, 1);
  assert_int_equal(apic_get(rig, 0xF0), 0xFF); /* the local APIC is reset too */
  out(rig, 0x92, 0x03);
  assert_int_equal(rig->init, 1);
  out(rig, 0x64, 0xFE);
  assert_int_equal(rig->init, 2);
  out(rig, 0xCF9, 0x00);
  out(rig, 0xCF9, 0x04);
  assert_int_equal(rig->init, 3);
  assert_int_equal(rig->reset, 0);
  board_reset(rig->board);
  assert_int_equal(in(rig, 0x92), 0x03); /* still set: it was no reset */
  board_reset(rig->board);
  assert_int_equal(in(rig, 0x92), 0x02);
}

static void ports_a20(void **state)
{
  struct rig *rig = *state;

  assert_int_equal(in(rig, 0x92), 2);
  out(rig, 0x92, 0);
  assert_false(rig->a20);
  out(rig, 0x64, 0xD1);
  out(rig, 0x60, 0xDF);
  assert_true(rig->a20);
  out(rig, 0x64, 0xDD);
  assert_false(rig->a20);
  board_reset(rig->board);
  assert_true(rig->a20);
}

static void acpi_timer_and_power_off(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xFD);
  pass(rig, S);
  assert_int_equal(board_in(rig->board, 0x608, 4), 3579545);
  assert_int_equal(board_in(rig->board, 0x604, 2), 1);
  board_out(rig->board, 0x602, 2, 1);
  assert_int_equal(board_deadline(rig->board) / MS, 2343); /* 2^23 ticks */
  pass(rig, 2 * S);
  assert_int_equal(acknowledge(rig), 0x71);
  assert_int_equal(board_in(rig->board, 0x600, 2), 1);
  board_out(rig->board, 0x600, 2, 1);
  assert_int_equal(board_in(rig->board, 0x600, 2), 0);
  board_out(rig->board, 0x604, 2, 0x2000 | 2 << 10); /* no state has this type */
  assert_int_equal(rig->power_offs + rig->sleeps, 0);
  board_out(rig->board, 0x604, 2, 0x2000 | 5 << 10);
  assert_int_equal(rig->power_offs, 1);
  assert_int_equal(rig->exits, 0);
}

/* ---- S3: ACPI specification 4.8.3.1 (RTC_STS, WAK_STS), 4.8.3.2 (SLP_TYPx, SLP_EN), 7.3.4.4 ---- */

/* An alarm at 00:00:05, and the machine sleeps with these bits of PM1's enable register. */
static void go_to_sleep(struct rig *rig, uint16_t enable)
{
  cmos_put(rig, 1, 0x05);
  cmos_put(rig, 3, 0x00);
  cmos_put(rig, 5, 0x00);
  cmos_put(rig, 0x0B, 0x22);
  board_out(rig->board, 0x602, 2, enable);
  board_out(rig->board, 0x604, 2, 1 << 10);
  assert_int_equal(rig->sleeps, 0);
  board_out(rig->board, 0x604, 2, 0x2000 | 1 << 10);
  assert_int_equal(rig->sleeps, 1);
  assert_true(board_is_asleep(rig->board));
  assert_false(board_is_waking(rig->board));
}

static void sleep_until_the_alarm(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0x00, 0x00); /* a timer that ticks does not wake */
  out(rig, 0x43, 0x34);
  out(rig, 0x40, 0xFF);
  out(rig, 0x40, 0xFF);
  eoi(rig, acknowledge(rig));
  go_to_sleep(rig, 0x400);
  assert_int_equal(board_deadline(rig->board), 5 * S);
  pass(rig, 5 * S - 1);
  assert_false(rig->intr || board_is_waking(rig->board));
  pass(rig, 1);
  assert_true(board_is_waking(rig->board) && board_is_asleep(rig->board));
  cmos_put(rig, 0x20, 0x77);
  board_wake(rig->board);
  assert_false(board_is_asleep(rig->board));
  assert_int_equal(board_in(rig->board, 0x600, 2), 0x8400);
  assert_int_equal(board_in(rig->board, 0x602, 2), 0);
  assert_int_equal(cmos_get(rig, 0), 0x05);    /* the clock went on, */
  assert_int_equal(cmos_get(rig, 0x20), 0x77); /* and CMOS has its battery */
  assert_int_equal(cmos_get(rig, 0x0B), 0x02); /* enables are reset, */
  assert_int_equal(apic_get(rig, 0xF0), 0xFF); /* and the local APIC */
  board_out(rig->board, 0x600, 2, 0x8000);
  assert_int_equal(board_in(rig->board, 0x600, 2), 0x400);
}

static void sleep_without_end(void **state)
{
  struct rig *rig = *state;

  go_to_sleep(rig, 0x1);                               /* the timer has no power in S3 */
  assert_int_equal(board_deadline(rig->board), NEVER); /* RTC_EN is off: the alarm does not wake */
  pass(rig, 3600 * S);
  assert_false(board_is_waking(rig->board));
  assert_false(board_serial_receive(rig->board, 'x'));
  board_request_wake(rig->board);
  assert_true(board_is_waking(rig->board));
  board_wake(rig->board);
  assert_int_equal(board_in(rig->board, 0x600, 2), 0x8100); /* the power button */
}

/* An alarm that goes off on the way to sleep has set RTC_STS: the sleep ends at once. */
static void sleep_after_the_alarm(void **state)
{
  struct rig *rig = *state;

  cmos_put(rig, 1, 0xFF);
  cmos_put(rig, 3, 0xFF);
  cmos_put(rig, 5, 0xFF);
  cmos_put(rig, 0x0B, 0x22);
  board_out(rig->board, 0x602, 2, 0x400);
  pass(rig, S + S / 2);
  board_out(rig->board, 0x604, 2, 0x2000 | 1 << 10);
  assert_true(board_is_waking(rig->board));
  board_reset(rig->board); /* that is no wake */
  assert_false(board_is_asleep(rig->board));
  assert_int_equal(board_in(rig->board, 0x600, 2), 0);
}

/* Awake, the alarm raises SCI by RTC_STS, too, if RTC_EN is on. */
static void acpi_alarm(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0xFB, 0xFD); /* IRQ 8 is masked */
  cmos_put(rig, 1, 0x03);
  cmos_put(rig, 3, 0xFF);
  cmos_put(rig, 5, 0xFF);
  cmos_put(rig, 0x0B, 0x22);
  assert_int_equal(board_deadline(rig->board), NEVER);
  pass(rig, 4 * S);
  assert_false(rig->intr);
  assert_int_equal(board_in(rig->board, 0x600, 2) & 0x400, 0x400);
  board_out(rig->board, 0x600, 2, 0x400);
  board_out(rig->board, 0x602, 2, 0x400);
  assert_int_equal(board_deadline(rig->board), 63 * S); /* the alarm's flag in register C does not matter */
  pass(rig, 60 * S);
  assert_int_equal(acknowledge(rig), 0x71);
  assert_int_equal(board_deadline(rig->board), NEVER);
}

/* The clock stands still at the end of 9999, and no alarm lies behind. */
static void rtc_ends(void **state)
{
  struct rig *rig = *state;
  static const uint8_t end[][2] = {{0x32, 0x99}, {9, 0x99}, {8, 0x12}, {7, 0x31}, {4, 0x23}, {2, 0x59}, {0, 0x58}};

  for (unsigned i = 0; i < sizeof(end) / sizeof(end[0]); i++)
    cmos_put(rig, end[i][0], end[i][1]);
  pass(rig, 10 * S);
  assert_int_equal(cmos_get(rig, 0), 0x59);
  assert_int_equal(cmos_get(rig, 9), 0x99);
  cmos_put(rig, 1, 0xFF);
  cmos_put(rig, 3, 0xFF);
  cmos_put(rig, 5, 0xFF);
  cmos_put(rig, 0x0B, 0x22);
  board_out(rig->board, 0x602, 2, 0x400);
  board_out(rig->board, 0x604, 2, 0x2000 | 1 << 10);
  assert_int_equal(board_deadline(rig->board), NEVER);
}

PART(TEST(ports_of_nobody_read_ones), TEST(ports_that_tell_the_host), TEST(ports_reset), TEST(ports_init_signal),
     TEST(reset_selects_the_first), TEST(ports_a20), TEST(acpi_timer_and_power_off), TEST(sleep_until_the_alarm),
     TEST(sleep_without_end), TEST(sleep_after_the_alarm), TEST(acpi_alarm), TEST(rtc_ends));
