/* SPDX-License-Identifier: Apache-2.0
 *
 * The dispatcher. When the application has left the cache, it finds or translates the next unit, and ties the exit to
 * it so that the application need not leave there again.
 */
#include "lastbranch/branch.h"
#include "process/runtime/runtime.h"

#define VSYSCALL_PAGE 0xFFFFFFFFFF600000
enum { FLAG_RESUME = 1 << 16 }; /* RF, which faults set in the flags that they save */

/* Whether the bytes of a checked unit are still the same. */
static bool is_same(struct thread *thread, const struct unit *unit)
{
  uint8_t now[256];

  for (uint32_t at = 0; at < unit->byte_count; at += sizeof(now)) {
    uint32_t size = unit->byte_count - at < sizeof(now) ? unit->byte_count - at : sizeof(now);

    if (!safe_read(thread, now, unit->address + at, size))
      return false;
    for (uint32_t i = 0; i < size; i++)
      if (now[i] != unit->bytes[at + i])
        return false;
  }
  return true;
}

/* Whether the unit can be entered. */
static bool is_good(struct thread *thread, struct unit *unit)
{
  if (!unit->is_checked || !unit->byte_count)
    return true;
  bool is_unchanged = is_same(thread, unit);
  page_compared(thread->runtime, unit, is_unchanged);
  return is_unchanged && !unit->is_stale;
}

/* Takes the lock. An age may have ended since. */
static void dispatch_begin(struct thread *thread)
{
  age_leave(thread);
  runtime_lock(thread->runtime);
  if (thread->runtime->is_full)
    age_begin(thread);
}

/* The unit at the address, or NULL if nothing can be executed there. Called between dispatch_begin and dispatch_end; an
 * age may end meanwhile. If the unit is translated now, it is made for the exit by which the application came, provided
 * that the exit is of this age. */
static struct unit *unit_at(struct thread *thread, uint64_t address, struct approach *approach)
{
  struct runtime *runtime = thread->runtime;

  if (address == runtime->entry && !runtime->has_entered)
    module_enter(runtime);
  if (trigger_is_at(runtime, address) && range_find(&runtime->executable, address))
    trigger_reached(thread, address);
  for (;;) {
    if (!range_find(&runtime->executable, address)) /* a snapshot may have units of code that is not mapped yet */
      return NULL;
    struct unit *unit = cache_find(runtime, address);
    if (unit && is_good(thread, unit))
      return unit;
    if (unit)
      cache_make_stale(runtime, unit);
    struct area *area = cache_area(runtime, address);
    if (area) {
      approach->step = age_has_step(runtime, approach->step) ? approach->step : 0;
      return translate(thread, address, approach, area);
    }
    age_begin(thread);
  }
}

/* Where nothing can be executed, the application continues outside of the cache and gets the fault that it would have
 * got natively. It must not execute the runtime's own memory: it goes to an unmapped address instead, and signal.c
 * reports the original address. */
static void dispatch_end(struct thread *thread, const struct unit *unit)
{
  uint64_t rip = thread->state->rip;

  age_enter(thread, unit);
  runtime_unlock(thread->runtime);
  thread->state->native = !unit && map_is_ours(thread->runtime, rip, 1) ? PLACE_NOWHERE : rip;
  thread->state->resume = unit ? (uint64_t)unit->code : (uint64_t)native_enter;
}

void dispatch_to(struct thread *thread)
{
  dispatch_begin(thread);
  struct unit *unit = unit_at(thread, thread->state->rip, &(struct approach){0});
  dispatch_end(thread, unit);
  if (unit)
    log_put(thread, LB_ENTRY_ENTER | unit->head);
}

static uint32_t last_entry(const struct thread *thread)
{
  return *(const uint32_t *)(thread->state->log - 4);
}

/* If the path follows the taken side, leaving it means falling through. */
static uint64_t exit_target(const struct lb_step *step)
{
  bool is_behind = step->flags & LB_STEP_FOLLOW && step->flags & LB_STEP_NONE;

  return is_behind ? step->from + step->length : step->to;
}

