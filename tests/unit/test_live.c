/* SPDX-License-Identifier: Apache-2.0
 *
 * src/hardware/live.h against recorders that stand in for silicon: every CPU of the catalogue is switched on, fed with
 * branches and read back; what was fed, what the recorder itself shows and what was read must be the same. Then one
 * step after the other fails, or is interrupted by a signal: the registers must be as before.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "lastbranch/error.h"
#include "live_rig.h"

#define BRANCHES_MAX 200
#define EVTSEL_TAKEN 0x5300C4
#define EXTN_BRS 0x1C
#if defined(__SANITIZE_ADDRESS__)
#define SIGNAL_STRIDE 9 /* forks are slow there */
#else
#define SIGNAL_STRIDE 1
#endif

static uint64_t random_state = 88172645463325252u;

static uint64_t random_number(void)
{
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}

/* ---- branches ---- */

/* An address that the CPU can have: of 32 bits, or canonical. */
static uint64_t random_address(const struct lb_cpu *cpu, bool is_kernel)
{
  uint64_t bits = random_number();

  if (!lb_cpu_has(cpu, LB_FEATURE_LONG_MODE))
    return (bits & 0x7FFFFFFF) | (is_kernel ? 0x80000000u : 0);
  return is_kernel ? bits | UINT64_C(0xFFFF800000000000) : bits & UINT64_C(0x7FFFFFFFFFFF);
}

static struct lb_branch random_branch(const struct lb_cpu *cpu)
{
  static const uint8_t kinds[] = {LB_BRANCH_JCC,      LB_BRANCH_NEAR_REL_CALL, LB_BRANCH_NEAR_IND_CALL,
                                  LB_BRANCH_NEAR_RET, LB_BRANCH_NEAR_IND_JMP,  LB_BRANCH_NEAR_REL_JMP,
                                  LB_BRANCH_IRET};
  bool is_kernel = random_number() & 1, is_32 = !lb_cpu_has(cpu, LB_FEATURE_LONG_MODE);
  struct lb_branch branch = {
    .from = random_address(cpu, is_kernel),
    .to = random_address(cpu, is_kernel),
    .kind = kinds[random_number() % sizeof(kinds)],
    .from_cpl = is_kernel ? 0 : 3,
    .to_cpl = is_kernel ? 0 : 3,
  };

  branch.flags |= random_number() & 1 ? LB_BRANCH_MISPREDICTED : 0;
  branch.flags |= lb_cpu_has(cpu, LB_FEATURE_TSX) && !(random_number() % 4) ? LB_BRANCH_IN_TSX : 0;
  branch.flags |= is_32 ? LB_BRANCH_FROM_32 | LB_BRANCH_TO_32 : 0;
  return branch;
}

/* Branch sampling begins when its counter overflows. */
static void sampling_begin(struct silicon *silicon)
{
  const struct lb_progress progress = {.taken_branches = 1};

  assert_int_equal(lb_recorder_wrmsr(&silicon->unit, 0xC0010200, EVTSEL_TAKEN), LB_MSR_OK);
  assert_int_equal(lb_recorder_wrmsr(&silicon->unit, 0xC0010201, UINT64_C(0xFFFFFFFFFFFF)), LB_MSR_OK);
  assert_int_equal(lb_recorder_wrmsr(&silicon->unit, 0xC000010F, EXTN_BRS), LB_MSR_OK);
  lb_recorder_progress(&silicon->unit, &progress);
}

static void silicon_feed(struct silicon *silicon, struct lb_branch *branches, unsigned *cycles, unsigned count)
{
  if (lb_cpu_has(silicon->unit.cpu, LB_FEATURE_BRS))
    sampling_begin(silicon);
  for (unsigned i = 0; i < count; i++) {
    branches[i] = random_branch(silicon->unit.cpu);
    cycles[i] = random_number() % 5000;
    lb_recorder_clock(&silicon->unit, cycles[i]);
    lb_recorder_branch(&silicon->unit, &branches[i]);
  }
}

/* ---- the whole way ---- */

static struct hardware_filter filter_of_all(const struct lb_cpu *cpu)
{
  return (struct hardware_filter){lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR) ? 0x7F0006 : 0};
}

