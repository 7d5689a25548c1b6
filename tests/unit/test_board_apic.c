/* SPDX-License-Identifier: Apache-2.0
 *
 * Local APIC, I/O APIC and HPET. What is expected follows from SDM vol. 3 chapter 10, the 82093AA's data sheet and the
 * HPET specification.
 */
#include "board_rig.h"

enum {
  ID = 0x20,
  VERSION = 0x30,
  TPR = 0x80,
  PPR = 0xA0,
  EOI = 0xB0,
  LDR = 0xD0,
  DFR = 0xE0,
  SVR = 0xF0,
  ISR = 0x100,
  TMR = 0x180,
  IRR = 0x200,
  ESR = 0x280,
  CMCI = 0x2F0,
  ICR = 0x300,
  ICR_HIGH = 0x310,
  TIMER = 0x320,
  PERF = 0x340,
  LINT0 = 0x350,
  LINT1 = 0x360,
  ERROR = 0x370,
  INITIAL = 0x380,
  CURRENT = 0x390,
  DIVIDE = 0x3E0,
};

#define MASKED 0x10000u
#define PERIODIC 0x20000u
#define TSC_DEADLINE 0x40000u
#define SELF 0x40000u

static void enable(struct rig *rig)
{
  apic_put(rig, SVR, 0x1FF);
}

static void self(struct rig *rig, uint8_t vector)
{
  apic_put(rig, ICR, SELF | vector);
}

static void to_x2apic(struct rig *rig)
{
  msr_put(rig, 0x1B, LAPIC | 0xD00);
}

/* ---- registers and modes ---- */

static void apic_starts_as_the_manual_says(void **state)
{
  struct rig *rig = *state;
  assert_int_equal(msr_get(rig, 0x1B), LAPIC | 0x900);
  assert_int_equal(apic_get(rig, SVR), 0xFF);
  assert_int_equal(apic_get(rig, VERSION), 0x60014);
  assert_int_equal(apic_get(rig, DFR), UINT32_MAX);
  for (unsigned offset = TIMER; offset <= ERROR; offset += 0x10)
    assert_int_equal(apic_get(rig, offset), MASKED);
  assert_int_equal(apic_get(rig, CMCI), MASKED);
  assert_false(board_apic_is_enabled(rig->board));
}

static void apic_off_keeps_entries_masked(void **state)
{
  struct rig *rig = *state;
  apic_put(rig, PERF, 0x400);
  assert_int_equal(apic_get(rig, PERF), 0x10400);
  enable(rig);
  assert_true(board_apic_is_enabled(rig->board));
  apic_put(rig, PERF, 0x400);
  assert_int_equal(board_lvt_perf(rig->board), 0x400);
  apic_put(rig, SVR, 0xFF);
  assert_int_equal(apic_get(rig, PERF), 0x10400);
}

static void apic_takes_whole_registers(void **state)
{
  struct rig *rig = *state;
  board_write(rig->board, LAPIC + TPR, 1, 0x50);
  board_write(rig->board, LAPIC + TPR + 4, 4, 0x50);
  assert_int_equal(apic_get(rig, TPR), 0);
  apic_put(rig, TPR, 0x50);
  assert_int_equal(board_read(rig->board, LAPIC + TPR, 1), 0x50);
  assert_int_equal(board_task_priority(rig->board), 5);
  board_set_task_priority(rig->board, 9);
  assert_int_equal(apic_get(rig, TPR), 0x90);
}

static void apic_base_transitions(void **state)
{
  struct rig *rig = *state;
  struct board *board = rig->board;
  assert_int_equal(board_apic_write(board, 0x1B, LAPIC | 0x500), -1); /* x2APIC without enable */
  assert_int_equal(board_apic_write(board, 0x1B, LAPIC | 0x901), -1);
  assert_int_equal(board_apic_write(board, 0x1B, LAPIC | 0x900 | UINT64_C(1) << 40), -1);
  msr_put(rig, 0x1B, LAPIC | 0x100);                                  /* off */
  assert_int_equal(board_apic_write(board, 0x1B, LAPIC | 0xD00), -1); /* off to x2APIC */
  assert_false(board_owns(board, LAPIC));
  msr_put(rig, 0x1B, LAPIC | 0x900);
  to_x2apic(rig);
  assert_false(board_owns(board, LAPIC));
  assert_int_equal(board_apic_write(board, 0x1B, LAPIC | 0x900), -1); /* x2APIC to xAPIC */
  msr_put(rig, 0x1B, LAPIC | 0xD00);
  msr_put(rig, 0x1B, LAPIC | 0x100);
  msr_put(rig, 0x1B, LAPIC | 0x900);
  assert_true(board_owns(board, LAPIC));
}

