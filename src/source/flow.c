/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns jumps and entries into the kernel into branches. Straight code between two jumps is searched for system calls,
 * which BTS shows as jumps to kernel addresses, or not at all. If the code cannot be straight, something is missing.
 */
#include "source/flow.h"

#include <string.h>

#define STRAIGHT_MAX 65536u /* bytes of code without a taken branch: longer pieces are not searched */

/* ---- one branch ---- */

int flow_branch(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                unsigned flags)
{
  if (kind == LB_BRANCH_NEAR_REL_CALL && tasks_instruction(tasks, thread, from).length + from == to)
    flags |= LB_BRANCH_TO_NEXT;
  thread->is_at = thread->is_begun = true;
  thread->is_out = false;
  thread->at = to;
  return tasks_branch(tasks, thread, from, to, kind, flags);
}

int flow_lose(struct tasks *tasks, struct task_thread *thread, uint64_t count)
{
  thread->is_at = thread->is_out = false;
  return tasks_gap(tasks, thread, LB_TRACE_LOST, count);
}

/* ---- the kernel ---- */

void flow_leave(struct task_thread *thread, uint64_t from)
{
  thread->is_at = false;
  thread->is_out = true;
  thread->from = from;
}

/* rt_sigreturn: its number, 15, is moved into EAX or RAX right before SYSCALL, as in the restorers of libraries. */
static bool is_sigreturn(struct tasks *tasks, const struct task_thread *thread, uint64_t address)
{
  static const uint8_t longer[] = {0x48, 0xC7, 0xC0, 15, 0, 0, 0}, shorter[] = {0xB8, 15, 0, 0, 0};
  uint8_t bytes[sizeof(longer)];

  if (tasks_code(tasks, thread, address - sizeof(bytes), bytes, sizeof(bytes)) < sizeof(bytes))
    return false;
  return !memcmp(bytes, longer, sizeof(longer)) || !memcmp(bytes + 2, shorter, sizeof(shorter));
}

/* After a system call, or an instruction that traps, the program continues; or a signal handler comes first. */
static int call_return(struct tasks *tasks, struct task_thread *thread, const struct task_instruction *call,
                       uint64_t to)
{
  uint64_t next = call->address + call->length;
  int r;

  if (to != next && call->kind == LB_BRANCH_SYSCALL && is_sigreturn(tasks, thread, call->address))
    return flow_branch(tasks, thread, call->address, to, LB_BRANCH_IRET, 0);
  r = flow_branch(tasks, thread, call->address, next, (unsigned)call->kind, 0);
  if (to != next && call->kind == LB_BRANCH_SYSCALL && tasks_exec_take(tasks, thread)) {
    thread->is_at = thread->is_begun = true;
    thread->at = to;
    return r;
  }
  if (r >= 0 && to != next && to != call->address) /* else it is restarted, after a signal without a handler */
    r = flow_branch(tasks, thread, next, to, LB_BRANCH_INTERRUPT, 0);
  thread->at = to;
  return r;
}

int flow_enter(struct tasks *tasks, struct task_thread *thread, uint64_t to)
{
  struct task_instruction out;
  bool is_out = thread->is_out;

  thread->is_out = false;
  thread->is_at = thread->is_begun = true;
  thread->at = to;
  if (!is_out)
    return 0;
  out = tasks_instruction(tasks, thread, thread->from);
  if (out.length && (out.kind == LB_BRANCH_SYSCALL || out.kind == LB_BRANCH_SYSENTER || out.kind == LB_BRANCH_INT ||
                     out.kind == LB_BRANCH_INT3))
    return call_return(tasks, thread, &out, to);
  if (to - thread->from <= out.length) /* an interrupt or a page fault, which leaves no trace */
    return 0;
  return flow_branch(tasks, thread, thread->from, to, LB_BRANCH_INTERRUPT, 0);
}

int flow_end(struct tasks *tasks, struct task_thread *thread)
{
  struct task_instruction out;

  if (!thread->is_out)
    return 0;
  out = tasks_instruction(tasks, thread, thread->from);
  if (!out.length || (out.kind != LB_BRANCH_SYSCALL && out.kind != LB_BRANCH_INT))
    return 0;
  return flow_branch(tasks, thread, out.address, out.address + out.length, (unsigned)out.kind, 0);
}

/* ---- straight code ---- */

static bool is_call(int kind)
{
  return kind == LB_BRANCH_SYSCALL || kind == LB_BRANCH_INT;
}

static bool is_passed(int kind)
{
  return kind < 0 || kind == LB_BRANCH_JCC || kind == LB_BRANCH_INT3 || is_call(kind);
}

/* Whether the code leads to `to`. Unknown code is assumed to. `*ret_end` is how far it is known. */
static bool straight_check(struct tasks *tasks, const struct task_thread *thread, uint64_t to, uint64_t *ret_end)
{
  uint64_t address = thread->at;

  while (address < to && to - thread->at < STRAIGHT_MAX) {
    struct task_instruction instruction = tasks_instruction(tasks, thread, address);

    *ret_end = address;
    if (!instruction.length)
      return true;
    if (!is_passed(instruction.kind))
      return false;
    address += instruction.length;
  }
  *ret_end = address;
  return address == to;
}

int flow_straight(struct tasks *tasks, struct task_thread *thread, uint64_t to)
{
  uint64_t end;
  int r = 0;

  if (!straight_check(tasks, thread, to, &end))
    return 0;
  for (uint64_t address = thread->at; address < end && r >= 0;) {
    struct task_instruction instruction = tasks_instruction(tasks, thread, address);

    if (!instruction.length)
      break;
    if (is_call(instruction.kind) || instruction.kind == LB_BRANCH_INT3)
      r = flow_branch(tasks, thread, address, address + instruction.length, (unsigned)instruction.kind, 0);
    address += instruction.length;
  }
  return r < 0 ? r : 1;
}

