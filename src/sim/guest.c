/* SPDX-License-Identifier: Apache-2.0
 *
 * Actions of the guest and the processor: each statement becomes one call of the recorder. The thread's mode, CPL, base
 * and TF are used where the statement gives none.
 */
#include "sim/run.h"

static struct lb_recorder *recorder_of(struct run *run)
{
  return &run->thread->recorder;
}

/* ---- the state of the thread ---- */

/* The other thread is created when it is first named. */
void run_thread(struct run *run, const struct statement *statement)
{
  struct thread *thread = &run->threads[statement->number];

  if (!thread->is_made) {
    int r = thread_make(thread, run->has_map);

    if (r < 0) {
      run->error = r;
      return;
    }
    lb_recorder_pair(&run->threads[0].recorder, &run->threads[1].recorder);
  }
  run->thread = thread;
}

void run_mode(struct run *run, const struct statement *statement)
{
  enum code_mode mode = (enum code_mode)statement->number;

  if ((mode == CODE_64 || mode == CODE_COMPAT) && !lb_cpu_has(run->cpu, LB_FEATURE_LONG_MODE))
    run_fail(run, statement, "this CPU has no IA-32e mode");
  else
    thread_set_mode(run->thread, mode);
}

void run_cpl(struct run *run, const struct statement *statement)
{
  run->thread->cpl = statement->number;
}

void run_base(struct run *run, const struct statement *statement)
{
  run->thread->base = statement->number;
}

void run_tf(struct run *run, const struct statement *statement)
{
  run->thread->tf = statement->number;
}

/* ---- branches and events ---- */

/* In 64-bit mode CS has no base (SDM vol. 3, 3.4.4). */
static uint64_t base_in(enum code_mode mode, uint64_t base)
{
  return mode == CODE_64 ? 0 : base;
}

/* Fills in what the statement leaves open, and changes the thread's CPL to that of the target. */
static struct jump jump_complete(struct thread *thread, const struct jump *said)
{
  struct jump jump = *said;

  if (!jump.has_cpl)
    jump.from_cpl = jump.to_cpl = (uint8_t)thread->cpl;
  thread->cpl = jump.to_cpl;
  if (!jump.has_to_mode)
    jump.to_mode = (uint8_t)thread->mode;
  if (!jump.has_base)
    jump.base = thread->base;
  if (!jump.has_to_base)
    jump.to_base = jump.base;
  jump.base = base_in(thread->mode, jump.base);
  jump.to_base = base_in((enum code_mode)jump.to_mode, jump.to_base);
  if (thread->tf)
    jump.flags |= LB_BRANCH_TF;
  if (thread->mode != CODE_64)
    jump.flags |= LB_BRANCH_FROM_32;
  if (jump.to_mode != CODE_64)
    jump.flags |= LB_BRANCH_TO_32;
  return jump;
}

void run_branch(struct run *run, const struct statement *statement)
{
  struct jump jump = jump_complete(run->thread, &statement->jump);
  struct lb_branch branch = {
    .from = jump.address[0],
    .to = jump.address[1],
    .from_base = jump.base,
    .to_base = jump.to_base,
    .kind = jump.kind,
    .from_cpl = jump.from_cpl,
    .to_cpl = jump.to_cpl,
    .flags = jump.flags,
  };

  if (jump.length && branch.to == branch.from + jump.length)
    branch.flags |= LB_BRANCH_TO_NEXT;
  lb_recorder_branch(recorder_of(run), &branch);
}

void run_event(struct run *run, const struct statement *statement)
{
  struct jump jump = jump_complete(run->thread, &statement->jump);
  struct lb_event event = {
    .current = jump.address[0],
    .next = jump.address[1],
    .handler = jump.address[2],
    .from_base = jump.base,
    .to_base = jump.to_base,
    .kind = jump.kind,
    .from_cpl = jump.from_cpl,
    .to_cpl = jump.to_cpl,
    .flags = jump.flags,
  };

  lb_recorder_event(recorder_of(run), &event);
}

void run_db(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_debug_exception(recorder_of(run));
}