static void assert_same_record(const struct lb_record *one, const struct lb_record *other)
{
  assert_int_equal(one->index, other->index);
  assert_true(one->from == other->from && one->to == other->to);
  assert_true(one->raw.from == other->raw.from && one->raw.to == other->raw.to && one->raw.info == other->raw.info);
  assert_int_equal(one->is_mispredicted, other->is_mispredicted);
  assert_int_equal(one->is_in_tsx, other->is_in_tsx);
  assert_int_equal(one->is_tsx_abort, other->is_tsx_abort);
  assert_int_equal(one->has_cycles, other->has_cycles);
  assert_int_equal(one->cycles, other->cycles);
  assert_int_equal(one->type, other->type);
  assert_int_equal(one->is_empty, other->is_empty);
}

/* What was read, beside what the unit itself shows. */
static void assert_same_stack(const struct lb_recorder *read, const struct lb_recorder *unit)
{
  struct lb_record one, other;
  unsigned age;

  for (age = 0; lb_recorder_entry(unit, age, &one) >= 0; age++) {
    assert_int_equal(lb_recorder_entry(read, age, &other), 0);
    assert_same_record(&other, &one);
  }
  assert_int_equal(lb_recorder_entry(read, age, &other), LB_E_NO_ENTRY);
  assert_int_equal(lb_recorder_ler(read, &other), lb_recorder_ler(unit, &one));
  if (lb_recorder_ler(unit, &one) >= 0)
    assert_true(one.from == other.from && one.to == other.to);
  assert_int_equal(lb_recorder_used(read), lb_recorder_used(unit));
}

/* What was read, beside what was fed, the newest first. */
static void assert_fed(const struct lb_recorder *read, const struct lb_branch *branches, const unsigned *cycles,
                       unsigned count)
{
  unsigned depth = lb_cpu_depth(read->cpu);
  bool is_sampling = lb_cpu_has(read->cpu, LB_FEATURE_BRS);
  unsigned kept = is_sampling && count > depth ? depth : count; /* it fills once */

  for (unsigned age = 0; age < depth && age < kept; age++) {
    const struct lb_branch *branch = &branches[kept - 1 - age];
    struct lb_record record;

    assert_int_equal(lb_recorder_entry(read, age, &record), 0);
    assert_true(record.from == branch->from && record.to == branch->to);
    if (record.has_mispredicted)
      assert_int_equal(record.is_mispredicted, (branch->flags & LB_BRANCH_MISPREDICTED) != 0);
    if (record.has_tsx)
      assert_int_equal(record.is_in_tsx, (branch->flags & LB_BRANCH_IN_TSX) != 0);
    if (record.has_cycles)
      assert_int_equal(record.cycles, cycles[kept - 1 - age]);
  }
  assert_int_equal(lb_recorder_used(read), kept < depth ? kept : depth);
}

static void check_cpu(const struct lb_cpu *cpu, unsigned count)
{
  struct lb_branch branches[BRANCHES_MAX] = {0};
  unsigned cycles[BRANCHES_MAX] = {0};
  struct silicon silicon;
  struct hardware_registers registers = silicon_registers(&silicon);
  struct hardware_filter filter = filter_of_all(cpu);
  struct hardware_row row;
  struct hardware_live live;
  struct hardware_reading reading;
  struct all_registers fresh, before, after;
  struct lb_recorder read;

  silicon_init(&silicon, cpu);
  hardware_row_of(cpu, &row);
  hardware_live_begin(&live, &row, &registers);
  silicon_look(&silicon, &fresh);
  assert_int_equal(hardware_live_is_on(&live), 0);
  assert_int_equal(hardware_live_arm(&live, &filter), 0);
  assert_int_equal(hardware_live_is_on(&live), 1);
  silicon_feed(&silicon, branches, cycles, count);
  silicon_look(&silicon, &before);
  assert_int_equal(hardware_live_read(&live, false, &read, &reading), 0);
  silicon_look(&silicon, &after);
  assert_memory_equal(&before, &after, sizeof(before));
  assert_false(reading.is_torn || reading.tos_is_odd || reading.missing);
  assert_same_stack(&read, &silicon.unit);
  assert_fed(&read, branches, cycles, count);
  assert_true(read.debugctl == silicon.unit.debugctl && read.lbr.ctl == silicon.unit.lbr.ctl);
  assert_true(read.lbr.extn == silicon.unit.lbr.extn && read.lbr.select == silicon.unit.lbr.select);
  assert_int_equal(lb_recorder_is_recording(&read),
                   lb_recorder_is_recording(&silicon.unit) && !lb_cpu_has(cpu, LB_FEATURE_BRS));
  assert_int_equal(hardware_live_end(&live), 0);
  assert_int_equal(hardware_live_is_on(&live), silicon.unit.lbr.extn & 4 ? 1 : 0);
}

