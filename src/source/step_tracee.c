/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps of a thread: finds the branch from the registers before and after a step and the code between them.
 */
#include "source/step_tracee.h"

#ifdef __x86_64__
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "source/flow.h"

struct tracee *tracee_get(struct source *source, int id)
{
  struct tracee *tracee = id_table_get(&step_of(source)->tracees, (uint32_t)id, sizeof(*tracee));

  if (tracee)
    tracee->id = id;
  return tracee;
}

struct task_thread *tracee_thread(struct source *source, const struct tracee *tracee)
{
  return tasks_thread(source->tasks, tracee->process, (uint32_t)tracee->id);
}

/* ---- continuing ---- */

void tracee_step(struct source *source, struct tracee *tracee, const struct user_regs_struct *registers, int signal)
{
  struct task_thread *thread = tracee_thread(source, tracee);
  bool is_single = source->options.steps_singly;

  if (!thread)
    return;
  tracee->before = *registers;
  if (!is_single || tracee->start != thread->at || tracee->block.is_ambiguous)
    step_block_read(source->tasks, thread, thread->at, &tracee->block);
  tracee->start = thread->at;
  tracee->is_single = is_single || tracee->block.is_ambiguous;
  if (tracee->is_single)
    tracee->current = tasks_instruction(source->tasks, thread, registers->rip);
  ptrace(tracee->is_single ? PTRACE_SINGLESTEP : PTRACE_SINGLEBLOCK, tracee->id, NULL, (void *)(uintptr_t)signal);
}

/* ---- executed code ---- */

static bool current_is_taken(struct source *source, const struct tracee *tracee, uint64_t rip)
{
  const struct task_instruction *current = &tracee->current;
  uint8_t bytes[16];
  size_t size;

  if (current->kind != LB_BRANCH_JCC)
    return current->kind >= 0;
  if (current->target != current->address + current->length)
    return rip == current->target;
  size = tasks_code(source->tasks, tracee_thread(source, tracee), current->address, bytes, current->length);
  return step_is_taken(bytes, size, tracee->before.eflags, tracee->before.rcx);
}

/* A system call may have changed the mappings. */
static void call_note(struct source *source, struct tracee *tracee, uint64_t number)
{
  if (number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect || number == SYS_mremap)
    step_maps_read(&step_of(source)->maps, source, tracee->process);
}

static void exit_take(struct source *source, struct tracee *tracee, const struct step_exit *exit,
                      const struct user_regs_struct *registers)
{
  struct task_thread *thread = tracee_thread(source, tracee);

  if (exit->kind == LB_BRANCH_SYSCALL) {
    flow_leave(thread, exit->from);
    flow_enter(source->tasks, thread, registers->rip);
    tracee->call = registers->rip;
    call_note(source, tracee, tracee->is_single ? tracee->before.rax : registers->orig_rax);
  } else {
    flow_branch(source->tasks, thread, exit->from, registers->rip, (unsigned)exit->kind, 0);
  }
}

void tracee_take(struct source *source, struct tracee *tracee, const struct user_regs_struct *registers)
{
  struct task_thread *thread = tracee_thread(source, tracee);
  const struct task_instruction *current = &tracee->current;
  struct step_exit single = {current->address, 0, current->kind, current->length};
  const struct step_exit *exit;

  if (!thread)
    return;
  if (tracee->call && registers->rip == tracee->call && tracee->before.rip == tracee->call) {
    thread->at = registers->rip; /* the system call was restarted after a signal */
    return;
  }
  tracee->call = 0;
  if (tracee->is_single && !current_is_taken(source, tracee, registers->rip)) {
    if (!source->options.steps_singly || tracee->block.is_ambiguous)
      thread->at = registers->rip;
    return;
  }
  if (!tracee->is_single || (source->options.steps_singly && !tracee->block.is_ambiguous)) {
    step_block_read(source->tasks, thread, thread->at, &tracee->block); /* it may have changed itself */
    exit = step_block_find(&tracee->block, registers->rip);
  } else {
    exit = &single;
  }
  if (exit)
    exit_take(source, tracee, exit, registers);
  else
    flow_lose(source->tasks, thread, 0);
  thread->is_at = true;
  thread->at = registers->rip;
}

void tracee_settle(struct source *source, struct tracee *tracee, uint64_t rip)
{
  struct task_thread *thread = tracee_thread(source, tracee);

  if (!thread || thread->at == rip)
    return;
  if (flow_straight(source->tasks, thread, rip) == 0)
    flow_lose(source->tasks, thread, 0);
  thread->is_at = true;
  thread->at = rip;
}

void tracee_release(const struct tracee *tracee)
{
  int status = 0, signal;

  if (ptrace(PTRACE_INTERRUPT, tracee->id, NULL, NULL) < 0 || waitpid(tracee->id, &status, __WALL) < 0 ||
      !WIFSTOPPED(status))
    return;
  signal = status >> 16 || WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
  ptrace(PTRACE_DETACH, tracee->id, NULL, (void *)(uintptr_t)signal);
}

#endif
