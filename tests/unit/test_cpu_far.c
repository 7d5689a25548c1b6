/* SPDX-License-Identifier: Apache-2.0
 *
 * Far jumps, calls and returns of the interpreter, through segments and gates, in protected and in IA-32e mode. SDM
 * vol. 3, chapter 5.
 */
#include "cpu_far_rig.h"

/* ---- far jumps and calls ---- */

static void far_jump_to_segments(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  code_at(g, CODE, 0xEA, LE32(CODE + 0x20), LE16(CONFORMING | 3)); /* RPL of a conforming target does not count */
  code_at(g, CODE + 0x20, 0xEA, LE32(0x40), LE16(CODE16_0));
  code_at(g, CODE + 0x40, 0xF4);
  run(g);
  assert_int_equal(g->cpu->rip, 0x41);
  assert_int_equal(g->cpu->segment[CS].selector, CODE16_0);
  assert_int_equal(g->cpu->mode & MODE_BITS, MODE_16);
  assert_int_equal(access_of(g, CODE16_0), 0x9B); /* accessed now */
  expect_branch(g, 0, LB_BRANCH_FAR_JMP, CODE, CODE + 0x20);
  expect_branch(g, 1, LB_BRANCH_FAR_JMP, CODE + 0x20, 0x40);
  assert_int_equal(g->seen[1].to_base, 0x10000);
  assert_int_equal(g->seen[1].from_base, 0);
  guest_free(g);
}

static void far_jump_faults(void **state)
{
  (void)state;
  static const struct {
    unsigned selector;
    uint32_t offset;
    unsigned vector, error;
  } cases[] = {
    {0, CODE, 13, 0},
    {3, CODE, 13, 0},
    {BEYOND, CODE, 13, BEYOND},
    {DATA_0, CODE, 13, DATA_0},
    {CODE_3, CODE, 13, CODE_3 & ~3},  /* DPL 3 is not CPL 0 */
    {CODE_0 | 3, CODE, 13, CODE_0},   /* RPL > CPL */
    {CODE16_0, 0x10000, 13, 0},       /* beyond the limit */
    {LOCAL | 4, CODE, 13, LOCAL | 4}, /* LDTR is null */
    {TASK_A, 0, 13, TASK_A},          /* busy */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_32(CODE_0);

    code_at(g, CODE, 0xEA, LE32(cases[i].offset), LE16(cases[i].selector));
    expect_exception(g, cases[i].vector, cases[i].error, CODE);
    expect_branch(g, 0, LB_BRANCH_FAULT, CODE, HANDLER + 0x10 * cases[i].vector);
    assert_int_equal(g->cpu->r[RSP], STACK_0 - 16);
    guest_free(g);
  }
}

static void far_call_and_return(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  code_at(g, CODE, 0x68, LE32(0x1234), 0x9A, LE32(CODE + 0x20), LE16(CODE_0), 0xF4);
  code_at(g, CODE + 0x20, 0xCA, LE16(4)); /* retf 4 */
  run_to(g, CODE + 12);
  assert_int_equal(get(g, STACK_0 - 8, 4), CODE_0);
  assert_int_equal(get(g, STACK_0 - 12, 4), CODE + 12);
  assert_int_equal(g->cpu->r[RSP], STACK_0);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE + 5, CODE + 0x20);
  expect_branch(g, 1, LB_BRANCH_FAR_RET, CODE + 0x20, CODE + 12);
  guest_free(g);
}

static void call_gate_same_level(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, GDT + GATE, gate_bits(CODE_0, CODE + 0x20, 0x8C, 3), 8);
  code_at(g, CODE, 0x9A, LE32(0xDEADBEEF), LE16(GATE), 0xF4);
  code_at(g, CODE + 0x20, 0xF4);
  run_to(g, CODE + 0x20);
  assert_int_equal(g->cpu->r[RSP], STACK_0 - 8); /* no parameters without a new stack */
  assert_int_equal(get(g, STACK_0 - 8, 4), CODE + 7);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x20);
  guest_free(g);
}

static void call_gate_inner_32(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put(g, GDT + GATE, gate_bits(CODE_0, CODE + 0x40, 0xEC, 2), 8);
  code_at(g, CODE, 0x6A, 0x11, 0x6A, 0x22, 0x9A, LE32(0), LE16(GATE | 3), 0xCD, 5);
  put_vector(g, 5, CODE_0, HANDLER + 0x50, 0xEE);
  code_at(g, CODE + 0x40, 0xCA, LE16(8));
  set_segment(g, DS, DATA_0, 0xC093); /* as if it had been loaded inside: must not survive the return */
  run_to(g, HANDLER + 0x50);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE + 4, CODE + 0x40);
  assert_int_equal(g->seen[0].from_cpl, 3);
  assert_int_equal(g->seen[0].to_cpl, 0);
  expect_branch(g, 1, LB_BRANCH_FAR_RET, CODE + 0x40, CODE + 11);
  assert_int_equal(g->seen[1].to_cpl, 3);
  expect_branch(g, 2, LB_BRANCH_INT, CODE + 11, HANDLER + 0x50);
  assert_int_equal(g->cpu->segment[DS].selector, 0);
  /* INT's frame has overwritten three of the gate's words: SS, ESP and EFLAGS lie where SS, ESP and 0x11 were. */
  assert_int_equal(get(g, STACK_0 - 4, 4), DATA_3);
  assert_int_equal(get(g, STACK_0 - 8, 4), STACK_3); /* both stacks were relieved of the parameters */
  guest_free(g);
}

