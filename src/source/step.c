/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps a program with ptrace(2) from branch to branch: every stop is a taken branch, a system call or a signal. For
 * short programs only: a stop costs microseconds. hardware_probe has tested on known code that the processor supports
 * this; tests can use single steps instead.
 *
 * A program could notice that it runs slowly, and that PUSHF stores the trap flag.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "source/flow.h"
#include "source/source_inside.h"
#include "source/step_tracee.h"

#ifdef __x86_64__

#define FRAME_RIP 176u /* of a signal frame: return address, then ucontext_t, whose gregs[REG_RIP] is at 168 */

/* ---- stops ---- */

static void handler_enter(struct source *source, struct tracee *tracee, const struct user_regs_struct *registers)
{
  struct task_thread *thread = tracee_thread(source, tracee);
  uint64_t from = 0;
  struct iovec here = {&from, sizeof(from)}, there = {(void *)(uintptr_t)(registers->rsp + FRAME_RIP), sizeof(from)};

  if (thread && process_vm_readv(tracee->id, &here, 1, &there, 1, 0) == sizeof(from))
    flow_branch(source->tasks, thread, from, registers->rip, LB_BRANCH_INTERRUPT, 0);
  tracee->call = 0;
  tracee_step(source, tracee, registers, 0);
}

static void signal_take(struct source *source, struct tracee *tracee, int signal)
{
  struct user_regs_struct registers;
  siginfo_t info;

  if (ptrace(PTRACE_GETSIGINFO, tracee->id, NULL, &info) < 0 ||
      ptrace(PTRACE_GETREGS, tracee->id, NULL, &registers) < 0)
    return; /* it was killed meanwhile */
  if (signal == SIGTRAP && info.si_code == SIGTRAP) {
    handler_enter(source, tracee, &registers);
    return;
  }
  if (signal == SIGTRAP && info.si_code >= TRAP_BRKPT && info.si_code <= TRAP_BRANCH) {
    tracee_take(source, tracee, &registers);
    tracee_step(source, tracee, &registers, 0);
    return;
  }
  tracee_settle(source, tracee, registers.rip);
  tracee->signal = signal;
  tracee->code = info.si_code;
  tracee->address = info.si_code > 0 ? (uint64_t)(uintptr_t)info.si_addr : 0;
  tracee_step(source, tracee, &registers, signal);
}

static void tracee_begin(struct source *source, struct tracee *tracee)
{
  struct task_thread *thread = tracee_thread(source, tracee);
  struct user_regs_struct registers;

  if (!thread || ptrace(PTRACE_GETREGS, tracee->id, NULL, &registers) < 0)
    return;
  tracee->has_begun = true;
  tasks_title_look(source->tasks, tracee->process);
  thread->is_at = true;
  thread->at = registers.rip;
  tracee_step(source, tracee, &registers, 0);
}

static void creation_take(struct source *source, struct tracee *tracee)
{
  struct user_regs_struct registers;
  struct tracee *made;
  unsigned long id;

  if (ptrace(PTRACE_GETEVENTMSG, tracee->id, NULL, &id) < 0 || ptrace(PTRACE_GETREGS, tracee->id, NULL, &registers) < 0)
    return;
  made = tracee_get(source, (int)id);
  if (made) {
    made->process = source_thread_process(source, (int)id);
    if (!made->process)
      made->process = (uint32_t)id;
    tasks_fork(source->tasks, made->process, (uint32_t)id, tracee->process, (uint32_t)tracee->id);
    step_maps_fork(&step_of(source)->maps, tracee->process, made->process);
    if (made->has_stopped)
      tracee_begin(source, made);
  }
  /* Still in the system call: continues it. */
  ptrace(tracee->is_single ? PTRACE_SINGLESTEP : PTRACE_SINGLEBLOCK, tracee->id, NULL, NULL);
}

/* Records the execve system call. Its code is gone, so the copy read before the step is used. */
static void exec_leave(struct source *source, const struct tracee *caller, struct task_thread *thread)
{
  const struct step_block *block = &caller->block;
  const struct step_exit *exit = block->count ? &block->exits[block->count - 1] : NULL;
  uint64_t from, to;

  if (caller->is_single && block->is_ambiguous) {
    if (caller->current.kind != LB_BRANCH_SYSCALL)
      return;
    from = caller->current.address;
    to = from + caller->current.length;
  } else {
    if (!exit || exit->kind != LB_BRANCH_SYSCALL || caller->start != thread->at)
      return;
    from = exit->from;
    to = from + exit->length;
  }
  flow_branch(source->tasks, thread, from, to, LB_BRANCH_SYSCALL, 0);
}