/* The code is not straight because the thread has executed another program. Returns 1; 0 if it has not; or negative. */
static int exec_pass(struct tasks *tasks, struct task_thread *thread)
{
  struct task_instruction instruction = {.address = thread->at, .length = 1};
  int r;

  if (!tasks_exec_is_due(thread))
    return 0;
  for (uint64_t address = thread->at; instruction.length && address - thread->at < STRAIGHT_MAX;) {
    instruction = tasks_instruction(tasks, thread, address);
    if (is_call(instruction.kind))
      break;
    address += instruction.length;
  }
  r = is_call(instruction.kind) ? flow_branch(tasks, thread, instruction.address,
                                              instruction.address + instruction.length, (unsigned)instruction.kind, 0)
                                : 0;
  tasks_exec_take(tasks, thread);
  return r < 0 ? r : 1;
}

/* ---- back from the kernel without a recorded address ---- */

/* Passes the entry into the kernel at `at`: a system call there becomes a branch. Keeps the address at which the
 * program continues when a handler ends. */
static int turn_pass(struct tasks *tasks, struct task_thread *thread, bool was_out)
{
  struct task_instruction out = tasks_instruction(tasks, thread, thread->at);
  uint64_t from = thread->at;
  int r = 0;

  if (was_out && is_call(out.kind))
    r = flow_branch(tasks, thread, from, from + out.length, (unsigned)out.kind, 0);
  if (thread->frame_count == TASKS_FRAMES)
    memmove(thread->frames, thread->frames + 1, --thread->frame_count * sizeof(*thread->frames));
  thread->frames[thread->frame_count++] = (struct task_frame){thread->at, from};
  return r;
}

/* The program continued in one or several signal handlers, from which the code leads to `to`. Returns 1; 0 if no
 * handler was reported; or negative. */
static int handler_pass(struct tasks *tasks, struct task_thread *thread, uint64_t to, bool was_out)
{
  struct task_instruction out = tasks_instruction(tasks, thread, thread->at);
  uint64_t place = thread->at + (was_out && is_call(out.kind) ? out.length : 0u), handler;
  int r = 0;

  while (r == 0 && tasks_signal_take(tasks, thread, place, &handler)) {
    r = turn_pass(tasks, thread, was_out);
    if (r >= 0)
      r = flow_branch(tasks, thread, place, handler, LB_BRANCH_INTERRUPT, 0);
    if (r >= 0)
      r = flow_straight(tasks, thread, to);
    was_out = false;
    place = handler;
  }
  return r;
}

/* The end of a handler: the program is back where one of the running handlers was entered, from where the code leads to
 * `to` or into the next handler. Jumps out of handlers may have left old frames behind. A system call may be
 * restarted. */
static int sigreturn_pass(struct tasks *tasks, struct task_thread *thread, uint64_t to)
{
  uint64_t from = thread->at, end;

  for (unsigned i = thread->frame_count; i-- > 0;) {
    const struct task_frame *frame = &thread->frames[i];

    thread->at = to == frame->out || tasks_signal_is(tasks, thread, frame->out) ? frame->out : frame->at;
    if (straight_check(tasks, thread, to, &end) || tasks_signal_is(tasks, thread, thread->at)) {
      thread->frame_count = i;
      return flow_branch(tasks, thread, from, thread->at, LB_BRANCH_IRET, 0);
    }
  }
  return flow_lose(tasks, thread, 0);
}

/* The thread came back from the kernel: to where it was, or after the call that is there. Returns 1 if it is there; not
 * at the end of a handler. */
static int flow_back(struct tasks *tasks, struct task_thread *thread, uint64_t to)
{
  thread->is_out = false;
  thread->is_at = thread->is_begun = true;
  thread->at = thread->from;
  if (tasks_instruction(tasks, thread, thread->at).kind != LB_BRANCH_SYSCALL ||
      !is_sigreturn(tasks, thread, thread->at))
    return 1;
  return sigreturn_pass(tasks, thread, to);
}

/* The thread is in user mode at `to`, regardless of what happened before. */
static int flow_arrive(struct tasks *tasks, struct task_thread *thread, uint64_t to)
{
  bool may_handle = thread->is_out, was_out = false;
  int r = 0;

  if (thread->is_out) {
    r = flow_back(tasks, thread, to);
    was_out = r > 0;
  }
  if (r < 0 || !thread->is_at)
    return r;
  r = flow_straight(tasks, thread, to);
  if (r == 0 && may_handle)
    r = handler_pass(tasks, thread, to, was_out);
  if (r == 0)
    r = exec_pass(tasks, thread);
  if (r == 0 && was_out)
    r = turn_pass(tasks, thread, true); /* mostly a handler that was not reported */
  return r == 0 ? flow_lose(tasks, thread, 0) : r;
}

int flow_turn(struct tasks *tasks, struct task_thread *thread, uint64_t from)
{
  int r = flow_arrive(tasks, thread, from);

  flow_leave(thread, from);
  return r < 0 ? r : 0;
}

int flow_jump(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned flags)
{
  struct task_instruction instruction;
  int r = flow_arrive(tasks, thread, from);

  if (r < 0)
    return r;
  instruction = tasks_instruction(tasks, thread, from);
  return flow_branch(tasks, thread, from, to,
                     instruction.length && instruction.kind >= 0 ? (unsigned)instruction.kind : LB_BRANCH_UNKNOWN,
                     flags);
}