/* state->exit is the step by which the application left. */
void dispatch_direct(void)
{
  struct thread *thread = thread_self();
  struct runtime *runtime = thread->runtime;
  uint32_t number = (uint32_t)thread->state->exit;
  struct lb_step *step = &runtime->steps[number];
  uint64_t target = exit_target(step);

  thread->state->rip = target;
  log_put(thread, number);
  dispatch_begin(thread);
  uint32_t count = runtime->counts.units_made;
  struct unit *unit = unit_at(thread, target, &(struct approach){.step = step->space == runtime->space ? number : 0});
  if (unit && !unit->is_checked && age_has_step(runtime, number))
    cache_tie(runtime, number, unit, runtime->counts.units_made != count && unit->is_for_edge);
  bool is_tied = unit && step->next == unit->head;
  dispatch_end(thread, unit);
  if (unit && !is_tied)
    log_put(thread, LB_ENTRY_ENTER | unit->head);
}

/* The head of the running path, found by the last entry. */
static uint32_t running_head(const struct thread *thread)
{
  uint32_t entry = last_entry(thread);

  if (entry & LB_ENTRY_ENTER)
    return entry & ~LB_ENTRY_ENTER;
  const struct lb_step *step = &thread->runtime->steps[entry];
  return step->flags & LB_STEP_HEAD ? entry : step->next;
}

/* Logs an indirect branch to an address where nothing can be executed: there is no head that would tell its target. */
static void log_lost(struct thread *thread, uint64_t target)
{
  const struct lb_step *steps = thread->runtime->steps;
  uint32_t entry = last_entry(thread);

  if (!(entry & LB_ENTRY_ENTER) && steps[entry].flags & LB_STEP_OPEN) { /* a return that was expected to go elsewhere */
    log_event(thread, LB_ENTRY_NOWHERE, 0, target, 0);
    return;
  }
  uint32_t head = running_head(thread);
  const struct lb_step *last = &steps[head + steps[head].count];
  log_event(thread, last->kind, steps[head].count - 1u, last->from, target);
}

static unsigned taken_by_return(struct thread *thread, const struct lb_step *step)
{
  uint8_t bytes[3] = {0};

  if (!safe_read(thread, bytes, step->from + step->length - 3u, sizeof(bytes)) || step->length < 3)
    return 8;
  return bytes[0] == 0xC2 ? 8u + bytes[1] + 256u * bytes[2] : 8;
}

/* The target is not canonical: the branch itself faults, before any of its effects. */
static void undo_branch(struct thread *thread)
{
  struct process_state *state = thread->state;
  const struct lb_step *steps = thread->runtime->steps;
  uint32_t entry = last_entry(thread);
  bool is_left = !(entry & LB_ENTRY_ENTER) && steps[entry].flags & LB_STEP_OPEN;
  uint32_t head = is_left ? steps[entry].head : running_head(thread);
  const struct lb_step *step = is_left ? &steps[entry] : &steps[head + steps[head].count];

  if (is_left) {
    state->log -= 4;
    *(uint32_t *)state->log = 0;
  }
  if (step->kind == LB_BRANCH_NEAR_RET)
    state->registers[GPR_RSP] -= taken_by_return(thread, step);
  else if (step->kind == LB_BRANCH_NEAR_IND_CALL)
    state->registers[GPR_RSP] += 8;
  state->flags |= FLAG_RESUME;
  state->native = state->rip;
  state->rip = step->from;
  state->resume = thread->place_resume = (uint64_t)native_enter;
  thread->place_passed = (unsigned)(step - &steps[head]) - 1;
}