static void test_every_cpu(void **state)
{
  const struct lb_cpu *cpu;
  unsigned checked = 0;

  (void)state;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    if (!cpu->lbr)
      continue;
    check_cpu(cpu, 0);
    check_cpu(cpu, 1);
    check_cpu(cpu, 3);
    check_cpu(cpu, lb_cpu_depth(cpu));
    check_cpu(cpu, 2 * lb_cpu_depth(cpu) + 5);
    checked++;
  }
  assert_true(checked > 40);
}

/* ---- a step fails ---- */

enum work { WORK_READ, WORK_ARM, WORK_ARM_READ_END, WORKS };

/* One of the ways to use it. Returns its error. */
static int work_do(enum work work, struct hardware_live *live, const struct hardware_filter *filter)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  int r = 0, end;

  if (work == WORK_READ)
    return hardware_live_read(live, false, &read, &reading);
  r = hardware_live_arm(live, filter);
  if (work == WORK_ARM_READ_END && r >= 0)
    r = hardware_live_read(live, false, &read, &reading);
  end = hardware_live_end(live);
  return r < 0 ? r : end;
}

/* On and full, or off for those who switch it on. */
static void work_prepare(enum work work, struct silicon *silicon, struct hardware_row *row, const struct lb_cpu *cpu)
{
  struct hardware_registers registers = silicon_registers(silicon);
  struct hardware_filter filter = filter_of_all(cpu);
  struct lb_branch branches[BRANCHES_MAX] = {0};
  unsigned cycles[BRANCHES_MAX] = {0};
  struct hardware_live live;

  silicon_init(silicon, cpu);
  hardware_row_of(cpu, row);
  hardware_live_begin(&live, row, &registers);
  assert_int_equal(hardware_live_arm(&live, &filter), 0);
  silicon_feed(silicon, branches, cycles, lb_cpu_depth(cpu) + 2);
  if (work != WORK_READ)
    assert_int_equal(hardware_live_end(&live), 0);
  silicon_calm(silicon);
}

static void fail_at(const struct lb_cpu *cpu, enum work work, unsigned step, int error, bool fails_on,
                    const struct silicon *prepared)
{
  struct silicon silicon = *prepared;
  struct hardware_registers registers = silicon_registers(&silicon);
  struct hardware_filter filter = filter_of_all(cpu);
  struct hardware_row row;
  struct hardware_live live;
  struct all_registers before, after;
  int r;

  hardware_row_of(cpu, &row);
  silicon_look(&silicon, &before);
  silicon.failing = step;
  silicon.error = error;
  silicon.fails_on = fails_on;
  hardware_live_begin(&live, &row, &registers);
  live.is_ours = true;
  r = work_do(work, &live, &filter);
  silicon_look(&silicon, &after);
  assert_memory_equal(&before, &after, sizeof(before));
  if (r < 0 && live.trouble.error != -EBUSY)
    assert_int_equal(live.trouble.error, error);
}

static void test_every_step_fails(void **state)
{
  const struct lb_cpu *cpu;

  (void)state;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    for (enum work work = 0; cpu->lbr && work < WORKS; work++) {
      struct hardware_filter filter = filter_of_all(cpu);
      struct silicon silicon, run;
      struct hardware_registers registers = silicon_registers(&run);
      struct hardware_live live;
      struct hardware_row row;

      work_prepare(work, &silicon, &row, cpu);
      run = silicon;
      hardware_live_begin(&live, &row, &registers);
      live.is_ours = true;
      assert_int_equal(work_do(work, &live, &filter), 0);
      assert_true(run.steps > 3);
      for (unsigned step = 0; step < run.steps; step++) {
        fail_at(cpu, work, step, -EIO, false, &silicon);
        fail_at(cpu, work, step, -EPERM, false, &silicon);
        fail_at(cpu, work, step, -EIO, true, &silicon);
      }
    }
}

