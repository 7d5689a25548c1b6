/* SPDX-License-Identifier: Apache-2.0
 *
 * The local APIC's own sources of interrupts: timer, performance counters, LINT0 and LINT1. SDM vol. 3, 10.5.
 */
#include "board_apic_rig.h"

/* ---- the timer: 100 MHz, divided by 2 at reset ---- */

static void timer_one_shot(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, TIMER, 0x41);
  apic_put(rig, DIVIDE, 0x0B); /* by 1 */
  apic_put(rig, INITIAL, 1000);
  assert_int_equal(board_deadline(rig->board), 10 * US);
  assert_true(board_can_wake(rig->board));
  pass(rig, 4 * US);
  assert_int_equal(apic_get(rig, CURRENT), 600);
  pass(rig, 6 * US);
  assert_int_equal(acknowledge(rig), 0x41);
  assert_int_equal(apic_get(rig, CURRENT), 0);
  assert_int_equal(board_deadline(rig->board), NEVER);
}

static void timer_periodic(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, TIMER, PERIODIC | 0x41);
  apic_put(rig, INITIAL, 500); /* by 2 */
  for (unsigned i = 1; i < 5; i++) {
    assert_int_equal(board_deadline(rig->board), i * 10 * US);
    pass(rig, 10 * US);
    assert_int_equal(acknowledge(rig), 0x41);
    apic_put(rig, EOI, 0);
  }
  rig->now += 1000 * S + 5 * US;
  board_advance(rig->board, rig->now);
  acknowledge(rig);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr); /* once, however late */
  assert_int_equal(apic_get(rig, CURRENT), 250);
}

static void timer_counts_while_masked(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, TIMER, PERIODIC | MASKED | 0x41);
  apic_put(rig, INITIAL, 500);
  assert_int_equal(board_deadline(rig->board), NEVER);
  assert_false(board_can_wake(rig->board));
  pass(rig, 15 * US);
  assert_int_equal(apic_get(rig, CURRENT), 250);
  apic_put(rig, TIMER, PERIODIC | 0x41);
  assert_false(rig->intr); /* what ended while it was masked is lost */
  assert_int_equal(board_deadline(rig->board), 20 * US);
}

static void timer_changes_mode(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, TIMER, MASKED | 0x41);
  apic_put(rig, INITIAL, 1000);
  pass(rig, 15 * US);
  apic_put(rig, TIMER, PERIODIC | MASKED | 0x41);
  assert_int_equal(apic_get(rig, CURRENT), 250); /* goes on */
  pass(rig, 10 * US);
  assert_int_equal(apic_get(rig, CURRENT), 750);
  apic_put(rig, TIMER, MASKED | 0x41);
  pass(rig, S);
  assert_int_equal(apic_get(rig, CURRENT), 0);
  apic_put(rig, TIMER, PERIODIC | MASKED | 0x41);
  assert_int_equal(apic_get(rig, CURRENT), 0); /* stays at 0 */
  assert_int_equal(apic_get(rig, INITIAL), 1000);
}

static void timer_divides(void **state)
{
  static const uint8_t codes[] = {0, 1, 2, 3, 8, 9, 10, 11};
  static const unsigned divisors[] = {2, 4, 8, 16, 32, 64, 128, 1};
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, TIMER, 0x41);
  for (unsigned i = 0; i < 8; i++) {
    apic_put(rig, DIVIDE, codes[i]);
    apic_put(rig, INITIAL, 100);
    assert_int_equal(board_deadline(rig->board) - rig->now, 100 * divisors[i] * 10);
  }
  apic_put(rig, INITIAL, 0);
  assert_int_equal(board_deadline(rig->board), NEVER);
}

static void timer_tsc_deadline(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  msr_put(rig, 0x6E0, 1000);
  assert_int_equal(msr_get(rig, 0x6E0), 0); /* ignored in other modes */
  apic_put(rig, TIMER, TSC_DEADLINE | 0x41);
  apic_put(rig, INITIAL, 1000); /* ignored in this mode */
  assert_int_equal(board_deadline(rig->board), NEVER);
  msr_put(rig, 0x6E0, 20000); /* 2 ticks in a nanosecond */
  assert_int_equal(board_deadline(rig->board), 10 * US);
  pass(rig, 10 * US);
  assert_int_equal(acknowledge(rig), 0x41);
  apic_put(rig, EOI, 0);
  assert_int_equal(msr_get(rig, 0x6E0), 0);
  msr_put(rig, 0x6E0, 1); /* long ago */
  assert_int_equal(acknowledge(rig), 0x41);
  apic_put(rig, EOI, 0);
  msr_put(rig, 0x6E0, UINT64_MAX);
  assert_false(rig->intr);
  apic_put(rig, TIMER, 0x41); /* disarms */
  assert_int_equal(board_deadline(rig->board), NEVER);
}