/* A stop inside execve. The calling thread takes the number of its process. */
static void exec_take(struct source *source, struct tracee *tracee)
{
  struct user_regs_struct registers;
  struct task_thread *thread;
  struct tracee *caller;
  unsigned long id;
  char name[17];

  if (ptrace(PTRACE_GETEVENTMSG, tracee->id, NULL, &id) < 0 || ptrace(PTRACE_GETREGS, tracee->id, NULL, &registers) < 0)
    return;
  caller = tracee_get(source, (int)id);
  thread = tasks_thread(source->tasks, tracee->process, (uint32_t)id);
  if (caller && thread && thread->is_at)
    exec_leave(source, caller, thread);
  if ((int)id != tracee->id) {
    tasks_exit(source->tasks, tracee->process, (uint32_t)id);
    if (caller)
      id_table_drop(&step_of(source)->tracees, (uint32_t)id);
  }
  step_maps_name(source, tracee->process, name);
  tasks_exec(source->tasks, tracee->process, (uint32_t)tracee->id, name);
  tasks_title_look(source->tasks, tracee->process);
  step_maps_forget(&step_of(source)->maps, tracee->process);
  step_maps_read(&step_of(source)->maps, source, tracee->process);
  thread = tracee_thread(source, tracee);
  if (thread) {
    thread->is_at = true;
    thread->at = registers.rip;
  }
  tracee->start = 0;            /* the block belongs to the old program */
  tracee->call = registers.rip; /* the step out of execve ends where it began */
  tracee->before = registers;
  ptrace(source->options.steps_singly ? PTRACE_SINGLESTEP : PTRACE_SINGLEBLOCK, tracee->id, NULL, NULL);
}

static void exit_event(struct source *source, struct tracee *tracee)
{
  struct user_regs_struct registers;
  unsigned long status;
  char name[17];

  struct task_thread *thread = tracee_thread(source, tracee);

  if (ptrace(PTRACE_GETREGS, tracee->id, NULL, &registers) == 0)
    tracee_settle(source, tracee, registers.rip);
  if (thread && thread->has_stream)
    tasks_time_end(source->tasks, thread, source->kernel->clock(source->kernel->data), TASKS_NO_CPU);
  tasks_title_look(source->tasks, tracee->process);
  step_maps_name(source, (uint32_t)tracee->id, name);
  if (*name)
    tasks_name(source->tasks, tracee->process, (uint32_t)tracee->id, name);
  if (tracee->signal && ptrace(PTRACE_GETEVENTMSG, tracee->id, NULL, &status) == 0 && WIFSIGNALED((int)status) &&
      WTERMSIG((int)status) == tracee->signal)
    source_death_add(source, tracee->id, tracee->signal, tracee->code, tracee->address);
  ptrace(PTRACE_CONT, tracee->id, NULL, NULL);
}

static void tracee_stop(struct source *source, struct tracee *tracee, int status)
{
  int signal = WSTOPSIG(status), event = status >> 16;
  bool is_first = !tracee->has_stopped;

  tracee->has_stopped = true;
  if (event == PTRACE_EVENT_EXEC)
    exec_take(source, tracee);
  else if (event == PTRACE_EVENT_EXIT)
    exit_event(source, tracee);
  else if (event == PTRACE_EVENT_STOP && is_first && !tracee->process)
    return; /* until its creator reports it */
  else if (event == PTRACE_EVENT_STOP && !tracee->has_begun)
    tracee_begin(source, tracee);
  else if (event == PTRACE_EVENT_STOP && signal != SIGTRAP)
    ptrace(PTRACE_LISTEN, tracee->id, NULL, NULL);
  else if (event == PTRACE_EVENT_STOP)
    tracee_step(source, tracee, &tracee->before, 0);
  else if (event)
    creation_take(source, tracee);
  else
    signal_take(source, tracee, signal);
}

/* A thread that was away for longer has waited in the kernel. */
#define AWAY_NANOSECONDS 1000000u
#define STOPS_MOST 256u /* between two stamps */

