/* SPDX-License-Identifier: Apache-2.0
 *
 * The contracts of recorder.h that a rule file cannot state: return codes, hosts without callbacks, memory that fails,
 * many units side by side, records that cross a page. What the hardware does is in tests/recorder/.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lastbranch/error.h"
#include "lastbranch/recorder.h"

#define DEBUGCTL 0x1D9
#define DS_AREA 0x600

static const struct lb_cpu *cpu_named(const char *name)
{
  const struct lb_cpu *cpu = NULL;

  assert_int_equal(lb_cpu_find(name, &cpu), 0);
  return cpu;
}

static struct lb_branch jump(uint64_t from, uint64_t to)
{
  return (struct lb_branch){.from = from, .to = to, .kind = LB_BRANCH_NEAR_REL_JMP};
}

static uint64_t msr_read(const struct lb_recorder *unit, uint32_t msr)
{
  uint64_t value = 0;

  assert_int_equal(lb_recorder_rdmsr(unit, msr, &value), LB_MSR_OK);
  return value;
}

static void msr_write(struct lb_recorder *unit, uint32_t msr, uint64_t value)
{
  assert_int_equal(lb_recorder_wrmsr(unit, msr, value), LB_MSR_OK);
}

/* ---- registers as they were found ---- */

static void test_put(void **state)
{
  struct lb_recorder unit;
  struct lb_record record;
  uint64_t value;

  (void)state;
  assert_int_equal(lb_recorder_init(&unit, cpu_named("p6"), NULL, 0), 0);
  assert_int_equal(lb_recorder_wrmsr(&unit, 0x1DB, 0x1000), LB_MSR_GP); /* read-only: SDM 17.14.2 speaks of reading */
  assert_int_equal(lb_recorder_put(&unit, 0x1DB, 0x1000), LB_MSR_OK);
  assert_int_equal(lb_recorder_put(&unit, 0x1DC, 0x2000), LB_MSR_OK);
  assert_int_equal(msr_read(&unit, 0x1DB), 0x1000);
  assert_int_equal(lb_recorder_entry(&unit, 0, &record), 0);
  assert_int_equal(record.to, 0x2000);
  assert_int_equal(record.kind, LB_BRANCH_KINDS);
  assert_int_equal(lb_recorder_put(&unit, 0x680, 1), LB_MSR_FOREIGN);
  assert_int_equal(lb_recorder_put(&unit, 0xC1, 1), LB_MSR_GP); /* counters are WRMSR's */

  assert_int_equal(lb_recorder_init(&unit, cpu_named("sapphirerapids"), NULL, 0), 0);
  assert_int_equal(lb_recorder_put(&unit, 0x14CF, 0), LB_MSR_GP);
  assert_int_equal(lb_recorder_put(&unit, 0x14CF, 33), LB_MSR_GP);
  assert_int_equal(lb_recorder_put(&unit, 0x14CF, 8), LB_MSR_OK);
  assert_int_equal(lb_recorder_put(&unit, 0x1508, 1), LB_MSR_GP); /* entry 8 of 8 */
  assert_int_equal(lb_recorder_put(&unit, 0x1507, UINT64_C(0x8000000000000000)), LB_MSR_OK);
  assert_int_equal(lb_recorder_put(&unit, 0x1207, UINT64_MAX), LB_MSR_OK);
  assert_int_equal(lb_recorder_entry(&unit, 7, &record), 0);
  assert_true(record.from == UINT64_C(0x8000000000000000)); /* WRMSR would make it canonical */
  assert_int_equal(record.kind, LB_BRANCH_KINDS);
  assert_int_equal(lb_recorder_rdmsr(&unit, 0x1508, &value), LB_MSR_GP);

  assert_int_equal(lb_recorder_init(&unit, cpu_named("skylake"), NULL, 0), 0);
  assert_int_equal(lb_recorder_put(&unit, 0x1C9, UINT64_C(0xFFFFFFFFFFFFFFE3)), LB_MSR_OK); /* WRMSR would fault */
  assert_int_equal(msr_read(&unit, 0x1C9), 3);
  assert_int_equal(lb_recorder_put(&unit, DEBUGCTL, 1), LB_MSR_OK);
  assert_true(lb_recorder_is_recording(&unit));
  assert_int_equal(lb_recorder_put(&unit, 0x38E, UINT64_C(1) << 58), LB_MSR_OK); /* LBR_FRZ */
  assert_false(lb_recorder_is_recording(&unit));
}

/* ---- hosts ---- */

