/* SPDX-License-Identifier: Apache-2.0
 *
 * Delivery of interrupts and exceptions, and IRET. SDM vol. 3, chapter 6.
 */
#include "cpu_far_rig.h"

static void int_from_level_3(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 0x80, CODE_0, CODE + 0x40, 0xEE);
  code_at(g, CODE, 0xCD, 0x80, 0xCD, 0x80);
  code_at(g, CODE + 0x40, 0xF4);
  cpu_set_flags(g->cpu, 0x202);
  run_to(g, CODE + 0x40);
  static const uint32_t frame[] = {CODE + 2, CODE_3, 0x202, STACK_3, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 4 * i, 4), frame[i]);
  assert_int_equal(cpu_flags(g->cpu), 2);
  code_at(g, CODE + 0x41, 0xCF);
  start(g, CODE + 0x41);
  run_to(g, CODE + 0x40); /* back, and in again */
  assert_int_equal(get(g, STACK_0 - 20, 4), CODE + 4);
  expect_branch(g, 0, LB_BRANCH_INT, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_IRET, CODE + 0x41, CODE + 2);
  expect_branch(g, 2, LB_BRANCH_INT, CODE + 2, CODE + 0x40);
  assert_int_equal(g->seen[1].from_cpl, 0);
  assert_int_equal(g->seen[1].to_cpl, 3);
  guest_free(g);
}

static void interrupt_16_bit_gate(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 0x80, CODE_0, 0xF000, 0xE7); /* 16-bit trap gate: IF stays */
  code_at(g, CODE, 0xCD, 0x80);
  code_at(g, 0xF000, 0xF4);
  cpu_set_flags(g->cpu, 0x203);
  run_to(g, 0xF000);
  static const uint16_t frame[] = {(CODE + 2) & 0xFFFF, CODE_3, 0x203, STACK_3 & 0xFFFF, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 2 * i, 2), frame[i]);
  assert_int_equal(cpu_flags(g->cpu), 0x203);
  guest_free(g);
}

static void external_interrupt(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 0x40, CODE_0, CODE + 0x40, 0x8E); /* its DPL does not count */
  code_at(g, CODE, 0x90, 0xEB, 0xFE);
  code_at(g, CODE + 0x40, 0xF4);
  g->vector = 0x40;
  cpu_set_flags(g->cpu, 0x202);
  cpu_set_line(g->cpu, CPU_LINE_INTR, true);
  run_to(g, CODE + 0x40);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE);
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 4), 0x202); /* RF is 0 */
  expect_branch(g, 0, LB_BRANCH_INTERRUPT, CODE, CODE + 0x40);
  assert_int_equal(g->seen[0].from_cpl, 3);
  guest_free(g);
}

static void nmi_is_blocked_until_iret(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  code_at(g, CODE, 0x90, 0xF4);
  code_at(g, HANDLER + 0x20, 0x90, 0xCF);
  cpu_signal(g->cpu, CPU_NMI);
  assert_int_equal(cpu_run(g->cpu, 1), CPU_STOP_BUDGET); /* NOP of the handler */
  assert_true(g->cpu->is_nmi_blocked);
  cpu_signal(g->cpu, CPU_NMI);
  run_to(g, CODE + 1);
  assert_false(g->cpu->is_nmi_blocked);
  assert_int_equal(g->count, 4);
  expect_branch(g, 0, LB_BRANCH_NMI, CODE, HANDLER + 0x20);
  expect_branch(g, 1, LB_BRANCH_IRET, HANDLER + 0x21, CODE);
  expect_branch(g, 2, LB_BRANCH_NMI, CODE, HANDLER + 0x20);
  expect_branch(g, 3, LB_BRANCH_IRET, HANDLER + 0x21, CODE);
  guest_free(g);
}