void run_match(struct run *run, const struct statement *statement)
{
  lb_recorder_breakpoint_match(recorder_of(run), (unsigned)statement->number);
}

/* ---- modes of the processor ---- */

/* A transfer that no instruction makes, inside the thread's code. */
static struct lb_branch place_in(const struct thread *thread, uint64_t from, uint64_t to)
{
  uint64_t base = base_in(thread->mode, thread->base);
  uint8_t cpl = (uint8_t)thread->cpl;
  uint8_t flags = thread->mode == CODE_64 ? 0 : LB_BRANCH_FROM_32 | LB_BRANCH_TO_32;

  return (struct lb_branch){
    .from = from, .to = to, .from_base = base, .to_base = base, .from_cpl = cpl, .to_cpl = cpl, .flags = flags};
}

void run_smi(struct run *run, const struct statement *statement)
{
  struct lb_branch entry = place_in(run->thread, statement->pair[0], statement->pair[1]);

  entry.to_base = 0; /* of the handler: the rules that need it give offsets */
  entry.to_cpl = 0;
  entry.flags |= LB_BRANCH_TO_32;
  lb_recorder_smi(recorder_of(run), &entry);
}

void run_rsm(struct run *run, const struct statement *statement)
{
  struct lb_branch resumed = place_in(run->thread, statement->pair[1], statement->pair[0]);

  resumed.from_base = 0;
  resumed.from_cpl = 0;
  resumed.flags |= LB_BRANCH_FROM_32;

  lb_recorder_rsm(recorder_of(run), &resumed);
}

/* Reset and INIT begin at CPL 0 without TF. The code mode stays as the file set it, whatever the unit does. */
static void thread_restart(struct thread *thread)
{
  thread->cpl = 0;
  thread->tf = false;
  thread_set_mode(thread, thread->mode);
}

void run_init(struct run *run, const struct statement *statement)
{
  struct lb_branch transfer = place_in(run->thread, statement->pair[0], statement->pair[1]);

  transfer.to_cpl = 0;
  lb_recorder_init_signal(recorder_of(run), &transfer);
  thread_restart(run->thread);
}

void run_reset(struct run *run, const struct statement *statement)
{
  if (statement->number == 0)
    lb_recorder_reset_cold(recorder_of(run));
  else
    lb_recorder_reset_warm(recorder_of(run));
  thread_restart(run->thread);
}

void run_vmexit(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_vm_exit(recorder_of(run));
}

void run_sleep(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_deep_sleep(recorder_of(run));
}

void run_pt(struct run *run, const struct statement *statement)
{
  lb_recorder_pt_trace(recorder_of(run), statement->number);
}

/* ---- counters, PMI, PEBS ---- */

void run_progress(struct run *run, const struct statement *statement)
{
  struct lb_progress did = statement->progress.did;

  did.cpl = (uint8_t)(statement->progress.cpl == UINT64_MAX ? run->thread->cpl : statement->progress.cpl);
  run->thread->is_pebs_due = lb_recorder_progress(recorder_of(run), &did);
  if (run->thread->is_pebs_due)
    run_note(run, "PEBS record due");
}

void run_pebs(struct run *run, const struct statement *statement)
{
  int written = lb_recorder_pebs_assist(recorder_of(run), &statement->registers);

  if (written < 0)
    run_note(run, "no PEBS record: %s", lb_strerror(written));
  else
    run_note(run, "%d PEBS record%s", written, written == 1 ? "" : "s");
}

void run_pmi_delivered(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_pmi_delivered(recorder_of(run));
}

void run_uncore(struct run *run, const struct statement *statement)
{
  bool is_taken = lb_recorder_uncore_pmi(recorder_of(run));

  if (is_taken != (statement->number == 1))
    run_fail(run, statement, "it is %staken", is_taken ? "" : "not ");
}

void run_hold(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_hold_pmi(recorder_of(run));
}

void run_release(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_release_pmi(recorder_of(run));
}

void run_flush(struct run *run, const struct statement *statement)
{
  (void)statement;
  lb_recorder_flush(recorder_of(run));
}