struct memory {
  unsigned char bytes[0x4000]; /* at linear 0x1000 */
  bool fails;
  unsigned pmis, maps;
};

static int memory_read(void *data, uint64_t linear, void *bytes, size_t size)
{
  struct memory *memory = data;

  if (memory->fails || linear < 0x1000 || linear - 0x1000 + size > sizeof(memory->bytes))
    return LB_E_DS_MEMORY;
  memcpy(bytes, memory->bytes + linear - 0x1000, size);
  return 0;
}

static int memory_write(void *data, uint64_t linear, const void *bytes, size_t size)
{
  struct memory *memory = data;

  if (memory->fails || linear < 0x1000 || linear - 0x1000 + size > sizeof(memory->bytes))
    return LB_E_DS_MEMORY;
  memcpy(memory->bytes + linear - 0x1000, bytes, size);
  return 0;
}

static void *memory_map(void *data, uint64_t linear, size_t size)
{
  struct memory *memory = data;

  assert_true(linear / 4096 == (linear + size - 1) / 4096);
  memory->maps++;
  if (linear < 0x1000 || linear - 0x1000 + size > sizeof(memory->bytes))
    return NULL;
  return memory->bytes + linear - 0x1000;
}

static void memory_pmi(void *data)
{
  ((struct memory *)data)->pmis++;
}

/* A skylake with a BTS buffer of `records` records at `base`, threshold after the last. */
static void bts_make(struct lb_recorder *unit, struct memory *memory, bool maps, uint64_t base, uint64_t records)
{
  struct lb_host host = {.data = memory, .read = memory_read, .write = memory_write, .pmi = memory_pmi};
  uint64_t area[4] = {base, base, base + 24 * records, base + 24 * records};

  host.map = maps ? memory_map : NULL;
  memset(memory, 0, sizeof(*memory));
  memcpy(memory->bytes, area, sizeof(area));
  assert_int_equal(lb_recorder_init(unit, cpu_named("skylake"), &host, 0), 0);
  msr_write(unit, DS_AREA, 0x1000);
  msr_write(unit, DEBUGCTL, 0x1C0); /* TR, BTS, BTINT */
}

/* ---- tests ---- */

static void test_foreign_registers_are_the_hosts(void **state)
{
  (void)state;
  struct lb_recorder unit;
  uint64_t value = 77;
  assert_int_equal(lb_recorder_init(&unit, cpu_named("skylake"), NULL, 0), 0);
  assert_int_equal(lb_recorder_rdmsr(&unit, 0x10, &value), LB_MSR_FOREIGN);
  assert_int_equal(value, 77);
  assert_int_equal(lb_recorder_wrmsr(&unit, 0x10, 1), LB_MSR_FOREIGN);
}

static void test_units_do_not_know_each_other(void **state)
{
  (void)state;
  static struct lb_recorder units[2];
  struct lb_branch branch = jump(0x1000, 0x2000);
  for (unsigned i = 0; i < 2; i++)
    assert_int_equal(lb_recorder_init(&units[i], cpu_named("sandybridge"), NULL, 0), 0);
  msr_write(&units[0], DEBUGCTL, 1);
  for (unsigned i = 0; i < 2; i++)
    lb_recorder_branch(&units[i], &branch);
  assert_int_equal(lb_recorder_used(&units[0]), 1);
  assert_int_equal(lb_recorder_used(&units[1]), 0);
}

static void test_entries_past_the_depth(void **state)
{
  (void)state;
  struct lb_recorder unit;
  struct lb_record record = {.index = 99};
  assert_int_equal(lb_recorder_init(&unit, cpu_named("core2"), NULL, 0), 0);
  assert_int_equal(lb_recorder_entry(&unit, 3, &record), 0);
  assert_true(record.is_empty);
  record.index = 99;
  assert_int_equal(lb_recorder_entry(&unit, 4, &record), LB_E_NO_ENTRY);
  assert_int_equal(record.index, 99);
}

static void test_a_host_without_callbacks(void **state)
{
  (void)state;
  struct lb_recorder unit;
  struct lb_branch branch = jump(0x1000, 0x2000);
  branch.flags = LB_BRANCH_TF;
  assert_int_equal(lb_recorder_init(&unit, cpu_named("skylake"), NULL, 0), 0);
  msr_write(&unit, DEBUGCTL, 0x43); /* LBR, BTF, TR: bus and trap have no listener */
  lb_recorder_branch(&unit, &branch);
  msr_write(&unit, DEBUGCTL, 0xC0); /* TR, BTS: there is no memory */
  lb_recorder_branch(&unit, &branch);
  assert_int_equal(lb_recorder_messages(&unit).generated, 2);
  assert_int_equal(lb_recorder_messages(&unit).stored, 0);
  assert_int_equal(lb_recorder_messages(&unit).lost, 1);
}

