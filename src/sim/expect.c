/* SPDX-License-Identifier: Apache-2.0
 *
 * Expectations: each checks the state of the unit and reports a difference.
 */
#include <stdio.h>

#include "sim/run.h"

static const struct lb_recorder *recorder_of(const struct run *run)
{
  return &run->thread->recorder;
}

static void check_number(struct run *run, const struct statement *statement, uint64_t got)
{
  if (got != statement->number)
    run_fail(run, statement, "%llu", (unsigned long long)got);
}

static void check_truth(struct run *run, const struct statement *statement, bool got)
{
  if (got != (statement->number == 1))
    run_fail(run, statement, "%s", got ? "yes" : "no");
}

/* The number of events since the last query. */
static uint64_t tally_ask(struct tally *tally)
{
  uint64_t fresh = tally->seen - tally->asked;

  tally->asked = tally->seen;
  return fresh;
}

/* ---- records ---- */

static bool flag_fits(int8_t wanted, bool has, bool is)
{
  return wanted < 0 || (wanted ? is : has && !is);
}

/* `predicted` means a clear flag, so the flag must exist; `no-tsx` and `no-abort` are also true without one. */
static bool record_fits(const struct wanted_record *wanted, const struct lb_record *got)
{
  if (got->is_empty || got->from != wanted->from || got->to != wanted->to)
    return false;
  if (!flag_fits(wanted->is_mispredicted, got->has_mispredicted, got->is_mispredicted) ||
      !flag_fits(wanted->is_in_tsx, true, got->is_in_tsx) || !flag_fits(wanted->is_tsx_abort, true, got->is_tsx_abort))
    return false;
  if (wanted->has_cycles == 0 && got->has_cycles)
    return false;
  if (wanted->cycles != UINT64_MAX && (!got->has_cycles || got->cycles != wanted->cycles))
    return false;
  if (wanted->type != UINT64_MAX && (!got->has_type || got->type != wanted->type))
    return false;
  if (wanted->index != UINT64_MAX && got->index != wanted->index)
    return false;
  return wanted->kind < 0 || got->kind == wanted->kind;
}

static void fail_record(struct run *run, const struct statement *statement, const struct lb_record *got)
{
  char cycles[16] = "", type[16] = "";

  if (got->is_empty) {
    run_fail(run, statement, "empty");
    return;
  }
  if (got->has_cycles)
    snprintf(cycles, sizeof(cycles), " cycles=%u", got->cycles);
  if (got->has_type)
    snprintf(type, sizeof(type), " type=%u", got->type);
  run_fail(run, statement, "0x%llx 0x%llx%s%s%s%s%s kind=%s index=%u", (unsigned long long)got->from,
           (unsigned long long)got->to,
           !got->has_mispredicted ? ""
           : got->is_mispredicted ? " mispred"
                                  : " predicted",
           got->is_in_tsx ? " tsx" : "", got->is_tsx_abort ? " abort" : "", cycles, type,
           lb_branch_kind_name(got->kind), got->index);
}

void expect_record(struct run *run, const struct statement *statement)
{
  const struct wanted_record *wanted = &statement->record;
  struct lb_record got;
  unsigned age = wanted->age < LB_DEPTH_MAX ? (unsigned)wanted->age : LB_DEPTH_MAX;
  int r = lb_recorder_entry(recorder_of(run), age, &got);

  if (r < 0)
    run_fail(run, statement, "%s", lb_strerror(r));
  else if (wanted->is_empty ? !got.is_empty : !record_fits(wanted, &got))
    fail_record(run, statement, &got);
}

void expect_used(struct run *run, const struct statement *statement)
{
  check_number(run, statement, lb_recorder_used(recorder_of(run)));
}

void expect_ler(struct run *run, const struct statement *statement)
{
  struct lb_record got;
  int r = lb_recorder_ler(recorder_of(run), &got);

  if (r < 0)
    run_fail(run, statement, "%s", lb_strerror(r));
  else if (got.from != statement->pair[0] || got.to != statement->pair[1])
    run_fail(run, statement, "0x%llx 0x%llx", (unsigned long long)got.from, (unsigned long long)got.to);
}

/* ---- calls of the host ---- */