/* ---- a signal comes ---- */

static void signal_at(const struct lb_cpu *cpu, enum work work, const struct silicon *prepared, struct silicon *shared)
{
  struct hardware_filter filter = filter_of_all(cpu);
  struct all_registers before, after;
  int number = shared->signal, status;
  pid_t child;

  silicon_look(prepared, &before);
  child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    struct hardware_registers registers = silicon_registers(shared);
    struct hardware_live live;
    struct hardware_row row;

    hardware_row_of(cpu, &row);
    hardware_live_begin(&live, &row, &registers);
    live.is_ours = true;
    hardware_guard_begin(&live.undo, 0);
    work_do(work, &live, &filter);
    _exit(77); /* not interrupted */
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), number);
  silicon_look(shared, &after);
  assert_memory_equal(&before, &after, sizeof(before));
}

static void signals_through(const char *name, enum work work, int number, unsigned again)
{
  struct silicon *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  struct hardware_filter filter;
  const struct lb_cpu *cpu;
  struct silicon prepared, run;
  struct hardware_registers registers = silicon_registers(&run);
  struct hardware_live live;
  struct hardware_row row;

  assert_true(shared != MAP_FAILED);
  assert_int_equal(lb_cpu_find(name, &cpu), 0);
  filter = filter_of_all(cpu);
  work_prepare(work, &prepared, &row, cpu);
  run = prepared;
  hardware_live_begin(&live, &row, &registers);
  live.is_ours = true;
  assert_int_equal(work_do(work, &live, &filter), 0);
  for (unsigned step = 0; step < 2 * run.steps; step += SIGNAL_STRIDE) {
    *shared = prepared;
    shared->interrupted = step / 2;
    shared->is_behind = step % 2;
    shared->signal = number;
    shared->signals_again = again;
    signal_at(cpu, work, &prepared, shared);
  }
  munmap(shared, sizeof(*shared));
}

static void test_signals(void **state)
{
  static const char *const names[] = {"p6", "pentium4", "pentium-m", "merom", "nehalem", "zen2", "zen4"};

  (void)state;
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
    signals_through(names[i], WORK_READ, SIGTERM, 0);
    signals_through(names[i], WORK_ARM, SIGINT, 0);
  }
  signals_through("skylake", WORK_ARM_READ_END, SIGTERM, 0);
  signals_through("sapphirerapids", WORK_ARM_READ_END, SIGHUP, 0);
}

/* A second signal, while the first puts registers back. */
static void test_second_signal(void **state)
{
  (void)state;
  signals_through("merom", WORK_ARM_READ_END, SIGTERM, 3);
  signals_through("zen4", WORK_READ, SIGINT, 2);
}

static void test_crash(void **state)
{
#if defined(__SANITIZE_ADDRESS__)
  (void)state;
  print_message("# the sanitizer handles what a wild pointer raises\n");
  skip();
#else
  (void)state;
  signals_through("westmere", WORK_READ, SIGSEGV, 0);
  signals_through("zen5", WORK_ARM, SIGSEGV, 0);
#endif
}

/* ---- what is refused ---- */

struct bench {
  struct silicon silicon;
  struct hardware_registers registers;
  struct hardware_row row;
  struct hardware_live live;
};

static void bench_init(struct bench *bench, const char *name)
{
  const struct lb_cpu *cpu;

  assert_int_equal(lb_cpu_find(name, &cpu), 0);
  silicon_init(&bench->silicon, cpu);
  bench->registers = silicon_registers(&bench->silicon);
  hardware_row_of(cpu, &bench->row);
  hardware_live_begin(&bench->live, &bench->row, &bench->registers);
}