/* ---- the performance interrupt ---- */

static void pmi_fixed(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, PERF, 0xF1);
  board_pmi(rig->board);
  assert_int_equal(acknowledge(rig), 0xF1);
  assert_int_equal(board_lvt_perf(rig->board), MASKED | 0xF1);
  assert_int_equal(rig->pmi, 1);
  apic_put(rig, EOI, 0);
  board_pmi(rig->board); /* masked itself: dropped */
  assert_false(rig->intr);
  assert_int_equal(rig->pmi, 2);
  apic_put(rig, PERF, 0xF1);
  board_pmi(rig->board);
  assert_true(rig->intr);
}

static void pmi_of_amd(void **state)
{
  struct rig *rig = *state;

  board_free(rig->board);
  rig->config.keeps_lvt_perf = true;
  assert_int_equal(rig_start(rig), 0);
  enable(rig);
  apic_put(rig, PERF, 0x400);
  board_pmi(rig->board);
  board_pmi(rig->board);
  assert_int_equal(rig->nmi, 2);
  assert_int_equal(apic_get(rig, PERF), 0x400);
}

static void pmi_nmi_and_smi(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  apic_put(rig, PERF, 0x400);
  board_pmi(rig->board);
  board_pmi(rig->board);
  assert_int_equal(rig->nmi, 1);
  assert_int_equal(apic_get(rig, PERF), MASKED | 0x400);
  apic_put(rig, PERF, 0x200);
  board_pmi(rig->board);
  board_pmi(rig->board);
  assert_int_equal(rig->smi, 1);
  assert_int_equal(rig->pmi, 4);
  assert_false(rig->intr);
}

static void pmi_in_a_disabled_apic(void **state)
{
  struct rig *rig = *state;

  apic_put(rig, PERF, 0x400);
  board_pmi(rig->board);
  enable(rig);
  apic_put(rig, PERF, 0x400);
  msr_put(rig, 0x1B, LAPIC | 0x100);
  board_pmi(rig->board);
  assert_int_equal(rig->nmi, 0);
  assert_int_equal(rig->pmi, 2);
}

static void pmi_in_x2apic_mode(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  to_x2apic(rig);
  msr_put(rig, 0x834, 0x55);
  board_pmi(rig->board);
  assert_int_equal(msr_get(rig, 0x834), MASKED | 0x55);
  assert_int_equal(acknowledge(rig), 0x55);
}

/* ---- LINT ---- */

static void lint_pins(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  board_nmi(rig->board);
  assert_int_equal(rig->nmi, 1);
  out(rig, 0x70, 0x8D);
  board_nmi(rig->board);
  assert_int_equal(rig->nmi, 1); /* masked at port 0x70 */
  out(rig, 0x70, 0x0D);
  apic_put(rig, LINT1, MASKED);
  board_nmi(rig->board);
  assert_int_equal(rig->nmi, 1);
  pic_program(rig, 0, 0);
  apic_put(rig, LINT0, 0x45); /* the 8259A as a vector of the APIC */
  board_ferr(rig->board);
  assert_int_equal(acknowledge(rig), 0x45);
  assert_false(rig->intr);
  msr_put(rig, 0x1B, LAPIC | 0x100);
  board_nmi(rig->board); /* off: the pin is NMI */
  assert_int_equal(rig->nmi, 2);
}

static void lint_level(void **state)
{
  struct rig *rig = *state;

  enable(rig);
  pic_program(rig, 0, 0);
  apic_put(rig, LINT0, 0x8045);
  board_ferr(rig->board);
  assert_int_equal(apic_get(rig, LINT0), 0xC045); /* remote IRR */
  assert_int_equal(acknowledge(rig), 0x45);
  apic_put(rig, EOI, 0);
  assert_int_equal(acknowledge(rig), 0x45); /* nobody served the 8259A: its INT is still high */
  out(rig, 0xF0, 0);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
  assert_int_equal(apic_get(rig, LINT0), 0x8045);
}

static void apic_goes_before_the_8259(void **state)
{
  struct rig *rig = *state;

  wire(rig);
  pic_program(rig, 0, 0);
  board_ferr(rig->board);
  self(rig, 0x31);
  assert_int_equal(acknowledge(rig), 0x31);
  assert_int_equal(acknowledge(rig), 0x75); /* ExtINT asks no priority */
}

PART(TEST(timer_one_shot), TEST(timer_periodic), TEST(timer_counts_while_masked), TEST(timer_changes_mode),
     TEST(timer_divides), TEST(timer_tsc_deadline), TEST(pmi_fixed), TEST(pmi_of_amd), TEST(pmi_nmi_and_smi),
     TEST(pmi_in_a_disabled_apic), TEST(pmi_in_x2apic_mode), TEST(lint_pins), TEST(lint_level),
     TEST(apic_goes_before_the_8259));
