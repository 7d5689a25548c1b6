/* SPDX-License-Identifier: Apache-2.0
 *
 * Counters that are far from their overflow hear of many instructions at once. Whatever can be seen must be as if they
 * heard of each: a program runs both ways, and its reads of the counters, the records with their cycles, and the moment
 * of an overflow are compared. What makes the second way is a counter with a CMASK, whose event never happens.
 */
#include "cpu_rig.h"

enum { ROUNDS = 200, DE = 0, SYSTEM_CALL = 0x40 };

/* Ring 3: a loop with a system call every second time, a call, RDPMC of fixed counter 1 and of counters 0 and 1, whose
 * values go to DATA, and a division by zero, which its handler skips; it ends with UD2. */
static const uint8_t program[] = {
  0xB9, ROUNDS,      0,         0, 0,                /* mov $ROUNDS, %ecx */
  0xBF, 0,           DATA >> 8, 0, 0,                /* mov $DATA, %edi */
  0x51,                                              /* push %ecx */
  0xF6, 0xC1,        1,                              /* test $1, %cl */
  0x74, 2,                                           /* jz behind int */
  0xCD, SYSTEM_CALL,                                 /* int */
  0xE8, 32,          0,         0, 0,                /* call the last two bytes */
  0xB9, 1,           0,         0, 0x40, 0x0F, 0x33, /* mov $0x40000001, %ecx; rdpmc */
  0xAB,                                              /* stosl */
  0xB9, 0,           0,         0, 0,    0x0F, 0x33, /* the same of counter 0 */
  0xAB,                                              /*  */
  0xB9, 1,           0,         0, 0,    0x0F, 0x33, /* and 1 */
  0xAB,                                              /*  */
  0x59,                                              /* pop %ecx */
  0xF6, 0xF7,                                        /* div %bh */
  0x49,                                              /* dec %ecx */
  0x75, 0xD5,                                        /* jnz to push */
  0x0F, 0x0B,                                        /* ud2 */
  0x90, 0xC3,                                        /* nop; ret */
};

enum {
  EVENT_INSTRUCTIONS = 0xC0,
  EVENT_BRANCHES = 0xC4,
  EVENT_MISPREDICTS = 0xC5,
  USR = 1 << 16,
  OS = 1 << 17,
  INT = 1 << 20,
  EN = 1 << 22,
};

struct setup {
  uint64_t first;   /* of counter 0 */
  uint64_t control; /* DEBUGCTL */
  bool is_slow;
};

static void set(struct rig *rig, uint32_t msr, uint64_t value)
{
  assert_int_equal(wrmsr(rig, msr, value), DONE);
}

static void program_run(struct rig *rig)
{
  rig->cpu->cr4 |= CR4_PCE;
  assert_true(memory_write(&rig->memory, CODE, program, sizeof(program)));
  run_ring_3(rig);
}

static void rig_begin(struct rig *rig, const char *cpu)
{
  rig_protected(rig, cpu);
  predictor_init(&rig->cpu->predictor, PREDICTOR_2BIT);
  put(rig, HANDLERS + 16 * SYSTEM_CALL, 0xCF90, 2);        /* nop; iret */
  put(rig, HANDLERS + 16 * DE, UINT64_C(0xCF02240483), 5); /* addl $2, (%esp); iret */
}

static void run(struct rig *rig, const struct setup *setup)
{
  rig_begin(rig, "skylake");
  set(rig, 0x4C1, setup->first); /* IA32_A_PMC0 */
  set(rig, 0x186, EVENT_INSTRUCTIONS | USR | INT | EN);
  set(rig, 0x187, EVENT_BRANCHES | USR | OS | EN);
  set(rig, 0x188, EVENT_MISPREDICTS | USR | OS | EN);
  set(rig, 0x189, setup->is_slow ? UINT64_C(0x010000FF) | USR | OS | EN : 0);
  set(rig, 0x38D, 0x213); /* instructions of both, cycles of the kernel, reference cycles of the user */
  set(rig, 0x1D9, setup->control);
  set(rig, 0x38F, UINT64_C(0x70000000F));
  program_run(rig);
}

static void assert_same_msr(struct rig *quick, struct rig *slow, uint32_t msr)
{
  uint64_t a = 0, b = 0;

  assert_int_equal(lb_recorder_rdmsr(&quick->cpu->recorder, msr, &a), LB_MSR_OK);
  assert_int_equal(lb_recorder_rdmsr(&slow->cpu->recorder, msr, &b), LB_MSR_OK);
  if (a != b)
    fail_msg("msr %x: %llx, one by one %llx", msr, (unsigned long long)a, (unsigned long long)b);
}