static void apic_moves(void **state)
{
  struct rig *rig = *state;
  msr_put(rig, 0x1B, UINT64_C(0x1234567000) | 0x900);
  assert_false(board_owns(rig->board, LAPIC));
  assert_true(board_owns(rig->board, UINT64_C(0x1234567FFF)));
  assert_int_equal(board_read(rig->board, UINT64_C(0x1234567030), 4), 0x60014);
}

static void apic_forgets_when_switched_off(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  apic_put(rig, PERF, 0x4F1);
  self(rig, 0x41);
  assert_true(rig->intr);
  msr_put(rig, 0x1B, LAPIC | 0x100);
  assert_false(rig->intr);
  msr_put(rig, 0x1B, LAPIC | 0x900);
  assert_false(rig->intr);
  assert_int_equal(apic_get(rig, PERF), MASKED);
}

static void apic_may_be_absent(void **state)
{
  struct rig *rig = *state;
  uint64_t value = 7;
  board_free(rig->board);
  rig->config.has_apic = false;
  assert_int_equal(rig_start(rig), 0);
  assert_int_equal(board_apic_read(rig->board, 0x1B, &value), -1);
  assert_int_equal(board_apic_read(rig->board, 0x802, &value), -1);
  assert_int_equal(board_apic_write(rig->board, 0x1B, LAPIC | 0x900), -1);
  assert_int_equal(value, 7);
  assert_false(board_owns(rig->board, LAPIC));
  pic_program(rig, 0, 0);
  board_ferr(rig->board);
  assert_int_equal(acknowledge(rig), 0x75);
  board_pmi(rig->board);
  assert_int_equal(rig->pmi, 1);
}

static void x2apic_registers_are_msrs(void **state)
{
  struct rig *rig = *state;
  uint64_t value;
  assert_int_equal(board_apic_read(rig->board, 0x802, &value), -1); /* not in xAPIC mode */
  enable(rig);
  to_x2apic(rig);
  assert_int_equal(msr_get(rig, 0x802), 0);
  assert_int_equal(msr_get(rig, 0x803), 0x60014);
  assert_int_equal(msr_get(rig, 0x80D), 1);
  assert_int_equal(msr_get(rig, 0x80F), 0x1FF); /* what was programmed stays */
  msr_put(rig, 0x808, 0x20);
  assert_int_equal(msr_get(rig, 0x808), 0x20);
}

static void x2apic_faults(void **state)
{
  static const struct {
    uint32_t msr;
    uint64_t value;
  } bad[] = {{0x802, 0},       {0x803, 0},       {0x808, 0x100},
             {0x80A, 0},       {0x80B, 1},       {0x80D, 0},
             {0x80E, 0},       {0x80F, 0x10000}, {0x810, 0},
             {0x828, 1},       {0x831, 0},       {0x832, 1 << 20},
             {0x834, 0x20000}, {0x839, 0},       {0x83E, 4},
             {0x83F, 0x100},   {0x830, 1 << 20}, {0x837, 0x700},
             {0x800, 0},       {0x83A, 0},       {0x838, UINT64_C(1) << 32}};
  struct rig *rig = *state;
  uint64_t value = 7;
  to_x2apic(rig);
  for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
    assert_int_equal(board_apic_write(rig->board, bad[i].msr, bad[i].value), -1);
  assert_int_equal(board_apic_read(rig->board, 0x80B, &value), -1);
  assert_int_equal(board_apic_read(rig->board, 0x80E, &value), -1);
  assert_int_equal(board_apic_read(rig->board, 0x831, &value), -1);
  assert_int_equal(board_apic_read(rig->board, 0x83F, &value), -1);
  assert_int_equal(board_apic_read(rig->board, 0x840, &value), -1);
  assert_int_equal(value, 7);
}

