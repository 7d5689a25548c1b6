/* SPDX-License-Identifier: Apache-2.0
 *
 * The devices of the old PC: 8259A, 8254, clock, and the ports around them. What is expected follows from the data
 * sheets.
 */
#include "board_rig.h"

/* A line that a test can raise and lower: IRQ 13, FERR#. IRQ 4: a byte for COM1. */
static void ferr(struct rig *rig)
{
  board_ferr(rig->board);
}

static void ferr_clear(struct rig *rig)
{
  out(rig, 0xF0, 0);
}

static void serial_interrupts(struct rig *rig)
{
  out(rig, 0x3FC, 0x08); /* OUT2 */
  out(rig, 0x3F9, 0x01);
}

/* ---- 8259A ---- */

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

/* ---- 8254 ---- */

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

/* ---- the clock ---- */

static uint8_t cmos_get(struct rig *rig, uint8_t index)
{
  out(rig, 0x70, index);
  return in(rig, 0x71);
}

static void cmos_put(struct rig *rig, uint8_t index, uint8_t value)
{
  out(rig, 0x70, index);
  out(rig, 0x71, value);
}

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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    TEST(pic_is_silent_before_it_is_programmed),
    TEST(pic_gives_vectors_and_takes_eoi),
    TEST(pic_lower_priority_waits),
    TEST(pic_masks),
    TEST(pic_edge_that_falls_is_spurious),
    TEST(pic_edge_needs_a_new_edge),
    TEST(pic_level_repeats),
    TEST(pic_auto_eoi),
    TEST(pic_rotates),
    TEST(pic_special_mask_lets_lower_ones_in),
    TEST(pic_polls),
    TEST(pic_reaches_the_processor_past_a_disabled_apic),
    TEST(pit_mode_2_interrupts_periodically),
    TEST(pit_mode_2_counts_down),
    TEST(pit_new_count_waits_for_the_cycle),
    TEST(pit_mode_3_is_a_square_wave),
    TEST(pit_mode_0_ends_once),
    TEST(pit_gate_stops_mode_0),
    TEST(pit_gate_loads_a_new_count),
    TEST(pit_gate_triggers_mode_1_and_5),
    TEST(pit_mode_4_interrupts_once),
    TEST(pit_counts_in_bcd),
    TEST(pit_reads_back_count_and_status),
    TEST(pit_masked_has_no_deadline_but_is_remembered),
    TEST(port_61_refreshes),
    TEST(rtc_shows_the_time),
    TEST(rtc_can_be_set),
    TEST(rtc_warns_of_updates),
    TEST(rtc_periodic_interrupt),
    TEST(rtc_update_interrupt),
    TEST(rtc_alarm_interrupt),
    TEST(cmos_knows_the_machine),
    TEST(ports_of_nobody_read_ones),
    TEST(ports_that_tell_the_host),
    TEST(ports_reset),
    TEST(ports_init_signal),
    TEST(reset_selects_the_first),
    TEST(ports_a20),
    TEST(acpi_timer_and_power_off),
    TEST(sleep_until_the_alarm),
    TEST(sleep_without_end),
    TEST(sleep_after_the_alarm),
    TEST(acpi_alarm),
    TEST(rtc_ends),
  };
#undef TEST
  return cmocka_run_group_tests_name("board", tests, NULL, NULL);
}
