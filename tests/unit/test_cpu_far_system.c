/* SPDX-License-Identifier: Apache-2.0
 *
 * System calls, and loads of segment and table registers. SDM vol. 2 under the instructions' names; vol. 3, chapter 5.
 */
#include "cpu_far_rig.h"

/* ---- system calls ---- */

static void sysenter_and_sysexit(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  g->cpu->sysenter_cs = CODE_0;
  g->cpu->sysenter_esp = STACK_0;
  g->cpu->sysenter_eip = CODE + 0x40;
  g->cpu->r[RDX] = CODE + 2;
  g->cpu->r[RCX] = STACK_3 - 0x10;
  code_at(g, CODE, 0x0F, 0x34, 0xF4);
  code_at(g, CODE + 0x40, 0x0F, 0x35);
  cpu_set_flags(g->cpu, 0x202);
  run_to(g, HANDLER + 0xD0); /* HLT of level 3 */
  assert_int_equal(get(g, STACK_0 - 20, 4), CODE + 2);
  assert_int_equal(get(g, STACK_0 - 16, 4), CODE_3);
  assert_int_equal(get(g, STACK_0 - 12, 4) & FLAG_IF, 0); /* SYSEXIT does not give it back */
  assert_int_equal(get(g, STACK_0 - 8, 4), STACK_3 - 0x10);
  assert_int_equal(get(g, STACK_0 - 4, 4), DATA_3);
  expect_branch(g, 0, LB_BRANCH_SYSENTER, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_SYSEXIT, CODE + 0x40, CODE + 2);
  guest_free(g);

  g = guest_new_32(CODE_3); /* no selector: #GP(0) */
  code_at(g, CODE, 0x0F, 0x34);
  expect_exception(g, 13, 0, CODE);
  guest_free(g);
}

static void syscall_and_sysret_64(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_3);
  g->cpu->star = (uint64_t)CODE_0 << 32 | (uint64_t)0x18 << 48;
  g->cpu->lstar = CODE + 0x40;
  g->cpu->fmask = FLAG_IF | FLAG_CF;
  code_at(g, CODE, 0x0F, 0x05, 0xF4);
  code_at(g, CODE + 0x40, 0x48, 0x0F, 0x07);
  cpu_set_flags(g->cpu, 0x203);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(g->cpu->r[RCX], CODE + 2);
  assert_int_equal(g->cpu->r[R11], 0x203);
  assert_int_equal(get(g, STACK_0 - 32, 8), 0x2B); /* STAR[63:48] + 16, RPL 3 */
  assert_int_equal(get(g, STACK_0 - 24, 8), 0x203 | FLAG_RF);
  assert_int_equal(get(g, STACK_0 - 8, 8), 0x23);
  expect_branch(g, 0, LB_BRANCH_SYSCALL, CODE, CODE + 0x40);
  expect_branch(g, 1, LB_BRANCH_SYSRET, CODE + 0x40, CODE + 2);
  guest_free(g);

  g = guest_new_64(CODE64_0); /* SYSRET to what is not canonical faults before it leaves level 0 */
  g->cpu->r[RCX] = UINT64_C(0x800000000000);
  code_at(g, CODE, 0x48, 0x0F, 0x07);
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(get(g, g->cpu->r[RSP] + 16, 8), CODE64_0);
  guest_free(g);
}

static void sysret_single_steps_at_once(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE64_0);
  g->cpu->star = (uint64_t)0x18 << 48;
  g->cpu->r[RCX] = CODE + 0x40;
  g->cpu->r[R11] = FLAG_TF | 2;
  code_at(g, CODE, 0x48, 0x0F, 0x07);
  code_at(g, CODE + 0x40, 0x90, 0x90);
  run_to(g, HANDLER + 0x10);
  assert_int_equal(get(g, g->cpu->r[RSP], 8), CODE + 0x40);
  assert_true(g->cpu->dr[6] & DR6_BS);
  guest_free(g);
}