static void apic_of_an_old_processor(void **state)
{
  struct rig *rig = *state;
  uint64_t value;
  board_free(rig->board);
  rig->config.has_x2apic = rig->config.has_tsc_deadline = false;
  rig->config.physical_bits = 0;
  rig->config.tsc_per_second = 0;
  assert_int_equal(rig_start(rig), 0);
  assert_int_equal(board_apic_write(rig->board, 0x1B, LAPIC | 0xD00), -1);
  assert_int_equal(board_apic_read(rig->board, 0x6E0, &value), -1);
  assert_int_equal(board_apic_write(rig->board, 0x6E0, 1), -1);
  enable(rig);
  apic_put(rig, TIMER, TSC_DEADLINE | 0x41);
  assert_int_equal(apic_get(rig, TIMER), 0x41); /* the bit is not there */
  apic_put(rig, ID, 0x05000000);
  assert_int_equal(apic_get(rig, ID), 0x05000000);
}

static void x2apic_sends(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  to_x2apic(rig);
  msr_put(rig, 0x83F, 0x31); /* SELF IPI */
  assert_int_equal(acknowledge(rig), 0x31);
  msr_put(rig, 0x80B, 0);
  msr_put(rig, 0x830, 0x32); /* to ID 0 */
  assert_int_equal(acknowledge(rig), 0x32);
  msr_put(rig, 0x80B, 0);
  msr_put(rig, 0x830, UINT64_C(1) << 32 | 0x33); /* to ID 1: nobody */
  assert_false(rig->intr);
  assert_int_equal(msr_get(rig, 0x830), UINT64_C(1) << 32 | 0x33);
  msr_put(rig, 0x830, UINT64_C(1) << 32 | 0x834); /* logical, cluster 0, place 0 */
  assert_int_equal(acknowledge(rig), 0x34);
}

/* ---- priorities ---- */

static void apic_higher_vector_first(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  self(rig, 0x31);
  self(rig, 0x52);
  assert_int_equal(apic_get(rig, IRR + 0x10), 0x20000);
  assert_int_equal(acknowledge(rig), 0x52);
  assert_false(rig->intr); /* 0x31 is of a lower class */
  assert_int_equal(apic_get(rig, PPR), 0x50);
  assert_int_equal(apic_get(rig, ISR + 0x20), 1 << 18);
  self(rig, 0x5F); /* of the same class */
  assert_false(rig->intr);
  self(rig, 0x60);
  assert_int_equal(acknowledge(rig), 0x60);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
  apic_put(rig, EOI, 0);
  assert_int_equal(acknowledge(rig), 0x5F);
  apic_put(rig, EOI, 0);
  assert_int_equal(acknowledge(rig), 0x31);
}

static void apic_task_priority_holds_back(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  apic_put(rig, TPR, 0x45);
  assert_int_equal(apic_get(rig, PPR), 0x45);
  self(rig, 0x4F);
  assert_false(rig->intr);
  board_set_task_priority(rig->board, 3);
  assert_true(rig->intr);
  board_set_task_priority(rig->board, 4);
  assert_false(rig->intr);
  assert_int_equal(board_acknowledge(rig->board), 0xFF); /* too late: spurious */
  assert_int_equal(apic_get(rig, ISR + 0x70), 0);
}

static void apic_off_takes_no_vectors(void **state)
{
  struct rig *rig = *state;
  self(rig, 0x41);
  assert_false(rig->intr);
  apic_put(rig, ICR, SELF | 0x400);
  assert_int_equal(rig->nmi, 1); /* but it takes NMI */
}

