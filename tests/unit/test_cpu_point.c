/* SPDX-License-Identifier: Apache-2.0
 *
 * Stops for a debugger outside the guest: code and data points, exceptions, single steps, and what it may change.
 */
#include <errno.h>

#include "cpu_rig.h"

enum { BP = 3, DE = 0, NP = 11 };

/* Puts code at CODE, ready to run. */
static void code(struct rig *rig, const uint8_t *bytes, size_t size)
{
  assert_true(memory_write(&rig->memory, CODE, bytes, size));
  rig->cpu->activity = CPU_RUNNING;
  cpu_set_rip(rig->cpu, code_offset(rig));
  cpu_changed(rig->cpu);
}

#define RUN(rig, ...) code(rig, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static uint64_t at(const struct rig *rig)
{
  return rig->cpu->segment[CS].linear_base + rig->cpu->rip - CODE;
}

static void point_one(struct rig *rig, uint64_t address, uint64_t size, uint8_t access)
{
  assert_int_equal(cpu_set_points(rig->cpu, &(struct cpu_point){address, size, access}, 1), 0);
}

static void assert_stop(struct rig *rig, enum cpu_stop stop, unsigned kind, uint64_t offset)
{
  assert_int_equal(stop, CPU_STOP_POINT);
  assert_int_equal(rig->cpu->hit.kind, kind);
  assert_int_equal(at(rig), offset);
}

/* ---- code ---- */

static void loop_in(struct rig *rig)
{
  struct cpu *cpu = rig->cpu;

  cpu->r[RCX] = 3;
  RUN(rig, 0x90, 0x43, 0x90, 0xE2, 0xFC, 0xF4);       /* nop; l: inc bx; nop; loop l; hlt */
  assert_int_equal(cpu_run(cpu, 2), CPU_STOP_BUDGET); /* its block is known before the point is */
  point_one(rig, CODE + 2, 0, ACCESS_EXECUTE);
  uint64_t bx = cpu->r[RBX], retired = cpu_retired(cpu);
  for (unsigned i = 0; i < 3; i++) {
    assert_stop(rig, cpu_run(cpu, 1000), CPU_HIT_CODE, 2);
    assert_int_equal(cpu->hit.address, CODE + 2);
    assert_int_equal(cpu->r[RBX], bx + i);
    assert_int_equal(cpu_retired(cpu), retired + 3 * i);
    assert_stop(rig, cpu_run(cpu, 1000), CPU_HIT_CODE, 2); /* it stays there, */
    assert_stop(rig, cpu_step(cpu), CPU_HIT_STEP, 3);      /* but for a step */
  }
  assert_int_equal(cpu_run(cpu, 1000), CPU_STOP_HALTED);
  assert_int_equal(cpu_set_points(cpu, NULL, 0), 0);
  cpu->r[RCX] = 3;
  cpu->activity = CPU_RUNNING;
  cpu_set_rip(cpu, code_offset(rig));
  assert_int_equal(cpu_run(cpu, 1000), CPU_STOP_HALTED);
}

static void test_code(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "core-2");
  loop_in(&rig);
  cpu_load_real_segment(rig.cpu, CS, 0x0F0); /* a base of its own */
  cpu_changed(rig.cpu);
  loop_in(&rig);
  rig_free(&rig);
  rig_protected(&rig, "pentium-m");
  loop_in(&rig);
  rig_free(&rig);
}