static void sysenter_64(void **state)
{
  (void)state;
  struct guest *g = guest_new_64(CODE_3); /* from compatibility mode into 64-bit mode, and out to 64-bit mode */
  g->cpu->sysenter_cs = CODE_0;
  g->cpu->sysenter_esp = STACK_0;
  g->cpu->sysenter_eip = CODE + 0x40;
  g->cpu->r[RDX] = CODE + 2;
  g->cpu->r[RCX] = STACK_3;
  code_at(g, CODE, 0x0F, 0x34, 0x48, 0xFF, 0xC0, 0xF4); /* sysenter; inc rax; hlt */
  code_at(g, CODE + 0x40, 0x48, 0x0F, 0x35);
  g->cpu->r[RAX] = 0xFFFFFFFF;
  run_to(g, HANDLER + 0xD0);
  assert_int_equal(g->cpu->r[RAX], UINT64_C(0x100000000));
  assert_int_equal(get(g, STACK_0 - 32, 8), CODE_0 + 32 + 3);
  assert_int_equal(get(g, STACK_0 - 8, 8), CODE_0 + 40 + 3);
  assert_int_equal(g->seen[0].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), LB_BRANCH_FROM_32);
  assert_int_equal(g->seen[1].flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32), 0);
  guest_free(g);
}

static void syscall_outside_64_bit_mode(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3); /* Intel: #UD */
  g->cpu->efer |= EFER_SCE;
  code_at(g, CODE, 0x0F, 0x05);
  run_to(g, HANDLER + 0x60);
  guest_free(g);

  g = guest_new_32_of("zen2", CODE_3);
  g->cpu->efer |= EFER_SCE;
  g->cpu->star = (uint64_t)CODE_0 << 32 | (uint64_t)0x18 << 48 | (CODE + 0x40);
  code_at(g, CODE, 0x0F, 0x05, 0xF4);
  code_at(g, CODE + 0x40, 0xF4);
  run_to(g, CODE + 0x40);
  assert_int_equal(g->cpu->r[RCX], CODE + 2);
  assert_int_equal(g->cpu->cpl, 0);
  expect_branch(g, 0, LB_BRANCH_SYSCALL, CODE, CODE + 0x40);
  guest_free(g);
}

/* ---- segment registers ---- */

static void segment_load_faults(void **state)
{
  (void)state;
  static const struct {
    unsigned code, number, selector, vector, error;
  } cases[] = {
    {CODE_0, SS, 0, 13, 0},
    {CODE_0, SS, DATA_3, 13, DATA_3 & ~3},
    {CODE_0, SS, DATA_0 | 3, 13, DATA_0},
    {CODE_0, SS, DATA_READ_ONLY, 13, DATA_READ_ONLY},
    {CODE_0, SS, DATA_ABSENT, 12, DATA_ABSENT},
    {CODE_0, DS, DATA_ABSENT, 11, DATA_ABSENT},
    {CODE_0, ES, TASK_A, 13, TASK_A},
    {CODE_0, FS, BEYOND, 13, BEYOND},
    {CODE_3, DS, DATA_0, 13, DATA_0},
    {CODE_0, DS, DATA_0 | 3, 13, DATA_0}, /* RPL > DPL */
  };
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    struct guest *g = guest_new_32(cases[i].code);

    g->cpu->r[RAX] = cases[i].selector;
    code_at(g, CODE, 0x8E, 0xC0 | cases[i].number << 3);
    expect_exception(g, cases[i].vector, cases[i].error, CODE);
    guest_free(g);
  }
}

static void segment_loads(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 5, CODE_0, HANDLER + 0x50, 0xEE);
  /* mov eax, CONFORMING; mov ds, ax (its DPL does not count); xor eax, eax; mov es, ax; lfs ecx, [0x10080]; int 5 */
  code_at(g, CODE, 0xB8, LE32(CONFORMING), 0x8E, 0xD8, 0x31, 0xC0, 0x8E, 0xC0, 0x0F, 0xB4, 0x0D, LE32(CODE + 0x80),
          0xCD, 5);
  code_at(g, CODE + 0x80, LE32(0x87654321), LE16(DATA_3));
  run_to(g, HANDLER + 0x50);
  assert_int_equal(g->cpu->segment[DS].selector, CONFORMING);
  assert_int_equal(g->cpu->segment[ES].access, 0);
  assert_int_equal(g->cpu->segment[FS].selector, DATA_3);
  assert_int_equal(g->cpu->r[RCX], 0x87654321);
  guest_free(g);
}