static void assert_same(uint64_t first, uint64_t control)
{
  struct rig quick, slow;

  run(&quick, &(struct setup){first, control, false});
  run(&slow, &(struct setup){first, control, true});
  assert_true(quick.cpu->counts_blocks || first); /* it really was quick */
  assert_false(slow.cpu->counts_blocks);
  for (unsigned i = 0; i < 3; i++) {
    assert_same_msr(&quick, &slow, 0xC1 + i);
    assert_same_msr(&quick, &slow, 0x309 + i);
  }
  assert_same_msr(&quick, &slow, 0x38E);
  assert_same_msr(&quick, &slow, 0x1C9);
  for (unsigned i = 0; i < 32; i++) {
    assert_same_msr(&quick, &slow, 0x680 + i);
    assert_same_msr(&quick, &slow, 0x6C0 + i);
    assert_same_msr(&quick, &slow, 0xDC0 + i);
  }
  for (unsigned i = 0; i < 3 * ROUNDS; i++)
    assert_int_equal(get(&quick, DATA + 4 * i, 4), get(&slow, DATA + 4 * i, 4));
  rig_free(&quick);
  rig_free(&slow);
}

/* By hand: the two MOVs, then 16 instructions and the two of the function in a round, and INT in half of them. */
static void test_counts(void **state)
{
  (void)state;
  struct rig rig;
  run(&rig, &(struct setup){0, 0, false});
  uint64_t value = 0;
  assert_int_equal(lb_recorder_rdmsr(&rig.cpu->recorder, 0xC1, &value), LB_MSR_OK);
  assert_int_equal(value, 2 + ROUNDS * 18 + ROUNDS / 2);
  assert_int_equal(get(&rig, DATA + 4, 4),
                   2 + 10); /* the ones before the second RDPMC, and INT is not one: ECX is even */
  rig_free(&rig);
}

static void test_blocks_and_instructions(void **state)
{
  (void)state;
  assert_same(0, 0);
  assert_same(0, 1); /* with the LBR stack */
}

/* Records and counters are frozen by the overflow's PMI: what stands there tells when it was. */
static void test_overflow(void **state)
{
  (void)state;
  static const uint64_t mask = (UINT64_C(1) << 48) - 1;
  for (uint64_t left = 1; left < 3000; left += 17) {
    assert_same((0 - left) & mask, 0x1801);
    assert_same((0 - left) & mask, 1);
  }
}

/* Instructions, branches, mispredictions and slots of ring 3, and PERF_METRICS. */
static void metrics_run(struct rig *rig, bool is_slow)
{
  rig_begin(rig, "sapphirerapids");
  set(rig, 0x187, EVENT_MISPREDICTS | USR | EN);
  set(rig, 0x188, 0x20C4 | USR | EN); /* BR_INST_RETIRED.NEAR_TAKEN */
  set(rig, 0x189, is_slow ? UINT64_C(0x010000FF) | USR | OS | EN : 0);
  set(rig, 0x38D, 0x2002);
  set(rig, 0x38F, UINT64_C(0x100090000000F));
  program_run(rig);
}

static uint64_t msr_get(struct rig *rig, uint32_t msr)
{
  uint64_t value = 0;

  assert_int_equal(lb_recorder_rdmsr(&rig->cpu->recorder, msr, &value), LB_MSR_OK);
  return value;
}

/* The part of the slots that a byte of PERF_METRICS stands for is this, within what its eight bits can say. */
static void assert_share(struct rig *rig, unsigned byte, uint64_t wanted)
{
  uint64_t share = msr_get(rig, 0x329) >> (8 * byte) & 0xFF, slots = msr_get(rig, 0x30C);

  if (share * slots / 255 > wanted + slots / 255 || share * slots / 255 + slots / 255 < wanted)
    fail_msg("byte %u: %llu of %llu slots, not %llu", byte, (unsigned long long)(share * slots / 255),
             (unsigned long long)slots, (unsigned long long)wanted);
}

/* doc/machine.md: a slot of four for each instruction, the cycles of mispredictions, three slots of each taken branch.
 * Far branches (a system call every second round) are taken ones too. */
static void test_metrics(void **state)
{
  struct rig quick, slow;

  metrics_run(&quick, false);
  metrics_run(&slow, true);
  assert_false(slow.cpu->counts_blocks);
  assert_same_msr(&quick, &slow, 0x30C);
  assert_same_msr(&quick, &slow, 0x329);
  uint64_t value = msr_get(&quick, 0x329);
  uint64_t mispredicts = msr_get(&quick, 0xC2), taken = msr_get(&quick, 0xC3) + ROUNDS / 2;
  assert_int_equal((value & 0xFF) + (value >> 8 & 0xFF) + (value >> 16 & 0xFF) + (value >> 24 & 0xFF), 255);
  assert_true(mispredicts > 0);
  assert_share(&quick, 0, msr_get(&quick, 0x309));
  assert_share(&quick, 1, 4 * 15 * mispredicts);
  assert_share(&quick, 2, 3 * taken);
  assert_share(&quick, 3, 3 * (msr_get(&quick, 0x309) - taken));
  rig_free(&quick);
  rig_free(&slow);
  (void)state;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_counts),
    cmocka_unit_test(test_blocks_and_instructions),
    cmocka_unit_test(test_overflow),
    cmocka_unit_test(test_metrics),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
