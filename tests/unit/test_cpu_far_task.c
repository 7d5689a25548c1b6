/* SPDX-License-Identifier: Apache-2.0
 *
 * Task switches and virtual-8086 mode. SDM vol. 3, chapters 7 and 20.
 */
#include "cpu_far_rig.h"

/* ---- tasks ---- */

static void fill_task(struct guest *g, uint32_t tss, uint32_t eip, uint32_t esp)
{
  static const uint16_t segments[] = {DATA_0, CODE_0, DATA_0, DATA_0, 0, DATA_3};

  put(g, tss + 4, STACK_0, 4);
  put(g, tss + 8, DATA_0, 4);
  put(g, tss + 0x20, eip, 4);
  put(g, tss + 0x24, 0x202, 4);
  put(g, tss + 0x28, 0xAAAA0001, 4); /* EAX */
  put(g, tss + 0x38, esp, 4);
  for (unsigned i = 0; i < 6; i++)
    put(g, tss + 0x48 + 4 * i, segments[i], 4);
}

static void task_by_jump(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  code_at(g, CODE + 0x40, 0xF4);
  g->cpu->r[RBX] = 0x12345678;
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_B);
  assert_int_equal(access_of(g, TASK_A), 0x89); /* available again */
  assert_int_equal(access_of(g, TASK_B), 0x8B); /* busy */
  assert_int_equal(g->cpu->r[RAX], 0xAAAA0001);
  assert_int_equal(g->cpu->r[RSP], STACK_3);
  assert_int_equal(g->cpu->segment[GS].selector, DATA_3);
  assert_int_equal(g->cpu->segment[FS].access, 0);
  assert_int_equal(cpu_flags(g->cpu), 0x202); /* no NT */
  assert_true(g->cpu->cr0 & CR0_TS);
  assert_int_equal(get(g, TSS_A + 0x20, 4), CODE + 7); /* saved */
  assert_int_equal(get(g, TSS_A + 0x34, 4), 0x12345678);
  assert_int_equal(get(g, TSS_A + 0x4C, 2), CODE_0);
  assert_int_equal(g->count, 1);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, CODE + 0x40);
  guest_free(g);
}

static void task_by_call_and_iret(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, GDT + TASK_GATE, gate_bits(TASK_B, 0, 0x85, 0), 8);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  code_at(g, CODE, 0x9A, LE32(0), LE16(TASK_GATE), 0xF4);
  code_at(g, CODE + 0x40, 0x40, 0xCF); /* inc eax; iret */
  run_to(g, CODE + 7);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_A);
  assert_int_equal(access_of(g, TASK_A), 0x8B);
  assert_int_equal(access_of(g, TASK_B), 0x89);
  assert_int_equal(get(g, TSS_B, 2), TASK_A); /* the link */
  assert_int_equal(get(g, TSS_B + 0x20, 4), CODE + 0x42);
  assert_int_equal(get(g, TSS_B + 0x28, 4), 0xAAAA0002);
  assert_int_equal(get(g, TSS_B + 0x24, 4) & FLAG_NT, 0);
  assert_int_equal(g->cpu->r[RSP], STACK_0);
  assert_int_equal(g->count, 2);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_TASK_SWITCH, CODE + 0x41, CODE + 7);
  guest_free(g);
}

static void task_by_exception(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  put_vector(g, 13, TASK_B, 0, 0x85);
  code_at(g, CODE, 0x66, 0xB8, LE16(BEYOND), 0x8E, 0xD8);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->r[RSP], STACK_3 - 4);
  assert_int_equal(get(g, STACK_3 - 4, 4), BEYOND);    /* the error code on the new stack */
  assert_int_equal(get(g, TSS_A + 0x20, 4), CODE + 4); /* the faulting instruction */
  assert_true(get(g, TSS_A + 0x24, 4) & FLAG_RF);
  assert_true(cpu_flags(g->cpu) & FLAG_NT);
  assert_int_equal(get(g, TSS_B, 2), TASK_A);
  assert_int_equal(access_of(g, TASK_A), 0x8B); /* both busy */
  assert_int_equal(access_of(g, TASK_B), 0x8B);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE + 4, CODE + 0x40);
  guest_free(g);
}

static void task_16_bit(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put_segment(g, TASK_B, TSS_B, 0x2B, 0x81, 0);
  put(g, TSS_B + 0x0E, 0x40, 2);
  put(g, TSS_B + 0x10, 0x202, 2);
  put(g, TSS_B + 0x12, 0xBEEF, 2);
  put(g, TSS_B + 0x1A, 0x800, 2);
  put(g, TSS_B + 0x22, DATA_0, 2);
  put(g, TSS_B + 0x24, CODE16_0, 2);
  put(g, TSS_B + 0x26, DATA_0, 2);
  put(g, TSS_B + 0x28, DATA_0, 2);
  code_at(g, CODE, 0x9A, LE32(0), LE16(TASK_B), 0xF4);
  code_at(g, CODE + 0x40, 0x66, 0xCF); /* iretd: the size does not matter */
  run_to(g, CODE + 7);
  assert_int_equal(get(g, TSS_B, 2), TASK_A);
  assert_int_equal(get(g, TSS_B + 0x0E, 2), 0x42);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, 0x40);
  assert_int_equal(g->seen[0].to_base, 0x10000);
  guest_free(g);
}

static void task_trap_flag(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  put(g, TSS_B + 0x64, 1, 2);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, STACK_3 - 12, 4), CODE + 0x40);
  assert_true(g->cpu->dr[6] & DR6_BT);
  assert_int_equal(g->count, 1); /* #DB is not reported */
  guest_free(g);
}