static void apic_reports_errors(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  apic_put(rig, ERROR, 0xFE);
  self(rig, 0x0F);
  assert_int_equal(apic_get(rig, ESR), 0);
  apic_put(rig, ESR, 0);
  assert_int_equal(apic_get(rig, ESR), 0x20);
  assert_int_equal(acknowledge(rig), 0xFE);
  apic_put(rig, EOI, 0);
  apic_get(rig, 0x40); /* reserved */
  apic_put(rig, ESR, 0);
  assert_int_equal(apic_get(rig, ESR), 0x80);
  assert_int_equal(acknowledge(rig), 0xFE);
  apic_put(rig, EOI, 0);
  apic_put(rig, TIMER, 0x05);
  apic_put(rig, INITIAL, 1);
  pass(rig, S);
  apic_put(rig, ESR, 0);
  assert_int_equal(apic_get(rig, ESR), 0x40); /* received an illegal vector */
}

static void apic_sends_to_itself(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  apic_put(rig, ICR_HIGH, 0);
  apic_put(rig, ICR, 0x200);
  assert_int_equal(rig->smi, 1);
  apic_put(rig, ICR, 0x80400); /* all with itself */
  assert_int_equal(rig->nmi, 1);
  apic_put(rig, ICR, 0xC0400); /* all but itself */
  assert_int_equal(rig->nmi, 1);
  apic_put(rig, ICR, 0x699);
  assert_int_equal(rig->startup_vector, 0x99);
  apic_put(rig, ICR, 0x8500); /* INIT, level, de-assert */
  assert_int_equal(rig->init, 0);
  apic_put(rig, ICR_HIGH, 1 << 24);
  apic_put(rig, ICR, 0x400);
  assert_int_equal(rig->nmi, 1);
  apic_put(rig, ICR_HIGH, 0xFFu << 24);
  apic_put(rig, ICR, 0xC500); /* INIT to everybody */
  assert_int_equal(rig->init, 1);
  assert_int_equal(apic_get(rig, SVR), 0xFF); /* which resets the APIC */
}

static void apic_logical_destinations(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  apic_put(rig, LDR, 0x21000000);
  apic_put(rig, ICR_HIGH, 0x20u << 24); /* flat: one bit in common */
  apic_put(rig, ICR, 0xC00);
  assert_int_equal(rig->nmi, 1);
  apic_put(rig, ICR_HIGH, 0x02u << 24);
  apic_put(rig, ICR, 0xC00);
  assert_int_equal(rig->nmi, 1);
  apic_put(rig, DFR, 0);
  apic_put(rig, ICR_HIGH, 0x21u << 24); /* cluster 2, place 0 */
  apic_put(rig, ICR, 0xC00);
  assert_int_equal(rig->nmi, 2);
  apic_put(rig, ICR_HIGH, 0x31u << 24);
  apic_put(rig, ICR, 0xC00);
  assert_int_equal(rig->nmi, 2);
}

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

/* ---- I/O APIC ---- */

static void ioapic_put(struct rig *rig, uint8_t index, uint32_t value)
{
  board_write(rig->board, IOAPIC, 4, index);
  board_write(rig->board, IOAPIC + 0x10, 4, value);
}

static uint32_t ioapic_get(struct rig *rig, uint8_t index)
{
  board_write(rig->board, IOAPIC, 4, index);
  return (uint32_t)board_read(rig->board, IOAPIC + 0x10, 4);
}