/* Between a comparison and the jump behind it, which may be done as one. */
static void test_code_pair(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RCX] = 3;
  RUN(&rig, 0x49, 0x83, 0xF9, 0x00, 0x75, 0xFA, 0xF4); /* l: dec ecx; cmp ecx, 0; jne l; hlt */
  point_one(&rig, CODE + 4, 0, ACCESS_EXECUTE);
  for (unsigned i = 0; i < 3; i++) {
    assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_CODE, 4);
    assert_int_equal(rig.cpu->r[RCX], 2 - i);
    assert_int_equal((cpu_flags(rig.cpu) & FLAG_ZF) != 0, i == 2);
    assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, i == 2 ? 6 : 0);
  }
  rig.cpu->r[RCX] = 3;
  cpu_set_rip(rig.cpu, code_offset(&rig));
  point_one(&rig, CODE + 1, 0, ACCESS_EXECUTE);
  for (unsigned i = 0; i < 3; i++) {
    assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_CODE, 1);
    assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, 4);
  }
  assert_int_equal(cpu_run(rig.cpu, 1000), CPU_STOP_HALTED);
  rig_free(&rig);
}

/* A point behind STI: no interrupt comes in between because of it. */
static void test_code_shadow(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  RUN(&rig, 0xFB, 0x43, 0x90, 0xF4); /* sti; inc bx; nop; hlt */
  cpu_set_line(rig.cpu, CPU_LINE_INTR, true);
  point_one(&rig, CODE + 1, 0, ACCESS_EXECUTE);
  assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_CODE, 1);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, 2);
  assert_int_equal(rig.cpu->r[RBX], 1);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, HANDLERS + 16 * rig.vector - CODE);
  rig_free(&rig);
}

/* ---- data ---- */

static void data_in(struct rig *rig)
{
  struct cpu *cpu = rig->cpu;
  uint64_t dr7 = cpu->dr[7];

  cpu->r[RBX] = DATA;
  RUN(rig, 0x8A, 0x07, 0x88, 0x07, 0xFE, 0x07, 0xF4); /* mov al, [bx/edi]; mov [..], al; inc byte [..]; hlt */
  cpu->r[RDI] = DATA;
  point_one(rig, DATA, 1, ACCESS_WRITE);
  assert_stop(rig, cpu_run(cpu, 1000), CPU_HIT_DATA, 4);
  assert_int_equal(cpu->hit.access, ACCESS_WRITE);
  assert_int_equal(cpu->hit.address, DATA);
  assert_stop(rig, cpu_run(cpu, 1000), CPU_HIT_DATA, 6);
  assert_int_equal(cpu_run(cpu, 1000), CPU_STOP_HALTED);
  cpu->activity = CPU_RUNNING;
  cpu_set_rip(cpu, code_offset(rig));
  const struct cpu_point points[] = {{DATA + 1, 8, ACCESS_READ | ACCESS_WRITE}, {DATA - 4000, 4001, ACCESS_READ}};
  assert_int_equal(cpu_set_points(cpu, points, 2), 0);
  assert_stop(rig, cpu_run(cpu, 1000), CPU_HIT_DATA, 2);
  assert_int_equal(cpu->hit.point, 1);
  assert_int_equal(cpu->hit.address, DATA);
  assert_stop(rig, cpu_run(cpu, 1000), CPU_HIT_DATA, 6); /* INC reads */
  assert_int_equal(cpu->hit.access, ACCESS_READ);
  assert_int_equal(cpu->dr[7], dr7);
  assert_int_equal(cpu_set_points(cpu, NULL, 0), 0);
}

static void test_data(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  data_in(&rig);
  rig_free(&rig);
  rig_protected(&rig, "pentium-m");
  data_in(&rig);
  rig_free(&rig);
  rig_long(&rig, "skylake");
  data_in(&rig);
  rig_free(&rig);
}

/* REP STOSB is stopped right behind the element that is watched; the frame of an interrupt is a write, too. */
static void test_data_repeat(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  rig.cpu->r[RDI] = DATA;
  rig.cpu->r[RCX] = 100;
  RUN(&rig, 0xF3, 0xAA, 0xCD, 0x30, 0xF4); /* rep stosb; int 30h */
  point_one(&rig, DATA + 40, 2, ACCESS_WRITE);
  assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_DATA, 0);
  assert_int_equal(rig.cpu->r[RCX], 59);
  assert_int_equal(rig.cpu->hit.address, DATA + 40);
  assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_DATA, 0);
  assert_int_equal(rig.cpu->r[RCX], 58);
  point_one(&rig, STACK - 6, 6, ACCESS_WRITE);
  assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_DATA, HANDLERS + 0x300 - CODE);
  assert_int_equal(rig.cpu->r[RCX], 0);
  rig_free(&rig);
}