static void call_gate_inner_frames(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put(g, GDT + GATE, gate_bits(CODE_0, CODE + 0x40, 0xEC, 2), 8);
  code_at(g, CODE, 0x6A, 0x11, 0x6A, 0x22, 0x9A, LE32(0), LE16(GATE | 3));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  static const uint32_t wide[] = {CODE + 11, CODE_3, 0x22, 0x11, STACK_3 - 8, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(wide));
  for (unsigned i = 0; i < 6; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(wide) + 4 * i, 4), wide[i]);
  assert_int_equal(g->cpu->cpl, 0);
  assert_int_equal(g->cpu->segment[CS].selector, CODE_0);
  assert_int_equal(g->cpu->segment[SS].selector, DATA_0);
  guest_free(g);

  g = guest_new_32(CODE_3); /* a 16-bit gate pushes words, and its offset has 16 bits */
  put(g, GDT + GATE, gate_bits(CODE_0, 0xF000, 0xE4, 1), 8);
  code_at(g, CODE, 0x66, 0x6A, 0x33, 0x9A, LE32(0), LE16(GATE | 3));
  code_at(g, 0xF000, 0xF4);
  run_to(g, 0xF000);
  static const uint16_t narrow[] = {(CODE + 10) & 0xFFFF, CODE_3, 0x33, (STACK_3 - 2) & 0xFFFF, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(narrow));
  for (unsigned i = 0; i < 5; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(narrow) + 2 * i, 2), narrow[i]);
  guest_free(g);
}

static void call_gate_faults(void **state)
{
  (void)state;
  static const struct {
    unsigned gate_access, code, stack;
    unsigned vector, error;
  } cases[] = {
    {0x8C, CODE_0, DATA_0, 13, GATE},             /* DPL of the gate */
    {0x6C, CODE_0, DATA_0, 11, GATE},             /* not present */
    {0xEC, 0, DATA_0, 13, 0},                     /* null in the gate */
    {0xEC, DATA_0, DATA_0, 13, DATA_0},           /* not code */
    {0xEC, CODE_0, 0, 10, 0},                     /* null SS0 */
    {0xEC, CODE_0, BEYOND, 10, BEYOND},           /* outside the table */
    {0xEC, CODE_0, DATA_3, 10, DATA_3 & ~3},      /* wrong level */
    {0xEC, CODE_0, CODE_0, 10, CODE_0},           /* not data */
    {0xEC, CODE_0, DATA_ABSENT, 12, DATA_ABSENT}, /* not present */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_32(CODE_3);

    /* The handler is conforming, so that it runs on the caller's stack: that of level 0 may be bad. */
    put_vector(g, cases[i].vector, CONFORMING, HANDLER + 0x10 * cases[i].vector, 0x8E);
    code_at(g, HANDLER + 0x10 * cases[i].vector, 0xEB, 0xFE);
    put(g, GDT + GATE, gate_bits(cases[i].code, CODE + 0x40, cases[i].gate_access, 0), 8);
    put(g, TSS_A + 8, cases[i].stack, 4);
    code_at(g, CODE, 0x9A, LE32(0), LE16(GATE | 3));
    assert_int_equal(cpu_run(g->cpu, 100), CPU_STOP_SPINNING);
    assert_int_equal(g->cpu->cpl, 3);
    assert_int_equal(g->cpu->r[RSP], STACK_3 - 16);
    assert_int_equal(get(g, STACK_3 - 16, 4), cases[i].error);
    assert_int_equal(get(g, STACK_3 - 12, 4), CODE);
    expect_branch(g, 0, LB_BRANCH_FAULT, CODE, HANDLER + 0x10 * cases[i].vector);
    guest_free(g);
  }
}

/* ---- IA-32e mode ---- */

static void put_gate_64(struct guest *g, unsigned selector, uint64_t offset, unsigned access)
{
  put(g, GDT + GATE64, gate_bits(selector, offset, access, 0), 8);
  put(g, GDT + GATE64 + 8, offset >> 32, 8);
}