static void tracee_time(struct source *source, const struct tracee *tracee, uint64_t time)
{
  struct task_thread *thread = tracee->has_begun ? tracee_thread(source, tracee) : NULL;

  if (thread)
    tasks_time(source->tasks, thread, time, TASKS_NO_CPU);
}

/* Takes a stop with stamps around what it says: when the thread stopped before, and now. */
static void stop_take(struct source *source, struct tracee *tracee, int status)
{
  uint64_t now = source->kernel->clock(source->kernel->data);
  bool is_due = ++tracee->stops >= STOPS_MOST || now - tracee->stopped >= AWAY_NANOSECONDS;

  if (is_due && tracee->stopped)
    tracee_time(source, tracee, tracee->stopped);
  tracee_stop(source, tracee, status);
  if (is_due && status >> 16 != PTRACE_EVENT_EXIT) {
    tracee_time(source, tracee, now);
    tracee->stops = 0;
  }
  tracee->stopped = now;
}

static void step_waited(struct source *source, int id, int status)
{
  struct tracee *tracee = tracee_get(source, id);

  if (!tracee)
    return;
  tasks_live_again(source->tasks);
  if (WIFSTOPPED(status)) {
    stop_take(source, tracee, status);
    return;
  }
  tasks_exit(source->tasks, tracee->process, (uint32_t)id);
  id_table_drop(&step_of(source)->tracees, (uint32_t)id);
}

/* ---- as a source ---- */

static int step_attach(struct source *source, struct source_problem *ret_problem)
{
  long options =
    PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT | PTRACE_O_TRACEEXEC |
    (source->options.is_alone ? PTRACE_O_TRACECLONE : PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK);
  int process = (int)source->state.process;
  struct tracee *tracee;

  source->data = calloc(1, sizeof(struct step_source));
  tracee = source->data ? tracee_get(source, process) : NULL;
  if (!tracee) {
    snprintf(ret_problem->text, sizeof(ret_problem->text), "no memory");
    return -ENOMEM;
  }
  tasks_live(source->tasks);
  tracee->process = (uint32_t)process;
  tracee->has_stopped = tracee->has_begun = true;
  if (ptrace(PTRACE_SEIZE, process, NULL, (void *)options) < 0) {
    int error = errno;

    snprintf(ret_problem->text, sizeof(ret_problem->text), "the program cannot be traced: %s", strerror(error));
    ret_problem->advice = "do not run under a debugger; in a container, give it CAP_SYS_PTRACE";
    return -error;
  }
  return 0;
}

/* Every stop sends us SIGCHLD. It is blocked, so that it can be waited for with a time-out. */
static int step_step(struct source *source, unsigned milliseconds, bool is_all)
{
  const struct source_kernel *kernel = source->kernel;
  const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
  uint64_t end = kernel->clock(kernel->data) + (uint64_t)milliseconds * 1000000;
  sigset_t set, before;

  (void)is_all;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, &before);
  while (!source->state.is_over && !source->death_count && kernel->clock(kernel->data) < end)
    if (!source_reap(source))
      sigtimedwait(&set, NULL, &time);
  sigprocmask(SIG_SETMASK, &before, NULL);
  return tasks_flush(source->tasks);
}

static void step_free(struct source *source)
{
  struct step_source *step = source->data;

  if (!step)
    return;
  for (size_t i = 0; i < step->tracees.count; i++)
    tracee_release(step->tracees.entries[i].item);
  id_table_done(&step->tracees);
  step_maps_done(&step->maps);
  free(step);
}

#else

static int step_attach(struct source *source, struct source_problem *ret_problem)
{
  (void)source;
  snprintf(ret_problem->text, sizeof(ret_problem->text), "only x86-64 programs can be stepped");
  return -ENOSYS;
}

static int step_step(struct source *source, unsigned milliseconds, bool is_all)
{
  (void)source, (void)milliseconds, (void)is_all;
  return -ENOSYS;
}

static void step_free(struct source *source)
{
  (void)source;
}

static void step_waited(struct source *source, int id, int status)
{
  (void)source, (void)id, (void)status;
}

#endif

const struct source_functions source_step_functions = {
  .attach = step_attach, .step = step_step, .waited = step_waited, .free = step_free};