/* ---- steps ---- */

static void test_step_repeat(void **state)
{
  struct rig rig;

  (void)state;
  rig_protected(&rig, "skylake");
  rig.cpu->r[RDI] = DATA;
  rig.cpu->r[RCX] = 3;
  rig.cpu->r[RDX] = 0x80;
  RUN(&rig, 0xF3, 0xAA, 0xB9, 2, 0, 0, 0, 0xF3, 0x6C, 0xEB, 0xFE); /* rep stosb; mov ecx, 2; rep insb; jmp $ */
  static const uint8_t places[] = {0, 0, 2, 7, 7, 9, 9, 9};
  for (unsigned i = 0; i < sizeof(places); i++)
    assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, places[i]);
  rig_free(&rig);
}

static void test_step_events(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  cpu_set_flags(rig.cpu, FLAG_1 | FLAG_IF);
  RUN(&rig, 0x90, 0xF4, 0x90);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, 1);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, 2); /* HLT is an instruction, */
  assert_int_equal(cpu_step(rig.cpu), CPU_STOP_HALTED);  /* behind which it waits */
  cpu_set_line(rig.cpu, CPU_LINE_INTR, true);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, HANDLERS + 16 * rig.vector - CODE);
  RUN(&rig, 0x0F, 0x0B);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, HANDLERS + 16 * UD - CODE);
  RUN(&rig, 0xCD, 0x40);
  assert_stop(&rig, cpu_step(rig.cpu), CPU_HIT_STEP, HANDLERS + 16 * 0x40 - CODE);
  rig_free(&rig);
}

/* ---- exceptions ---- */

static void caught(struct rig *rig, unsigned vector, uint64_t offset)
{
  assert_stop(rig, cpu_run(rig->cpu, 1000), CPU_HIT_EXCEPTION, offset);
  assert_int_equal(rig->cpu->hit.vector, vector);
  assert_false(rig->cpu->hit.is_delivered);
  assert_stop(rig, cpu_run(rig->cpu, 1000), CPU_HIT_EXCEPTION, offset); /* again */
  cpu_catch(rig->cpu, 0);
  assert_stop(rig, cpu_step(rig->cpu), CPU_HIT_STEP, HANDLERS + 16 * vector - CODE);
  cpu_catch(rig->cpu, UINT32_MAX);
}

static void exceptions_in(struct rig *rig)
{
  struct cpu *cpu = rig->cpu;

  cpu_catch(cpu, UINT32_MAX);
  RUN(rig, 0x90, 0x0F, 0x0B);
  caught(rig, UD, 1);
  RUN(rig, 0x31, 0xC9, 0xF7, 0xF1); /* xor ecx, ecx; div ecx */
  caught(rig, DE, 2);
  RUN(rig, 0x90, 0xCC);
  caught(rig, BP, 1);
  RUN(rig, 0x90, 0xF1);
  caught(rig, DB, 1);
  cpu_set_flags(cpu, FLAG_1 | FLAG_TF);
  RUN(rig, 0x90, 0x90, 0x90);
  caught(rig, DB, 1);
  cpu_set_flags(cpu, FLAG_1);
  cpu->dr[7] = 0x402;
  cpu->dr[0] = CODE + 1;
  RUN(rig, 0x90, 0x90, 0x90);
  caught(rig, DB, 1);
  cpu->dr[7] = 0x400;
  cpu_catch(cpu, 1u << UD);
  assert_int_equal(EXECUTE(rig, 0xCC), BP);
  cpu_catch(cpu, 0);
}