static void call_gate_64(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_3);
  put_gate_64(g, CODE64_0, CODE + 0x40, 0xEC);
  code_at(g, CODE, 0xFF, 0x1C, 0x25, LE32(CODE + 0x80)); /* call far [m16:32] */
  code_at(g, CODE + 0x80, LE32(0), LE16(GATE64 | 3));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  static const uint64_t frame[] = {CODE + 7, CODE64_3, STACK_3, DATA_3};
  assert_int_equal(g->cpu->r[RSP], STACK_0 - sizeof(frame));
  for (unsigned i = 0; i < 4; i++)
    assert_int_equal(get(g, STACK_0 - sizeof(frame) + 8 * i, 8), frame[i]);
  assert_int_equal(g->cpu->cpl, 0);
  assert_int_equal(g->cpu->segment[SS].selector, 0);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x40);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), 0);

  code_at(g, CODE + 0x41, 0x48, 0xCB); /* retfq, back to 64-bit code of level 3, which then faults */
  code_at(g, CODE + 7, 0xF4);
  start(g, CODE + 0x41);
  run_to(g, HANDLER + 0xD0);
  expect_branch(g, 1, LB_BRANCH_FAR_RET, CODE + 0x41, CODE + 7);
  expect_branch(g, 2, LB_BRANCH_FAULT, CODE + 7, HANDLER + 0xD0);
  assert_int_equal(get(g, STACK_0 - 16, 8), STACK_3); /* RSP of level 3 */
  guest_free(g);
}

static void call_gate_64_from_compatibility_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE_3);
  put_gate_64(g, CODE64_0, CODE + 0x40, 0xEC);
  code_at(g, CODE, 0x9A, LE32(0), LE16(GATE64 | 3));
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->mode & MODE_BITS, MODE_64);
  assert_int_equal(get(g, STACK_0 - 32, 8), CODE + 7);
  assert_int_equal(get(g, STACK_0 - 24, 8), CODE_3);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x40);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  guest_free(g);

  g = guest_new_64(CODE_3); /* gates lead to 64-bit code only */
  put_gate_64(g, CODE_0, CODE + 0x40, 0xEC);
  code_at(g, CODE, 0x9A, LE32(0), LE16(GATE64 | 3));
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), CODE_0);
  guest_free(g);
}

static void compatibility_mode_call_and_return(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  g->cpu->r[RBX] = UINT64_C(0x100000000);
  code_at(g, CODE, 0x48, 0xFF, 0x1C, 0x25, LE32(CODE + 0x80), 0xF4); /* call far [m16:64] */
  code_at(g, CODE + 0x80, LE64(CODE + 0x40), LE16(CODE_0));
  /* In compatibility mode 48 is DEC EAX; the stack holds 8-byte words, so a far jump leads back. */
  code_at(g, CODE + 0x40, 0x48, 0xEA, LE32(CODE + 0x60), LE16(CODE64_0));
  code_at(g, CODE + 0x60, 0x48, 0xCB); /* retfq */
  run_to(g, CODE + 8);
  assert_int_equal(g->cpu->r[RAX] & 0xFFFFFFFF, 0xFFFFFFFF);
  assert_int_equal(g->cpu->r[RSP], STACK_0);
  assert_int_equal(g->cpu->mode & MODE_BITS, MODE_64);
  assert_int_equal(get(g, STACK_0 - 8, 8), CODE64_0);
  assert_int_equal(get(g, STACK_0 - 16, 8), CODE + 8);
  expect_branch(g, 0, LB_BRANCH_FAR_CALL, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_FAR_JMP, CODE + 0x41, CODE + 0x60);
  expect_branch(g, 2, LB_BRANCH_FAR_RET, CODE + 0x60, CODE + 8);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_TO_32);
  assert_int_equal(g->seen[1].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  guest_free(g);
}

static void long_mode_far_faults(void **state)
{
  (void)state;
  static const struct {
    uint64_t offset;
    unsigned selector, error;
  } cases[] = {
    {UINT64_C(0x800000000000), CODE64_0, 0}, /* not canonical */
    {UINT64_C(0x100000000), CODE_0, 0},      /* beyond the limit of compatibility mode */
    {0, TASK64, TASK64},                     /* no task switches */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_64(CODE64_0);

    code_at(g, CODE, 0x48, 0xFF, 0x2C, 0x25, LE32(CODE + 0x80)); /* jmp far [m16:64] */
    code_at(g, CODE + 0x80, LE64(cases[i].offset), LE16(cases[i].selector));
    run_to(g, HANDLER + 0xD0);
    assert_int_equal(get(g, g->cpu->r[RSP], 8), cases[i].error);
    assert_int_equal(get(g, g->cpu->r[RSP] + 8, 8), CODE);
    guest_free(g);
  }
}

PART(cmocka_unit_test(far_jump_to_segments), cmocka_unit_test(far_jump_faults), cmocka_unit_test(far_call_and_return),
     cmocka_unit_test(call_gate_same_level), cmocka_unit_test(call_gate_inner_32),
     cmocka_unit_test(call_gate_inner_frames), cmocka_unit_test(call_gate_faults), cmocka_unit_test(call_gate_64),
     cmocka_unit_test(call_gate_64_from_compatibility_mode), cmocka_unit_test(compatibility_mode_call_and_return),
     cmocka_unit_test(long_mode_far_faults));