static void ioapic_route(struct rig *rig, unsigned pin, uint32_t low)
{
  ioapic_put(rig, (uint8_t)(0x11 + 2 * pin), 0);
  ioapic_put(rig, (uint8_t)(0x10 + 2 * pin), low);
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

/* ---- HPET: 100 MHz ---- */

static void hpet_put(struct rig *rig, unsigned offset, uint64_t value)
{
  board_write(rig->board, HPET + offset, 8, value);
}

static uint64_t hpet_get(struct rig *rig, unsigned offset)
{
  return board_read(rig->board, HPET + offset, 8);
}

static void hpet_counts(void **state)
{
  struct rig *rig = *state;
  assert_int_equal(hpet_get(rig, 0), UINT64_C(0x009896808086A201));
  pass(rig, MS);
  assert_int_equal(hpet_get(rig, 0xF0), 0);
  hpet_put(rig, 0x10, 1);
  pass(rig, MS);
  assert_int_equal(hpet_get(rig, 0xF0), 100000);
  hpet_put(rig, 0x10, 0);
  pass(rig, MS);
  assert_int_equal(hpet_get(rig, 0xF0), 100000);
  hpet_put(rig, 0xF0, UINT64_C(0x1FFFFFFFF));
  hpet_put(rig, 0x10, 1);
  pass(rig, 10);
  assert_int_equal(board_read(rig->board, HPET + 0xF0, 4), 0);
  assert_int_equal(board_read(rig->board, HPET + 0xF4, 4), 2);
}

static void hpet_one_shot(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  ioapic_route(rig, 20, 0x60);
  hpet_put(rig, 0x108, 1000);
  hpet_put(rig, 0x100, 20 << 9 | 4);
  assert_int_equal(hpet_get(rig, 0x100), UINT64_C(0x00FF000000000034) | 20 << 9);
  hpet_put(rig, 0x10, 1);
  assert_int_equal(board_deadline(rig->board), 10 * US);
  pass(rig, 10 * US);
  assert_int_equal(acknowledge(rig), 0x60);
  apic_put(rig, EOI, 0);
  pass(rig, S);
  assert_false(rig->intr);
}

static void hpet_level(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  ioapic_route(rig, 20, 0x8060);
  hpet_put(rig, 0x128, 1000);
  hpet_put(rig, 0x120, 20 << 9 | 6);
  hpet_put(rig, 0x10, 1);
  pass(rig, 10 * US);
  assert_int_equal(hpet_get(rig, 0x20), 2);
  acknowledge(rig);
  hpet_put(rig, 0x20, 2);
  assert_int_equal(hpet_get(rig, 0x20), 0);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
}

static void hpet_periodic(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  ioapic_route(rig, 20, 0x60);
  hpet_put(rig, 0x100, 20 << 9 | 0x4C); /* periodic, comparator is set too */
  hpet_put(rig, 0x108, 1000);           /* the first */
  hpet_put(rig, 0x108, 500);            /* then every */
  hpet_put(rig, 0x10, 1);
  pass(rig, 10 * US);
  assert_int_equal(acknowledge(rig), 0x60);
  apic_put(rig, EOI, 0);
  assert_int_equal(board_deadline(rig->board), 15 * US);
  rig->now += 1000 * S;
  board_advance(rig->board, rig->now);
  acknowledge(rig);
  apic_put(rig, EOI, 0);
  assert_false(rig->intr);
  assert_int_equal(board_deadline(rig->board) - rig->now, 5 * US);
}

/* As a kernel with 32-bit accesses does it: the bit for the comparator is used up by the first write. */
static void hpet_halves(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  ioapic_route(rig, 20, 0x60);
  board_write(rig->board, HPET + 0x100, 4, 20 << 9 | 0x14C);
  board_write(rig->board, HPET + 0x108, 4, 3000);
  board_write(rig->board, HPET + 0x108, 4, 500);
  board_write(rig->board, HPET + 0x10, 4, 1);
  assert_int_equal(board_deadline(rig->board), 30 * US);
  pass(rig, 30 * US);
  assert_int_equal(board_deadline(rig->board), 35 * US);
  board_write(rig->board, HPET + 0x10, 4, 0);
  board_write(rig->board, HPET + 0xF4, 4, 7);
  assert_int_equal(hpet_get(rig, 0xF0) >> 32, 7);
  board_write(rig->board, HPET + 0xF0, 1, 7); /* only halves and wholes */
  assert_int_equal(hpet_get(rig, 0xF0) & 0xFFFFFFFF, 3000);
}

static void hpet_32_bits_wrap(void **state)
{
  struct rig *rig = *state;
  enable(rig);
  ioapic_route(rig, 20, 0x60);
  hpet_put(rig, 0xF0, 0xFFFFFF00);
  hpet_put(rig, 0x100, 20 << 9 | 0x104);
  hpet_put(rig, 0x108, 0x100);
  hpet_put(rig, 0x10, 1);
  assert_int_equal(board_deadline(rig->board), 0x200 * 10);
  pass(rig, 0x200 * 10);
  assert_true(rig->intr);
}

static void hpet_replaces_the_old_timers(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xFA, 0xFE);
  out(rig, 0x43, 0x34);
  out(rig, 0x40, 0xE8);
  out(rig, 0x40, 0x03);
  eoi(rig, acknowledge(rig));
  hpet_put(rig, 0x108, 1000000);
  hpet_put(rig, 0x100, 4);
  hpet_put(rig, 0x128, 2000000);
  hpet_put(rig, 0x120, 4);
  hpet_put(rig, 0x10, 3);
  pass(rig, 10 * MS - 1);
  assert_false(rig->intr); /* the 8254 is cut off */
  pass(rig, 1);
  assert_int_equal(acknowledge(rig), 0x08);
  eoi(rig, 0x08);
  pass(rig, 10 * MS);
  assert_int_equal(acknowledge(rig), 0x70);
  eoi(rig, 0x70);
  hpet_put(rig, 0x10, 1);
  pass(rig, MS);
  assert_int_equal(acknowledge(rig), 0x08); /* and back */
}