static void selector_questions(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_3);
  put_vector(g, 5, CODE_0, HANDLER + 0x50, 0xEE);
  struct cpu *cpu = g->cpu;
  static const struct {
    uint8_t bytes[3]; /* result in EAX, selector in ECX */
    unsigned selector;
    bool is_zero;
    uint32_t result;
  } cases[] = {
    {{0x0F, 0x02, 0xC1}, CODE_3, true, 0xC0FA00}, /* LAR */
    {{0x0F, 0x02, 0xC1}, DATA_0, false, 7},       /* DPL 0 from CPL 3 */
    {{0x0F, 0x02, 0xC1}, CONFORMING, true, 0xC09E00},
    {{0x0F, 0x02, 0xC1}, 0, false, 7},
    {{0x0F, 0x02, 0xC1}, BEYOND, false, 7},
    {{0x0F, 0x03, 0xC1}, DATA_3, true, 0xFFFFFFFF}, /* LSL */
    {{0x0F, 0x03, 0xC1}, GATE | 3, false, 7},       /* gates have no limit */
    {{0x0F, 0x02, 0xC1}, GATE | 3, true, 0xEC00},
    {{0x0F, 0x00, 0xE1}, DATA_READ_ONLY | 3, true, 7},  /* VERR */
    {{0x0F, 0x00, 0xE9}, DATA_READ_ONLY | 3, false, 7}, /* VERW */
    {{0x0F, 0x00, 0xE9}, DATA_3, true, 7},
    {{0x0F, 0x00, 0xE9}, CODE_3, false, 7},
  };
  put(g, GDT + GATE, gate_bits(CODE_0, 0, 0xEC, 0), 8);
  for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    put_bytes(g, CODE + 0x10 * i, cases[i].bytes, 3);
    code_at(g, CODE + 0x10 * i + 3, 0xCD, 5);
    set_level(g, CODE_3, 0xC0FB);
    cpu->r[RAX] = 7;
    cpu->r[RCX] = cases[i].selector;
    cpu_set_flags(cpu, 0x203 | (cases[i].is_zero ? 0 : FLAG_ZF));
    start(g, CODE + 0x10 * i);
    run_to(g, HANDLER + 0x50);
    assert_int_equal(!!(cpu_flags(cpu) & FLAG_ZF), cases[i].is_zero);
    assert_true(cpu_flags(cpu) & FLAG_CF);
    assert_int_equal(cpu->r[RAX], cases[i].result);
  }
  guest_free(g);
}

static void arpl_raises(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  g->cpu->r[RAX] = 0x10;
  g->cpu->r[RCX] = 3;
  code_at(g, CODE, 0x63, 0xC8, 0xF4); /* arpl ax, cx */
  run_to(g, CODE + 2);
  assert_int_equal(g->cpu->r[RAX], 0x13);
  assert_true(cpu_flags(g->cpu) & FLAG_ZF);
  guest_free(g);
}

static void table_registers(void **state)
{
  (void)state;
  struct guest *g = guest_new_32(CODE_0);
  put(g, LDT, get(g, GDT + (DATA_3 & ~7), 8), 8);
  /* mov ax, LOCAL; lldt ax; mov ax, 4; mov ds, ax; mov ax, TASK_B; ltr ax; str ecx; sldt edx; hlt */
  code_at(g, CODE, 0x66, 0xB8, LE16(LOCAL), 0x0F, 0x00, 0xD0, 0x66, 0xB8, LE16(4), 0x8E, 0xD8, 0x66, 0xB8, LE16(TASK_B),
          0x0F, 0x00, 0xD8, 0x0F, 0x00, 0xC9, 0x0F, 0x00, 0xC2, 0xF4);
  run_to(g, CODE + 26);
  assert_int_equal(g->cpu->r[RCX], TASK_B);
  assert_int_equal(g->cpu->r[RDX], LOCAL);
  assert_int_equal(g->cpu->segment[DS].selector, 4);
  assert_int_equal(access_of(g, TASK_B), 0x8B);
  guest_free(g);

  g = guest_new_32(CODE_3);
  code_at(g, CODE, 0x0F, 0x00, 0xD0); /* lldt ax at level 3 */
  expect_exception(g, 13, 0, CODE);
  guest_free(g);
}

PART(cmocka_unit_test(sysenter_and_sysexit), cmocka_unit_test(syscall_and_sysret_64),
     cmocka_unit_test(sysret_single_steps_at_once), cmocka_unit_test(sysenter_64),
     cmocka_unit_test(syscall_outside_64_bit_mode), cmocka_unit_test(segment_load_faults),
     cmocka_unit_test(segment_loads), cmocka_unit_test(selector_questions), cmocka_unit_test(arpl_raises),
     cmocka_unit_test(table_registers));
