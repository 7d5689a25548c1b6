/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMSR and WRMSR of a rule file, and their expected result.
 */
#include "sim/run.h"

/* The address of a register on this CPU. Returns 0, or LB_E_NO_REGISTER. */
static int register_address(const struct run *run, const struct named_register *reg, uint32_t *ret_msr)
{
  struct lb_register_range range;
  unsigned number = 0;
  int id;

  if (reg->is_address) {
    *ret_msr = reg->addresses[0];
    return 0;
  }
  id = lb_cpu_register_find(run->cpu, reg->name, &number);
  if (id < 0)
    return id;
  range = lb_cpu_register(run->cpu, (enum lb_register)id);
  *ret_msr = range.first + number * range.stride;
  return 0;
}

static const char *answer_text(enum lb_msr_answer answer)
{
  static const char *const texts[] = {
    [LB_MSR_OK] = "success",
    [LB_MSR_GP] = "#GP",
    [LB_MSR_FOREIGN] = "not a register of the recording unit",
  };

  return texts[answer];
}

/* ---- registers that this CPU must lack ---- */

static enum lb_msr_answer register_touch(struct run *run, const struct statement *statement, bool is_write,
                                         uint32_t msr)
{
  uint64_t ignored;

  if (is_write)
    return lb_recorder_wrmsr(&run->thread->recorder, msr, statement->msr.value);
  return lb_recorder_rdmsr(&run->thread->recorder, msr, &ignored);
}

/* This CPU has no register of this name. The addresses of other CPUs for it must then be unknown here, unless they
 * belong to another register. */
static void check_foreign(struct run *run, const struct statement *statement, bool is_write)
{
  const struct named_register *reg = &statement->msr.reg;

  for (unsigned i = 0; i < reg->count; i++) {
    enum lb_msr_answer answer;
    unsigned number;

    if (lb_cpu_register_at(run->cpu, reg->addresses[i], &number) >= 0)
      continue;
    answer = register_touch(run, statement, is_write, reg->addresses[i]);
    if (answer != LB_MSR_FOREIGN)
      run_fail(run, statement, "%s at 0x%x", answer_text(answer), reg->addresses[i]);
  }
}

/* Finds the register's address. Returns false if there is nothing more to do: this CPU has none, as expected or not. */
static bool find_or_fail(struct run *run, const struct statement *statement, bool is_write, uint32_t *ret_msr)
{
  if (register_address(run, &statement->msr.reg, ret_msr) >= 0)
    return true;
  if (statement->msr.answer == LB_MSR_FOREIGN)
    check_foreign(run, statement, is_write);
  else
    run_fail(run, statement, "this CPU has no such register");
  return false;
}

/* ---- statements ---- */

/* A write that faults must leave the register unchanged. */
static void check_unchanged(struct run *run, const struct statement *statement, uint32_t msr, uint64_t before)
{
  uint64_t after;

  if (lb_recorder_rdmsr(&run->thread->recorder, msr, &after) == LB_MSR_OK && after != before)
    run_fail(run, statement, "#GP, but the register changed from 0x%llx to 0x%llx", (unsigned long long)before,
             (unsigned long long)after);
}

void run_wrmsr(struct run *run, const struct statement *statement)
{
  struct lb_recorder *recorder = &run->thread->recorder;
  enum lb_msr_answer answer;
  bool is_readable;
  uint64_t before;
  uint32_t msr;

  if (!find_or_fail(run, statement, true, &msr))
    return;
  is_readable = lb_recorder_rdmsr(recorder, msr, &before) == LB_MSR_OK;
  answer = lb_recorder_wrmsr(recorder, msr, statement->msr.value);
  if (answer != LB_MSR_OK)
    run_note(run, "%s", answer_text(answer));
  if (answer != statement->msr.answer)
    run_fail(run, statement, "%s", answer_text(answer));
  else if (answer == LB_MSR_GP && is_readable)
    check_unchanged(run, statement, msr, before);
}

void run_rdmsr(struct run *run, const struct statement *statement)
{
  enum lb_msr_answer answer;
  uint64_t value;
  uint32_t msr;

  if (!find_or_fail(run, statement, false, &msr))
    return;
  answer = lb_recorder_rdmsr(&run->thread->recorder, msr, &value);
  if (answer == LB_MSR_OK)
    run_note(run, "0x%llx", (unsigned long long)value);
  else
    run_note(run, "%s", answer_text(answer));
  if (answer != statement->msr.answer)
    run_fail(run, statement, "%s", answer_text(answer));
}

void run_vmentry(struct run *run, const struct statement *statement)
{
  enum lb_msr_answer answer = lb_recorder_vm_entry(&run->thread->recorder, statement->msr.value);

  if (answer != statement->msr.answer)
    run_fail(run, statement, "%s", answer == LB_MSR_OK ? "the entry succeeded" : "the entry failed");
}

void expect_register(struct run *run, const struct statement *statement)
{
  enum lb_msr_answer answer;
  uint64_t value;
  uint32_t msr;

  if (register_address(run, &statement->msr.reg, &msr) < 0) {
    run_fail(run, statement, "this CPU has no such register");
    return;
  }
  answer = lb_recorder_rdmsr(&run->thread->recorder, msr, &value);
  if (answer != LB_MSR_OK)
    run_fail(run, statement, "%s", answer_text(answer));
  else if ((value ^ statement->msr.value) & statement->msr.mask)
    run_fail(run, statement, "0x%llx", (unsigned long long)value);
}