static void test_not_ours(void **state)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  struct bench bench;

  (void)state;
  bench_init(&bench, "skylake");
  assert_int_equal(lb_recorder_wrmsr(&bench.silicon.unit, 0x1D9, 1), LB_MSR_OK);
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), -EBUSY);
  assert_int_equal(bench.live.trouble.error, -EBUSY);
  assert_int_equal(hardware_live_read(&bench.live, true, &read, &reading), 0);
  assert_int_equal(bench.silicon.writes, 0);
  assert_true(lb_recorder_is_recording(&read));
}

/* While it is off nothing is written, whoever looks. */
static void test_off_is_only_read(void **state)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  const struct lb_cpu *cpu;
  struct bench bench;

  (void)state;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    if (!cpu->lbr)
      continue;
    bench_init(&bench, cpu->name);
    assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), 0);
    assert_int_equal(bench.silicon.writes, 0);
  }
}

static void test_forgetful(void **state)
{
  struct hardware_filter filter = {0};
  struct bench bench;

  (void)state;
  bench_init(&bench, "skylake");
  bench.silicon.forgetful = 0x1D9;
  assert_int_equal(hardware_live_arm(&bench.live, &filter), -EOPNOTSUPP);
  assert_int_equal(bench.live.trouble.msr, 0x1D9);
  assert_int_equal(bench.live.undo.count, 0);
}

/* A filter that the CPU does not take, and the switch that is off behind it. */
static void test_bad_filter(void **state)
{
  struct hardware_filter filter = {0x8000};
  struct bench bench;

  (void)state;
  bench_init(&bench, "skylake");
  assert_int_equal(hardware_live_arm(&bench.live, &filter), -EIO);
  assert_int_equal(bench.live.trouble.msr, 0x1C8);
  assert_true(bench.live.trouble.is_write);
  assert_int_equal(hardware_live_is_on(&bench.live), 0);
}

static void test_adopt(void **state)
{
  const struct hardware_change mine[] = {{.msr = 0x1C8, .mask = UINT64_MAX, .before = 4, .after = 1},
                                         {.msr = 0x1D9, .mask = 1, .before = 0, .after = 1}};
  const struct hardware_change foreign = {.msr = 0x10, .mask = UINT64_MAX};
  const struct hardware_change wide = {.msr = 0x1D9, .mask = UINT64_MAX};
  struct hardware_filter filter = {1};
  struct bench bench;

  (void)state;
  bench_init(&bench, "skylake");
  assert_int_equal(hardware_live_adopt(&bench.live, &foreign, 1), -EINVAL);
  assert_int_equal(hardware_live_adopt(&bench.live, &wide, 1), -EINVAL);
  assert_int_equal(hardware_live_arm(&bench.live, &filter), 0);
  hardware_undo_forget(&bench.live.undo);
  assert_int_equal(lb_recorder_wrmsr(&bench.silicon.unit, 0x1D9, 3), LB_MSR_OK); /* somebody's BTF */
  assert_int_equal(hardware_live_is_as_left(&bench.live, mine, 2), 1);
  assert_int_equal(hardware_live_adopt(&bench.live, mine, 2), 0);
  assert_int_equal(hardware_live_end(&bench.live), 0);
  assert_true(bench.silicon.unit.debugctl == 2 && bench.silicon.unit.lbr.select == 4);
  assert_int_equal(hardware_live_is_as_left(&bench.live, mine, 2), 0);
}

static void test_counters(void **state)
{
  struct bench bench;

  (void)state;
  bench_init(&bench, "skylake");
  assert_int_equal(hardware_live_counters(&bench.live), 0);
  assert_int_equal(lb_recorder_wrmsr(&bench.silicon.unit, 0x187, 0x4300C4), LB_MSR_OK);
  assert_int_equal(lb_recorder_wrmsr(&bench.silicon.unit, 0x38D, 0x0B0), LB_MSR_OK);
  assert_int_equal(hardware_live_counters(&bench.live), 2);
  assert_int_equal(lb_recorder_wrmsr(&bench.silicon.unit, 0x186, 0x0300C4), LB_MSR_OK); /* programmed, and off */
  assert_int_equal(hardware_live_counters(&bench.live), 3);
  bench_init(&bench, "zen4");
  assert_int_equal(lb_recorder_wrmsr(&bench.silicon.unit, 0xC0010202, 0x4300C4), LB_MSR_OK);
  assert_int_equal(hardware_live_counters(&bench.live), 1);
}