static void interrupt_stack_table(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  put_vector_64(g, 0x80, CODE64_0, CODE + 0x40, 0x8E, 1);
  code_at(g, CODE, 0xCD, 0x80, 0xF4);
  code_at(g, CODE + 0x40, 0x48, 0xCF); /* iretq */
  cpu_set_flags(g->cpu, 0x202);
  g->cpu->r[RSP] = STACK_0 - 4;
  run_to(g, CODE + 2);
  uint64_t top = STACK_IST & ~UINT64_C(15);
  static const uint64_t frame[] = {CODE + 2, CODE64_0, 0x202, STACK_0 - 4, DATA_0};
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, top - sizeof(frame) + 8 * i, 8), frame[i]);
  assert_int_equal(g->cpu->r[RSP], STACK_0 - 4);
  assert_int_equal(g->cpu->segment[SS].selector, DATA_0);
  expect_branch(g, 0, LB_BRANCH_INT, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_IRET, CODE + 0x40, CODE + 2);
  guest_free(g);
}

static void interrupt_from_compatibility_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE_3);
  put_vector_64(g, 0x80, CODE64_0, CODE + 0x40, 0xEE, 0);
  code_at(g, CODE, 0xCD, 0x80, 0x90, 0xF4);
  code_at(g, CODE + 0x40, 0x48, 0xCF);
  run_to(g, HANDLER + 0xD0);                    /* HLT at level 3 faults */
  assert_int_equal(get(g, STACK_0 - 48, 8), 0); /* the error code */
  assert_int_equal(get(g, STACK_0 - 40, 8), CODE + 3);
  assert_int_equal(get(g, STACK_0 - 32, 8), CODE_3);
  assert_int_equal(get(g, STACK_0 - 24, 8) & FLAG_RF, FLAG_RF);
  assert_int_equal(get(g, STACK_0 - 16, 8), STACK_3);
  assert_int_equal(get(g, STACK_0 - 8, 8), DATA_3);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  assert_int_equal(g->seen[1].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_TO_32);
  expect_branch(g, 1, LB_BRANCH_IRET, CODE + 0x40, CODE + 2);
  expect_branch(g, 2, LB_BRANCH_FAULT, CODE + 3, HANDLER + 0xD0);
  guest_free(g);
}

static void gate_error_codes(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3); /* INT n at a gate of level 0 */
  code_at(g, CODE, 0xCD, 6);
  expect_exception(g, 13, 6 * 8 + 2, CODE);
  assert_int_equal(get(g, g->cpu->r[RSP] + 12, 4) & FLAG_RF, FLAG_RF);
  guest_free(g);

  g = guest_new_32(CODE_0); /* not present */
  put_vector(g, 0x80, CODE_0, CODE, 0x6E);
  code_at(g, CODE, 0xCD, 0x80);
  expect_exception(g, 11, 0x80 * 8 + 2, CODE);
  guest_free(g);

  g = guest_new_32(CODE_0); /* beyond the limit of IDTR */
  g->cpu->idtr.limit = 0x3FF;
  code_at(g, CODE, 0xCD, 0x80);
  expect_exception(g, 13, 0x80 * 8 + 2, CODE);
  guest_free(g);

  g = guest_new_32(CODE_0); /* the same for an external interrupt: EXT */
  g->vector = 0x80;
  g->cpu->idtr.limit = 0x3FF;
  cpu_set_flags(g->cpu, 0x202);
  cpu_set_line(g->cpu, CPU_LINE_INTR, true);
  code_at(g, CODE, 0x90, 0xF4);
  expect_exception(g, 13, 0x80 * 8 + 3, CODE);
  guest_free(g);
}

static void double_and_triple_fault(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, IDT + 8 * 13, 0, 8); /* #GP on the way to #GP */
  code_at(g, CODE, 0x66, 0xB8, LE16(BEYOND), 0x8E, 0xD8);
  expect_exception(g, 8, 0, CODE + 4);
  assert_int_equal(g->count, 1);
  expect_branch(g, 0, LB_BRANCH_FAULT, CODE + 4, HANDLER + 0x80);
  guest_free(g);

  g = guest_new_32(CODE_0); /* INT 11 is no exception: #GP on its way is #GP */
  put_vector(g, 11, BEYOND, 0, 0x8E);
  code_at(g, CODE, 0xCD, 11);
  expect_exception(g, 13, BEYOND, CODE);
  guest_free(g);

  g = guest_new_32(CODE_0);
  put(g, IDT + 8 * 13, 0, 8);
  put(g, IDT + 8 * 8, 0, 8);
  code_at(g, CODE, 0x66, 0xB8, LE16(BEYOND), 0x8E, 0xD8);
  assert_int_equal(cpu_run(g->cpu, 100), CPU_STOP_SHUTDOWN);
  assert_int_equal(g->count, 0);
  guest_free(g);
}