void expect_bus(struct run *run, const struct statement *statement)
{
  const struct wanted_record *wanted = &statement->record;
  struct thread *thread = run->thread;
  bool has_message = thread->bus.asked < thread->bus.seen;
  const struct lb_message *message;

  if (!has_message) {
    if (!wanted->is_empty)
      run_fail(run, statement, "none");
    return;
  }
  message = &thread->messages[thread->bus.asked];
  if (!wanted->is_empty)
    thread->bus.asked++;
  if (wanted->is_empty || message->from != wanted->from || message->to != wanted->to)
    run_fail(run, statement, "0x%llx 0x%llx", (unsigned long long)message->from, (unsigned long long)message->to);
}

void expect_pmi(struct run *run, const struct statement *statement)
{
  check_number(run, statement, tally_ask(&run->thread->pmi));
}

void expect_trap(struct run *run, const struct statement *statement)
{
  check_number(run, statement, tally_ask(&run->thread->trap));
}

void expect_pin(struct run *run, const struct statement *statement)
{
  uint64_t got = tally_ask(&run->thread->pin[statement->pair[0]]);

  if (got != statement->pair[1])
    run_fail(run, statement, "%llu", (unsigned long long)got);
}

void expect_memory(struct run *run, const struct statement *statement)
{
  unsigned size = statement->values.size, count = statement->values.count;
  const unsigned char *bytes = areas_at(&run->memory, statement->values.address, (size_t)size * count);

  if (!bytes) {
    run_fail(run, statement, "no memory there");
    return;
  }
  for (unsigned i = 0; i < count; i++) {
    uint64_t got = areas_get(bytes + i * size, size);

    if (got != (statement->values.values[i] & UINT64_MAX >> (64 - 8 * size))) {
      run_fail(run, statement, "0x%llx at 0x%llx", (unsigned long long)got,
               (unsigned long long)(statement->values.address + i * size));
      return;
    }
  }
}

/* ---- the state of the unit ---- */

void expect_recording(struct run *run, const struct statement *statement)
{
  check_truth(run, statement, lb_recorder_is_recording(recorder_of(run)));
}

void expect_undefined(struct run *run, const struct statement *statement)
{
  check_truth(run, statement, lb_recorder_is_undefined(recorder_of(run)));
}

void expect_stepping(struct run *run, const struct statement *statement)
{
  check_truth(run, statement, lb_recorder_steps_branches(recorder_of(run)));
}

void expect_pebs_due(struct run *run, const struct statement *statement)
{
  check_truth(run, statement, run->thread->is_pebs_due);
}

void expect_generated(struct run *run, const struct statement *statement)
{
  check_number(run, statement, lb_recorder_messages(recorder_of(run)).generated);
}

void expect_stored(struct run *run, const struct statement *statement)
{
  check_number(run, statement, lb_recorder_messages(recorder_of(run)).stored);
}

void expect_lost(struct run *run, const struct statement *statement)
{
  check_number(run, statement, lb_recorder_messages(recorder_of(run)).lost);
}

/* ---- the DS area, CPUID ---- */

static unsigned facts_page(void *data, uint64_t linear)
{
  return pages_get(data, linear);
}

static void fail_rules(struct run *run, const struct statement *statement, uint32_t got)
{
  struct text names = {0};

  for (unsigned i = 0; i < LB_DS_RULES && run->error >= 0; i++)
    if (got >> i & 1)
      run->error = text_addf(&names, "%s%s", names.length ? " " : "", lb_ds_rule_name(i));
  run_fail(run, statement, "%s", got ? text_string(&names) : "ok");
  text_done(&names);
}

void expect_rules(struct run *run, const struct statement *statement)
{
  struct lb_ds_facts facts = {
    .data = &run->pages,
    .page = facts_page,
    .apic_is_enabled = run->facts.apic,
    .lvt_perf = (uint32_t)run->facts.lvt,
    .gate_type = (uint8_t)run->facts.gate,
    .a20_is_masked = run->facts.a20,
    .is_shared = run->facts.shared,
  };
  uint32_t got = lb_ds_check(recorder_of(run), &facts);

  if (got != statement->number)
    fail_rules(run, statement, got);
}

void expect_cpuid(struct run *run, const struct statement *statement)
{
  struct lb_cpuid cpuid = lb_cpu_cpuid(run->cpu, statement->cpuid.leaf, statement->cpuid.subleaf);
  uint32_t got = cpuid.value[statement->cpuid.reg];

  if ((got ^ statement->cpuid.value) & statement->cpuid.mask)
    run_fail(run, statement, "0x%x", got);
}