/* ---- hostile values ---- */

struct liar {
  struct lb_recorder *unit;
  uint32_t msr;
  uint64_t value;
};

static int liar_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  const struct liar *liar = data;

  if (msr == liar->msr)
    *ret_value = liar->value;
  else if (lb_recorder_rdmsr(liar->unit, msr, ret_value) != LB_MSR_OK)
    return -EIO;
  return 0;
}

static int liar_write(void *data, uint32_t msr, uint64_t value)
{
  (void)data, (void)msr, (void)value;
  return -EPERM;
}

static int read_lie(const char *name, uint32_t msr, uint64_t value, struct lb_recorder *read,
                    struct hardware_reading *reading, struct bench *bench)
{
  struct liar liar = {&bench->silicon.unit, msr, value};

  bench_init(bench, name);
  bench->registers = (struct hardware_registers){.data = &liar, .read = liar_read, .write = liar_write};
  return hardware_live_read(&bench->live, false, read, reading);
}

static void test_hostile(void **state)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  struct lb_record record;
  struct bench bench;

  (void)state;
  assert_int_equal(read_lie("skylake", 0x1C9, UINT64_C(0xFFFFFFFFFFFFFFE7), &read, &reading, &bench), 0);
  assert_true(reading.tos_is_odd && reading.has_tos);
  assert_int_equal(lb_recorder_entry(&read, 0, &record), 0);
  assert_int_equal(record.index, 7);
  assert_int_equal(read_lie("dothan", 0x1C9, 0x08000003, &read, &reading, &bench), 0);
  assert_false(reading.tos_is_odd);
  assert_int_equal(read_lie("sapphirerapids", 0x14CF, 0, &read, &reading, &bench), -ERANGE);
  assert_int_equal(read_lie("sapphirerapids", 0x14CF, 200, &read, &reading, &bench), -ERANGE);
  assert_int_equal(read_lie("sapphirerapids", 0x14CF, 8, &read, &reading, &bench), 0);
  assert_int_equal(lb_recorder_entry(&read, 8, &record), LB_E_NO_ENTRY);
  assert_int_equal(read_lie("skylake", 0x680, UINT64_C(0x8001000000000000), &read, &reading, &bench), 0);
  assert_int_equal(lb_recorder_entry(&read, 0, &record), 0);
  assert_true(record.from == UINT64_C(0x8001000000000000));
  assert_int_equal(read_lie("zen3", 0xC000010F, UINT64_MAX & ~UINT64_C(4), &read, &reading, &bench), 0);
  assert_int_equal(read_lie("zen4", 0xC0010301, UINT64_C(3) << 61, &read, &reading, &bench), 0);
  assert_int_equal(lb_recorder_used(&read), 0); /* erratum 1452: TO[61] says that it is no record */
}

/* Registers beside the stack may be missing in a virtual machine; those of the stack may not. */
static void test_missing(void **state)
{
  struct hardware_reading reading;
  struct lb_recorder read;
  struct bench bench;

  (void)state;
  bench_init(&bench, "skylake");
  bench.silicon.unit.cpu = NULL;
  assert_int_equal(lb_cpu_find("haswell", &bench.silicon.unit.cpu), 0); /* 16 entries, no INFO */
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), -EIO);
  assert_int_equal(bench.live.trouble.msr, 0x690);
  bench_init(&bench, "haswell");
  assert_int_equal(hardware_live_read(&bench.live, false, &read, &reading), 0);
  assert_true(reading.missing == 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_cpu),
    cmocka_unit_test(test_every_step_fails),
    cmocka_unit_test(test_signals),
    cmocka_unit_test(test_second_signal),
    cmocka_unit_test(test_crash),
    cmocka_unit_test(test_not_ours),
    cmocka_unit_test(test_off_is_only_read),
    cmocka_unit_test(test_forgetful),
    cmocka_unit_test(test_bad_filter),
    cmocka_unit_test(test_adopt),
    cmocka_unit_test(test_counters),
    cmocka_unit_test(test_hostile),
    cmocka_unit_test(test_missing),
  };

  return cmocka_run_group_tests_name("live", tests, NULL, NULL);
}