static void int1_is_not_recorded(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  code_at(g, CODE, 0xF1); /* its gate has DPL 0, which does not count */
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE + 1);
  assert_int_equal(g->count, 0);
  guest_free(g);
}

static void int3_and_into(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 3, CODE_0, HANDLER + 0x30, 0xEE);
  put_vector(g, 4, CODE_0, HANDLER + 0x40, 0xEE);
  code_at(g, HANDLER + 0x30, 0xCF);
  code_at(g, CODE, 0xCC, 0xCE, 0xB0, 0x7F, 0xFE, 0xC0, 0xCE); /* int3; into; mov al, 127; inc al; into */
  run_to(g, HANDLER + 0x40);
  assert_int_equal(g->count, 3);
  expect_branch(g, 0, LB_BRANCH_INT3, CODE, HANDLER + 0x30);
  expect_branch(g, 2, LB_BRANCH_INTO, CODE + 6, HANDLER + 0x40);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE + 7);
  guest_free(g);
}

static void iret_to_16_bit_stack(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  static const uint32_t frame[] = {CODE + 0x40, CODE_3, 2, 0x11110800, 0x33 | 3};
  put_segment(g, 0x30, 0x30000, 0xFFFF, 0xF2, 0);
  g->cpu->r[RSP] = STACK_0 - sizeof(frame);
  for (unsigned i = 0; i < 5; i++)
    put(g, STACK_0 - sizeof(frame) + 4 * i, frame[i], 4);
  code_at(g, CODE, 0xCF);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, STACK_0 - 8, 4), ((STACK_0 - sizeof(frame)) & 0xFFFF0000) | 0x800); /* the upper half stays */
  guest_free(g);
}

static void iret_in_long_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  static const uint64_t frame[] = {CODE + 0x40, CODE64_0, 2, STACK_0, 0}; /* a null SS below level 3 */
  g->cpu->r[RSP] = STACK_0 - sizeof(frame);
  for (unsigned i = 0; i < 5; i++)
    put(g, STACK_0 - sizeof(frame) + 8 * i, frame[i], 8);
  code_at(g, CODE, 0x48, 0xCF);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->segment[SS].selector, 0);
  expect_branch(g, 0, LB_BRANCH_IRET, CODE, CODE + 0x40);
  guest_free(g);

  g = guest_new_64(CODE64_0); /* there are no nested tasks */
  cpu_set_flags(g->cpu, 0x4002);
  code_at(g, CODE, 0x48, 0xCF);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), 0);
  guest_free(g);
}

/* #AC and #NP in each other's delivery: serial by the manual's table, and endless. */
static void alignment_in_delivery_ends(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  g->cpu->cr0 |= CR0_AM;
  cpu_set_flags(g->cpu, FLAG_AC | 2);
  put_vector(g, 6, CONFORMING, HANDLER + 0x60, 0x8E);
  put_vector(g, 11, CONFORMING, HANDLER + 0xB0, 0x8E);
  put_vector(g, 17, CONFORMING, HANDLER, 0x0E); /* not present */
  g->cpu->r[RSP] = STACK_3 - 1;
  code_at(g, CODE, 0x0F, 0x0B); /* ud2 */
  cpu_changed(g->cpu);
  run_to(g, HANDLER + 0x80);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), 0);
  guest_free(g);
}

