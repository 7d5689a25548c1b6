/* SPDX-License-Identifier: Apache-2.0
 *
 * The local APIC: registers, modes, priorities. SDM vol. 3, chapter 10.
 */
#include "board_apic_rig.h"

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

PART(TEST(apic_starts_as_the_manual_says), TEST(apic_off_keeps_entries_masked), TEST(apic_takes_whole_registers),
     TEST(apic_base_transitions), TEST(apic_moves), TEST(apic_forgets_when_switched_off), TEST(apic_may_be_absent),
     TEST(x2apic_registers_are_msrs), TEST(x2apic_faults), TEST(apic_of_an_old_processor), TEST(x2apic_sends),
     TEST(apic_higher_vector_first), TEST(apic_task_priority_holds_back), TEST(apic_off_takes_no_vectors),
     TEST(apic_reports_errors), TEST(apic_sends_to_itself), TEST(apic_logical_destinations));