static void test_failing_memory_loses_the_record_only(void **state)
{
  (void)state;
  static struct memory memory;
  struct lb_recorder unit;
  struct lb_branch branch = jump(0x1000, 0x2000);
  bts_make(&unit, &memory, false, 0x2000, 4);
  memory.fails = true;
  lb_recorder_branch(&unit, &branch);
  memory.fails = false;
  lb_recorder_branch(&unit, &branch);
  assert_int_equal(lb_recorder_messages(&unit).lost, 1);
  assert_int_equal(lb_recorder_messages(&unit).stored, 1);
  uint64_t index;
  memcpy(&index, memory.bytes + 8, sizeof(index));
  assert_int_equal(index, 0x2018);
}

/* Records at 0x1FF0 cross into the next page: by pointers or by callbacks, memory must be the same. */
static void test_records_across_a_page(void **state)
{
  (void)state;
  static struct memory memories[2];
  for (unsigned maps = 0; maps < 2; maps++) {
    struct lb_recorder unit;

    bts_make(&unit, &memories[maps], maps, 0x1FF0 - 24, 4);
    for (uint64_t i = 0; i < 3; i++) {
      struct lb_branch branch = jump(0xAAAA0000 + i, 0xBBBB0000 + i);

      lb_recorder_branch(&unit, &branch);
    }
    assert_int_equal(lb_recorder_messages(&unit).stored, 3);
  }
  assert_true(memories[1].maps > 0);
  assert_memory_equal(memories[0].bytes, memories[1].bytes, sizeof(memories[0].bytes));
  uint64_t from;
  memcpy(&from, memories[0].bytes + 0xFF0, sizeof(from));
  assert_int_equal(from, 0xAAAA0001);
}

static void test_flush_forgets_pointers(void **state)
{
  (void)state;
  static struct memory memory;
  struct lb_recorder unit;
  struct lb_branch branch = jump(1, 2);
  bts_make(&unit, &memory, true, 0x2000, 100);
  lb_recorder_branch(&unit, &branch);
  unsigned maps = memory.maps;
  lb_recorder_branch(&unit, &branch);
  assert_int_equal(memory.maps, maps);
  lb_recorder_flush(&unit);
  lb_recorder_branch(&unit, &branch);
  assert_true(memory.maps > maps);
}

static void test_held_interrupts_come_once_at_the_end(void **state)
{
  (void)state;
  static struct memory memory;
  struct lb_recorder unit;
  struct lb_branch branch = jump(1, 2);
  bts_make(&unit, &memory, true, 0x2000, 1);
  lb_recorder_hold_pmi(&unit);
  lb_recorder_branch(&unit, &branch);
  assert_int_equal(memory.pmis, 0);
  lb_recorder_release_pmi(&unit);
  assert_int_equal(memory.pmis, 1);
  lb_recorder_release_pmi(&unit);
  assert_int_equal(memory.pmis, 1);
}

static void test_short_bytes_are_refused(void **state)
{
  (void)state;
  unsigned char bytes[256] = {0};
  struct lb_ds_area area;
  struct lb_bts_record bts;
  struct lb_registers registers;
  uint64_t status;
  assert_int_equal(lb_ds_decode(true, bytes, 0x3F, &area), LB_E_TRUNCATED);
  assert_int_equal(lb_ds_decode(false, bytes, 0x2F, &area), LB_E_TRUNCATED);
  assert_int_equal(lb_ds_decode(false, bytes, 0x30, &area), 0);
  assert_int_equal(lb_bts_decode(true, bytes, 23, &bts), LB_E_TRUNCATED);
  assert_int_equal(lb_bts_decode(true, bytes, 24, &bts), 24);
  assert_int_equal(lb_bts_decode(false, bytes, 12, &bts), 12);
  assert_int_equal(lb_pebs_decode(LB_PEBS_P4, bytes, 39, &registers, &status), LB_E_TRUNCATED);
  assert_int_equal(lb_pebs_decode(LB_PEBS_NONE, bytes, 256, &registers, &status), LB_E_NO_FIELD);
  assert_int_equal(lb_pebs_decode(LB_PEBS_4, bytes, 256, &registers, &status), LB_E_NO_FIELD);
}