static void test_exceptions(void **state)
{
  struct rig rig;

  (void)state;
  rig_real(&rig, "skylake");
  exceptions_in(&rig);
  rig_free(&rig);
  rig_protected(&rig, "pentium-m");
  exceptions_in(&rig);
  cpu_catch(rig.cpu, 1u << NP | 1u << GP);
  put(&rig, IDT_32 + 8 * 0x20 + 5, 0x6E, 1); /* not present */
  RUN(&rig, 0xCD, 0x20);
  assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_EXCEPTION, 0);
  assert_int_equal(rig.cpu->hit.vector, NP);
  assert_int_equal(rig.cpu->hit.error, 0x20 * 8 + 2);
  /* of an interrupt that is gone when it faults, the handler of the fault is what is left */
  cpu_set_flags(rig.cpu, FLAG_1 | FLAG_IF);
  cpu_set_line(rig.cpu, CPU_LINE_INTR, true);
  assert_stop(&rig, cpu_run(rig.cpu, 1000), CPU_HIT_EXCEPTION, HANDLERS + 16 * NP - CODE);
  assert_true(rig.cpu->hit.is_delivered);
  rig_free(&rig);
}

/* ---- what may be changed ---- */

static void test_changes(void **state)
{
  struct rig rig;
  uint64_t value = 7;

  (void)state;
  rig_long(&rig, "skylake");
  assert_int_equal(cpu_set_control(rig.cpu, 0, rig.cpu->cr0 & ~CR0_PG), -EINVAL); /* not in 64-bit mode */
  assert_int_equal(cpu_set_control(rig.cpu, 0, UINT64_C(1) << 32), -EINVAL);
  assert_int_equal(cpu_set_control(rig.cpu, 4, rig.cpu->cr4 & ~(uint64_t)CR4_PAE), -EINVAL);
  assert_int_equal(cpu_set_control(rig.cpu, 4, rig.cpu->cr4 | CR4_OSFXSR), 0);
  assert_true(rig.cpu->cr4 & CR4_OSFXSR);
  assert_int_equal(cpu_set_control(rig.cpu, 8, 16), -EINVAL);
  assert_int_equal(cpu_set_control(rig.cpu, 8, 5), 0);
  assert_int_equal(rig.priority, 5);
  assert_int_equal(cpu_set_control(rig.cpu, 1, 0), -EINVAL);
  assert_int_equal(cpu_load_segment(rig.cpu, DS, 0x1000), -EINVAL);
  assert_int_equal(cpu_load_segment(rig.cpu, DS, 0x23), 0);
  assert_int_equal(cpu_load_segment(rig.cpu, SS, 0x23), -EINVAL);
  assert_int_equal(cpu_load_segment(rig.cpu, CS, 0x38), -EINVAL);
  assert_int_equal(cpu_load_segment(rig.cpu, TR, 0x28), -EINVAL);
  assert_false(cpu_read_msr(rig.cpu, 0x12345678, &value));
  assert_int_equal(value, 7);
  assert_false(cpu_write_msr(rig.cpu, 0xC0000100, UINT64_C(1) << 60));
  assert_true(cpu_write_msr(rig.cpu, 0xC0000100, 0x1234));
  assert_true(cpu_read_msr(rig.cpu, 0xC0000100, &value));
  assert_int_equal(value, 0x1234);
  assert_int_equal(rig.cpu->segment[FS].linear_base, 0x1234);
  rig_free(&rig);
  rig_real(&rig, "skylake");
  assert_int_equal(cpu_load_segment(rig.cpu, CS, 0x123), 0);
  assert_int_equal(rig.cpu->segment[CS].base, 0x1230);
  rig_free(&rig);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_code),        cmocka_unit_test(test_code_pair),   cmocka_unit_test(test_code_shadow),
    cmocka_unit_test(test_data),        cmocka_unit_test(test_data_repeat), cmocka_unit_test(test_step_repeat),
    cmocka_unit_test(test_step_events), cmocka_unit_test(test_exceptions),  cmocka_unit_test(test_changes),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