static void code_breakpoint_leaves_rf(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  g->cpu->dr[0] = CODE + 1;
  g->cpu->dr[7] = 0x402;
  cpu_changed(g->cpu);
  code_at(g, CODE, 0x90, 0x90, 0xF4);
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), CODE + 1); /* a fault: before the instruction */
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 4) & FLAG_RF, 0);
  assert_int_equal(g->cpu->dr[6] & 0xF, 1);
  put(g, g->cpu->r[RSP] + 8, 2 | FLAG_RF, 4);
  code_at(g, HANDLER + 0x11, 0xCF);
  start(g, HANDLER + 0x11);
  run_to(g, CODE + 2);
  assert_int_equal(cpu_flags(g->cpu) & FLAG_RF, 0);
  guest_free(g);
}

static void real_mode_interrupt(void **state)
{
  (void)state;
  struct guest *g = guest_new_model("skylake");
  cpu_load_real_segment(g->cpu, CS, 0x1000);
  cpu_load_real_segment(g->cpu, SS, 0x2000);
  cpu_set_rip(g->cpu, 0);
  g->cpu->r[RSP] = 0x100;
  put(g, 4 * 0x21, 0x11000040, 4); /* 1100:0040 */
  code_at(g, 0x10000, 0xCD, 0x21, 0xF4);
  code_at(g, 0x11040, 0xCF);
  cpu_set_flags(g->cpu, 0x202);
  cpu_changed(g->cpu);
  cpu_listen(g->cpu, on_branch, g);
  run_to(g, 2);
  assert_int_equal(g->cpu->r[RSP], 0x100);
  assert_int_equal(get(g, 0x200FA, 2), 2);
  assert_int_equal(get(g, 0x200FC, 2), 0x1000);
  assert_int_equal(get(g, 0x200FE, 2), 0x202);
  assert_int_equal(cpu_flags(g->cpu), 0x202);
  expect_branch(g, 0, LB_BRANCH_INT, 0, 0x40);
  assert_int_equal(g->seen[0].to_base, 0x11000);
  expect_branch(g, 1, LB_BRANCH_IRET, 0x40, 2);
  guest_free(g);
}

static void delivery_is_restartable(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_3);
  /* Pages of 4 KiB, of which that below STACK_0 is not there: the frame reaches it. #PF has a stack of its own. */
  put(g, PAGES + 0x2000, (PAGES + 0x3000) | 7, 8);
  for (unsigned i = 0; i < 512; i++)
    put(g, PAGES + 0x3000 + 8 * i, i * 0x1000u | 7, 8);
  put(g, PAGES + 0x3000 + 8 * (STACK_0 / 0x1000 - 1), 0, 8);
  put_vector_64(g, 14, CODE64_0, HANDLER + 0xE0, 0x8E, 1);
  put_vector_64(g, 0x80, CODE64_0, CODE + 0x40, 0xEE, 0);
  put(g, TSS_A + 4, STACK_0 + 16, 8);
  put(g, STACK_0, UINT64_C(0x5555555555555555), 8);
  code_at(g, CODE, 0xCD, 0x80);
  run_to(g, HANDLER + 0xE0);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), 2); /* a supervisor's write to a page that is not present */
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 8), CODE);
  assert_int_equal(get(g, g->cpu->r[RSP] + 32, 8), STACK_3);
  assert_int_equal(get(g, STACK_0, 8), UINT64_C(0x5555555555555555)); /* nothing of the frame was written */
  guest_free(g);
}

PART(cmocka_unit_test(int_from_level_3), cmocka_unit_test(interrupt_16_bit_gate), cmocka_unit_test(external_interrupt),
     cmocka_unit_test(nmi_is_blocked_until_iret), cmocka_unit_test(interrupt_stack_table),
     cmocka_unit_test(interrupt_from_compatibility_mode), cmocka_unit_test(gate_error_codes),
     cmocka_unit_test(double_and_triple_fault), cmocka_unit_test(int1_is_not_recorded), cmocka_unit_test(int3_and_into),
     cmocka_unit_test(iret_to_16_bit_stack), cmocka_unit_test(iret_in_long_mode),
     cmocka_unit_test(alignment_in_delivery_ends), cmocka_unit_test(code_breakpoint_leaves_rf),
     cmocka_unit_test(real_mode_interrupt), cmocka_unit_test(delivery_is_restartable));