static void task_faults(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0); /* a limit that is too small: in the old task */
  put_segment(g, TASK_B, TSS_B, 0x66, 0x89, 0);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  expect_exception(g, 10, TASK_B, CODE);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_A);
  guest_free(g);

  g = guest_new_32(CODE_0); /* a bad SS: in the new one */
  fill_task(g, TSS_B, CODE + 0x40, STACK_3);
  put(g, TSS_B + 0x4C, CODE_3, 2);
  put(g, TSS_B + 0x50, DATA_0, 2);
  code_at(g, CODE, 0xEA, LE32(0), LE16(TASK_B));
  expect_exception(g, 10, DATA_0, CODE + 0x40);
  assert_int_equal(g->cpu->segment[TR].selector, TASK_B);
  assert_int_equal(get(g, g->cpu->r[RSP] + 8, 4), CODE_3);
  expect_branch(g, 0, LB_BRANCH_TASK_SWITCH, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_FAULT, CODE + 0x40, HANDLER + 0xA0);
  guest_free(g);

  g = guest_new_32(CODE_0); /* IRET with NT and a link to what is no busy TSS */
  put(g, TSS_A, TASK_B, 2);
  cpu_set_flags(g->cpu, 0x4002);
  code_at(g, CODE, 0xCF);
  expect_exception(g, 10, TASK_B, CODE);
  guest_free(g);
}

/* ---- virtual-8086 mode ---- */

static void push_v8086_frame(struct guest *g, uint32_t eflags)
{
  static const uint32_t tail[] = {0x800, 0x2200, 0x2300, 0x2400, 0x2500, 0x2600}; /* ESP SS ES DS FS GS */

  g->cpu->r[RSP] = STACK_0 - 36;
  put(g, STACK_0 - 36, 0, 4);
  put(g, STACK_0 - 32, 0x1800, 4);
  put(g, STACK_0 - 28, eflags, 4);
  for (unsigned i = 0; i < 6; i++)
    put(g, STACK_0 - 24 + 4 * i, tail[i], 4);
}

static void v8086_in_and_out(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  push_v8086_frame(g, FLAG_VM | FLAG_IOPL | 0x202);
  code_at(g, CODE, 0xCF);
  code_at(g, 0x18000, 0xCD, 0x30);
  put_vector(g, 0x30, CODE_0, CODE + 0x40, 0xEE);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  static const uint32_t frame[] = {2,      0x1800, FLAG_VM | FLAG_IOPL | 0x202, 0x800, 0x2200, 0x2300, 0x2400,
                                   0x2500, 0x2600};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 9; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 4 * i, 4), frame[i]);
  assert_int_equal(cpu_flags(g->cpu) & (FLAG_VM | FLAG_IF), 0);
  assert_int_equal(g->cpu->segment[DS].access, 0); /* null */
  expect_branch(g, 0, LB_BRANCH_IRET, CODE, 0);
  assert_int_equal(g->seen[0].to_base, 0x18000);
  assert_int_equal(g->seen[0].to_cpl, 3);
  expect_branch(g, 1, LB_BRANCH_INT, 0, CODE + 0x40);
  assert_int_equal(g->seen[1].from_base, 0x18000);
  guest_free(g);
}

static void v8086_int_needs_iopl(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  push_v8086_frame(g, FLAG_VM | 0x202);
  code_at(g, CODE, 0xCF);
  code_at(g, 0x18000, 0xCD, 0x30);
  expect_exception(g, 13, 0, 0);
  guest_free(g);
}

static void v8086_redirection(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  g->cpu->segment[TR].limit = 0xFF;
  g->cpu->cr4 |= CR4_VME;
  put(g, TSS_A + 0x66, 0x88, 2); /* I/O map; the redirection map lies before it, all zero */
  push_v8086_frame(g, FLAG_VM | FLAG_VIF | 0x202);
  code_at(g, CODE, 0xCF);
  code_at(g, 0x18000, 0xCD, 0x21, 0xCD, 0x22);
  put(g, 4 * 0x21, 0x18100000, 4); /* 1810:0000 */
  code_at(g, 0x18100, 0xCF);
  put(g, TSS_A + 0x68 + 0x22 / 8, 1 << (0x22 & 7), 1); /* INT 22h is not redirected */
  expect_exception(g, 13, 0, 2);
  assert_int_equal(get(g, 0x22800 - 2, 2), 0x3202); /* IF is VIF, IOPL reads 3 */
  assert_int_equal(get(g, 0x22800 - 4, 2), 0x1800);
  assert_int_equal(get(g, 0x22800 - 6, 2), 2);
  assert_true(get(g, g->cpu->r[RSP] + 12, 4) & FLAG_VIF); /* IRET gave it back */
  expect_branch(g, 1, LB_BRANCH_INT, 0, 0);
  assert_int_equal(g->seen[1].to_base, 0x18100);
  assert_int_equal(g->seen[1].to_cpl, 3);
  expect_branch(g, 2, LB_BRANCH_IRET, 0, 2);
  guest_free(g);
}

PART(cmocka_unit_test(task_by_jump), cmocka_unit_test(task_by_call_and_iret), cmocka_unit_test(task_by_exception),
     cmocka_unit_test(task_16_bit), cmocka_unit_test(task_trap_flag), cmocka_unit_test(task_faults),
     cmocka_unit_test(v8086_in_and_out), cmocka_unit_test(v8086_int_needs_iopl), cmocka_unit_test(v8086_redirection));