/* IRQ 8 leaves the RTC low, and is as high as the RTC has it when it comes back: as with QEMU's hpet. */
static void hpet_gives_the_clock_its_line_back(void **state)
{
  struct rig *rig = *state;
  wire(rig);
  pic_program(rig, 0xFB, 0xFE);
  hpet_put(rig, 0x10, 3);
  out(rig, 0x70, 0x0B);
  out(rig, 0x71, 0x12); /* an interrupt every second */
  pass(rig, 3 * S);
  assert_false(rig->intr);
  hpet_put(rig, 0x10, 1);
  assert_true(rig->intr);
  out(rig, 0xA0, 0x0A); /* IRR is read */
  assert_int_equal(in(rig, 0xA0), 1);
  hpet_put(rig, 0x10, 3);
  assert_int_equal(in(rig, 0xA0), 0);
  hpet_put(rig, 0x10, 1);
  assert_int_equal(acknowledge(rig), 0x70);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
    TEST(apic_starts_as_the_manual_says),
    TEST(apic_off_keeps_entries_masked),
    TEST(apic_takes_whole_registers),
    TEST(apic_base_transitions),
    TEST(apic_moves),
    TEST(apic_forgets_when_switched_off),
    TEST(apic_may_be_absent),
    TEST(x2apic_registers_are_msrs),
    TEST(x2apic_faults),
    TEST(apic_of_an_old_processor),
    TEST(x2apic_sends),
    TEST(apic_higher_vector_first),
    TEST(apic_task_priority_holds_back),
    TEST(apic_off_takes_no_vectors),
    TEST(apic_reports_errors),
    TEST(apic_sends_to_itself),
    TEST(apic_logical_destinations),
    TEST(timer_one_shot),
    TEST(timer_periodic),
    TEST(timer_counts_while_masked),
    TEST(timer_changes_mode),
    TEST(timer_divides),
    TEST(timer_tsc_deadline),
    TEST(pmi_fixed),
    TEST(pmi_of_amd),
    TEST(pmi_nmi_and_smi),
    TEST(pmi_in_a_disabled_apic),
    TEST(pmi_in_x2apic_mode),
    TEST(lint_pins),
    TEST(lint_level),
    TEST(apic_goes_before_the_8259),
    TEST(ioapic_registers),
    TEST(ioapic_edge),
    TEST(ioapic_level),
    TEST(ioapic_own_eoi),
    TEST(ioapic_refused_level_is_offered_again),
    TEST(ioapic_modes_and_destinations),
    TEST(ioapic_irq_0_is_pin_2),
    TEST(ioapic_passes_the_8259),
    TEST(hpet_counts),
    TEST(hpet_one_shot),
    TEST(hpet_level),
    TEST(hpet_periodic),
    TEST(hpet_halves),
    TEST(hpet_32_bits_wrap),
    TEST(hpet_replaces_the_old_timers),
    TEST(hpet_gives_the_clock_its_line_back),
  };
#undef TEST
  return cmocka_run_group_tests_name("board_apic", tests, NULL, NULL);
}