static bool is_canonical(uint64_t address)
{
  return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

/* The vsyscall page: the kernel emulates calls to it (gettimeofday, time, getcpu). */
static bool dispatch_vsyscall(struct thread *thread)
{
  static const uint16_t numbers[] = {96, 201, 309};
  struct process_state *state = thread->state;
  uint64_t *registers = state->registers, offset = state->rip - VSYSCALL_PAGE, back;

  if (offset >= PROCESS_PAGE || offset % 1024 || offset / 1024 > 2 ||
      !safe_read(thread, &back, registers[GPR_RSP], sizeof(back)))
    return false;
  log_lost(thread, state->rip);
  log_event(thread, LB_BRANCH_NEAR_RET, 0, state->rip, back);
  registers[GPR_RAX] =
    (uint64_t)kernel_call(numbers[offset / 1024], registers[GPR_RDI], registers[GPR_RSI], registers[GPR_RDX], 0, 0, 0);
  registers[GPR_RSP] += sizeof(back);
  state->rip = back;
  dispatch_to(thread);
  return true;
}

/* The target is in RCX; it is not in the thread's wide or narrow lookup table. */
static void dispatch_missed(bool is_wide)
{
  struct thread *thread = thread_self();
  struct process_state *state = thread->state;

  state->rip = state->registers[GPR_RCX];
  state->registers[GPR_RCX] = state->spill_rcx;
  state->registers[GPR_RDX] = state->spill_rdx;
  if (!is_canonical(state->rip)) {
    undo_branch(thread);
    return;
  }
  if (state->rip >= VSYSCALL_PAGE && dispatch_vsyscall(thread))
    return;
  struct approach approach = {.is_indirect = true, .is_wide = is_wide};
  dispatch_begin(thread);
  struct unit *unit = unit_at(thread, state->rip, &approach);
  if (unit && !unit->is_checked && !approach.is_published)
    cache_publish(thread, unit, is_wide);
  dispatch_end(thread, unit);
  if (unit)
    log_put(thread, unit->head);
  else
    log_lost(thread, state->rip);
}

void dispatch_indirect(void)
{
  dispatch_missed(true);
}

void dispatch_narrow(void)
{
  dispatch_missed(false);
}

void dispatch_stale(void)
{
  struct thread *thread = thread_self();
  struct runtime *runtime = thread->runtime;
  uint32_t head = (uint32_t)thread->state->exit;

  thread->state->rip = runtime->steps[head].from;
  dispatch_begin(thread);
  struct unit *unit = unit_at(thread, thread->state->rip, &(struct approach){0});
  if (unit && age_has_step(runtime, head))
    cache_replace(runtime, &runtime->units[runtime->local[head].unit], unit);
  dispatch_end(thread, unit);
  if (unit)
    log_put(thread, LB_ENTRY_ENTER | unit->head);
}

/* Removes a logged system call that was not made because a signal came first. Stamps may have been logged after it; it
 * stays if the log has gone on to another part. */
static void unlog_call(struct thread *thread, uint32_t number, uint64_t entry)
{
  const struct lb_step *step = &thread->runtime->steps[number];

  if (!log_has(thread, entry) || *(uint32_t *)entry != number)
    return;
  *(uint32_t *)entry = 0;
  log_event(thread, LB_ENTRY_NOWHERE, number - step->head - 1, step->from, 0);
}

/* SYSCALL leaves the address of the next instruction in RCX and the flags in R11 (SDM vol. 2). If a signal is pending
 * before the call, the call is made after the handler, by executing the instruction again, as the kernel does it. */
void dispatch_syscall(void)
{
  enum { NR_RT_SIGRETURN = 15 };
  struct thread *thread = thread_self();
  struct process_state *state = thread->state;
  uint32_t number = (uint32_t)state->exit;

  if (number == EXIT_NO_INSTRUCTION || number == (uint32_t)EXIT_WRITES_GS) {
    state->rip = thread->runtime->steps[running_head(thread)].from;
    leave_or_fail(thread, number ? PROCESS_E_GS : PROCESS_E_INSTRUCTION, state->rip);
  }
  const struct lb_step *step = &thread->runtime->steps[number];
  age_leave_long(thread);
  if (step->kind != LB_BRANCH_SYSCALL) {
    far_make(thread, number);
    return;
  }
  if (state->pending) { /* deliver it before the call */
    log_event(thread, LB_ENTRY_NOWHERE, number - step->head - 1, step->from, 0);
    state->rip = step->from;
    dispatch_to(thread);
    return;
  }
  state->rip = step->to;
  state->registers[GPR_RCX] = step->to;
  state->registers[GPR_R11] = state->flags;
  if ((uint32_t)state->registers[GPR_RAX] == NR_RT_SIGRETURN) {
    stamp_call(thread);
    signal_call_return(thread);
  }
  log_put(thread, number);
  uint64_t entry = state->log - 4;
  thread->is_unmade = true;
  if (thread->interrupted && thread->was_signalled) /* restart_syscall(2) would fail: rt_sigreturn has disarmed it */
    state->registers[GPR_RAX] = thread->interrupted_call;
  stamp_call(thread);
  bool is_made = syscall_make(thread);
  if (thread->interrupted && is_made && state->registers[GPR_RAX] == (uint64_t)-EINTR && !state->pending) {
    state->registers[GPR_RAX] = thread->interrupted_call; /* a call of the runtime itself has disarmed it */
    is_made = syscall_make(thread);
  }
  if (is_made) {
    thread->interrupted = 0;
    stamp_return(thread);
  }
  if (!is_made) {
    if (thread->is_unmade)
      unlog_call(thread, number, entry);
    state->rip = step->from;
  }
  dispatch_to(thread);
}