/* Sizes of the manual: SDM figures 17-7, 17-10, tables 18-23, 18-44, 18-55. */
static void test_pebs_sizes(void **state)
{
  (void)state;
  static const int sizes[][2] = {
    {LB_PEBS_P4, 40}, {LB_PEBS_0, 144}, {LB_PEBS_1, 176}, {LB_PEBS_2, 192}, {LB_PEBS_3, 200}};
  unsigned char bytes[256];
  memset(bytes, 0x11, sizeof(bytes));
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    struct lb_registers registers;
    uint64_t status;

    assert_int_equal(lb_pebs_decode((unsigned)sizes[i][0], bytes, sizeof(bytes), &registers, &status), sizes[i][1]);
  }
}

/* Basic group and general registers: group bits in the head word, size in 63:48, then IP, counters, TSC, and RFLAGS. */
static void test_adaptive_pebs_is_taken_apart(void **state)
{
  (void)state;
  uint64_t words[22] = {UINT64_C(176) << 48 | 2, 0x401000, 1, 1234, 0x246, 0x401002, 0xAA};
  struct lb_registers registers;
  uint64_t status;
  assert_int_equal(lb_pebs_decode(LB_PEBS_4, words, sizeof(words), &registers, &status), 176);
  assert_int_equal(status, 1);
  assert_int_equal(registers.tsc, 1234);
  assert_int_equal(registers.rflags, 0x246);
  assert_int_equal(registers.rax, 0xAA);
  assert_int_equal(lb_pebs_decode(LB_PEBS_4, words, 175, &registers, &status), LB_E_TRUNCATED);
}

/* Linux perf_event.h, struct pebs_cntr_header: general counters, fixed counters, metrics (3: two words), 0. The head's
 * bits 47:32 are the retire latency. */
static void test_pebs_counter_group_is_measured(void **state)
{
  (void)state;
  /* bits 5:4; 32 + 16 + (2 + 1) * 8 + 16 bytes */
  uint64_t words[11] = {UINT64_C(88) << 48 | UINT64_C(77) << 32 | 0x30, 0x401000, 1, 9, UINT64_C(8) << 32 | 3, 3};
  struct lb_registers registers;
  uint64_t status;
  assert_int_equal(lb_pebs_decode(LB_PEBS_6, words, sizeof(words), &registers, &status), 88);
  assert_int_equal(registers.retire_latency, 77);
  assert_int_equal(lb_pebs_decode(LB_PEBS_6, words, 87, &registers, &status), LB_E_TRUNCATED);
  assert_int_equal(lb_pebs_decode(LB_PEBS_6, words, 47, &registers, &status), LB_E_TRUNCATED);
  words[4] = UINT64_MAX; /* more counters than the record has room for */
  assert_int_equal(lb_pebs_decode(LB_PEBS_6, words, sizeof(words), &registers, &status), LB_E_NO_FIELD);
}

/* ---- what a host asks before it reports ---- */

static void progress_instructions(struct lb_recorder *unit, uint64_t count)
{
  struct lb_progress progress = {.instructions = count, .cycles = count};

  lb_recorder_progress(unit, &progress);
}

static void test_progress_room_ends_at_the_overflow(void **state)
{
  struct lb_recorder unit;
  uint64_t select, count;

  (void)state;
  assert_int_equal(lb_recorder_init(&unit, cpu_named("skylake"), NULL, 0), 0);
  assert_false(lb_recorder_is_counting(&unit));
  assert_true(lb_recorder_progress_room(&unit) == UINT64_MAX);
  msr_write(&unit, 0xC1, 0xFFFFFF00); /* IA32_PMC0, sign-extended from bit 31: 48 bits */
  msr_write(&unit, 0x186, 0x4300C0);  /* instructions, USR, OS, EN */
  msr_write(&unit, 0x38F, 1);
  assert_true(lb_recorder_is_counting(&unit));
  assert_int_equal(lb_recorder_progress_room(&unit), 0xFF);
  progress_instructions(&unit, 0xFF);
  assert_int_equal(msr_read(&unit, 0x38E), 0);
  assert_int_equal(lb_recorder_counter(&unit, 0, &select, &count), 0);
  assert_int_equal(select, 0x4300C0);
  assert_true(count == UINT64_C(0xFFFFFFFFFFFF));
  assert_int_equal(lb_recorder_progress_room(&unit), 0);
  progress_instructions(&unit, 1);
  assert_int_equal(msr_read(&unit, 0x38E), 1); /* one more than the room overflows */
  assert_int_equal(lb_recorder_counter(&unit, 8, &select, &count), LB_E_NO_FIELD);

  msr_write(&unit, 0x186, 0x14300C0); /* CMASK 1: cycles are looked at one by one */
  assert_int_equal(lb_recorder_progress_room(&unit), 0);
  msr_write(&unit, 0x38F, 0);
  assert_false(lb_recorder_is_counting(&unit));
}

/* lb_recorder_plain_branch leaves what lb_recorder_branch leaves, on every CPU that takes the branch as a plain one. */
static void test_plain_branches_are_branches(void **state)
{
  const struct lb_cpu *cpu;
  unsigned plain = 0;

  (void)state;
  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++) {
    struct lb_recorder one, other;
    struct lb_record a, b;

    if (lb_recorder_init(&one, cpu, NULL, 0) < 0 || lb_recorder_wrmsr(&one, DEBUGCTL, 1) != LB_MSR_OK)
      continue;
    other = one;
    if (!lb_recorder_is_plain(&one, LB_BRANCH_JCC, 0, 0))
      continue;
    assert_true(lb_recorder_is_armed(&one));
    const struct lb_branch branch = {.from = 0x1000, .to = 0x2000, .kind = LB_BRANCH_JCC};
    lb_recorder_clock(&one, 5);
    lb_recorder_branch(&one, &branch);
    lb_recorder_plain_branch(&other, (struct lb_plain_branch){.from = 0x1000, .to = 0x2000, .kind = LB_BRANCH_JCC}, 5);
    assert_int_equal(lb_recorder_entry(&one, 0, &a), 0);
    assert_int_equal(lb_recorder_entry(&other, 0, &b), 0);
    assert_memory_equal(&a.raw, &b.raw, sizeof(a.raw));
    assert_int_equal(a.to, 0x2000);
    assert_int_equal(a.cycles, lb_recorder_wants_cycles(&one) && a.has_cycles ? 5 : 0);
    plain++;
  }
  assert_true(plain > 20);
}

static void test_every_option_has_a_name(void **state)
{
  (void)state;
  for (unsigned i = 0; i < LB_OPTIONS; i++) {
    assert_int_equal(lb_option_find(lb_option_name(i)), i);
    assert_true(strlen(lb_option_text(i)) > 10);
    assert_non_null(lb_basis_name(lb_option_basis(i)));
  }
  assert_null(lb_option_name(LB_OPTIONS));
  assert_null(lb_basis_name(lb_option_basis(LB_OPTIONS)));
  assert_int_equal(lb_option_find("no-such-option"), LB_E_NO_OPTION);
}

static void test_threads_share_select_only_where_the_core_does(void **state)
{
  (void)state;
  static const struct {
    const char *cpu;
    uint64_t other;
  } cases[] = {{"nehalem", 4}, {"westmere", 4}, {"sandybridge", 0}, {"skylake", 0}};
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    static struct lb_recorder threads[2];

    for (unsigned thread = 0; thread < 2; thread++)
      assert_int_equal(lb_recorder_init(&threads[thread], cpu_named(cases[i].cpu), NULL, 0), 0);
    lb_recorder_pair(&threads[0], &threads[1]);
    msr_write(&threads[0], 0x1C8, 4);
    assert_int_equal(msr_read(&threads[1], 0x1C8), cases[i].other);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_put),
    cmocka_unit_test(test_foreign_registers_are_the_hosts),
    cmocka_unit_test(test_units_do_not_know_each_other),
    cmocka_unit_test(test_entries_past_the_depth),
    cmocka_unit_test(test_a_host_without_callbacks),
    cmocka_unit_test(test_failing_memory_loses_the_record_only),
    cmocka_unit_test(test_records_across_a_page),
    cmocka_unit_test(test_flush_forgets_pointers),
    cmocka_unit_test(test_held_interrupts_come_once_at_the_end),
    cmocka_unit_test(test_short_bytes_are_refused),
    cmocka_unit_test(test_pebs_sizes),
    cmocka_unit_test(test_adaptive_pebs_is_taken_apart),
    cmocka_unit_test(test_pebs_counter_group_is_measured),
    cmocka_unit_test(test_progress_room_ends_at_the_overflow),
    cmocka_unit_test(test_plain_branches_are_branches),
    cmocka_unit_test(test_every_option_has_a_name),
    cmocka_unit_test(test_threads_share_select_only_where_the_core_does),
  };

  return cmocka_run_group_tests(tests, NULL, NULL);
}
