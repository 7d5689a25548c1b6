/* SPDX-License-Identifier: Apache-2.0
 *
 * Observes with ptrace(2) how processes die: the last signal that came to each thread, and its registers when the
 * signal kills it. The threads run freely otherwise.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/source_inside.h"

/* A descriptor that becomes readable when a thread has stopped, so that a watched thread does not wait longer than
 * necessary. */
static void bell_hang(struct watch *watch)
{
  sigset_t set, before;

  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  watch->bell = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  if (watch->bell >= 0 && sigprocmask(SIG_BLOCK, &set, &before) == 0)
    watch->has_blocked = !sigismember(&before, SIGCHLD);
}

static void bell_take(struct watch *watch)
{
  sigset_t set;

  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  if (watch->has_blocked)
    sigprocmask(SIG_UNBLOCK, &set, NULL);
  if (watch->bell >= 0)
    close(watch->bell);
  watch->bell = -1;
}

int watch_attach(struct watch *watch, int process)
{
  long options = PTRACE_O_TRACEEXIT | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK;

  if (ptrace(PTRACE_SEIZE, process, NULL, (void *)options) < 0)
    return -errno;
  bell_hang(watch);
  return 0;
}

bool watch_has_rung(struct watch *watch)
{
  struct signalfd_siginfo info;

  return watch->bell >= 0 && read(watch->bell, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

/* ---- deaths ---- */

#ifdef __x86_64__
/* The registers in the order of their encoding. */
static void registers_fill(int thread, struct source_death *death)
{
  struct user_regs_struct registers;

  if (ptrace(PTRACE_GETREGS, thread, NULL, &registers) < 0)
    return;
  const uint64_t values[16] = {registers.rax, registers.rcx, registers.rdx, registers.rbx, registers.rsp, registers.rbp,
                               registers.rsi, registers.rdi, registers.r8,  registers.r9,  registers.r10, registers.r11,
                               registers.r12, registers.r13, registers.r14, registers.r15};
  death->rip = registers.rip;
  death->flags = registers.eflags;
  memcpy(death->registers, values, sizeof(values));
}
static uint64_t thread_place(int thread)
{
  struct user_regs_struct registers;

  return ptrace(PTRACE_GETREGS, thread, NULL, &registers) < 0 ? 0 : registers.rip;
}
#else
static uint64_t thread_place(int thread)
{
  (void)thread;
  return 0;
}

static void registers_fill(int thread, struct source_death *death)
{
  (void)thread, (void)death;
}
#endif

void source_death_add(struct source *source, int thread, int signal, int code, uint64_t address)
{
  struct source_death death = {.process = source_thread_process(source, thread),
                               .thread = (uint32_t)thread,
                               .signal = signal,
                               .code = code,
                               .address = address};

  registers_fill(thread, &death);
  tasks_title_look(source->tasks, death.process);
  tasks_title(source->tasks, death.process, death.command);
  if (source->death_count < SOURCE_DEATHS_MAX)
    source->deaths[source->death_count++] = death;
}

/* ---- stops ---- */

static struct watch_thread *thread_get(struct watch *watch, int id)
{
  return id_table_get(&watch->threads, (uint32_t)id, sizeof(struct watch_thread));
}

/* The thread ends: notes whether a signal that it received ended it. */
static void exit_note(struct watch *watch, struct source *source, int id)
{
  const struct watch_thread *thread = thread_get(watch, id);
  unsigned long status;

  if (thread && thread->signal && ptrace(PTRACE_GETEVENTMSG, id, NULL, &status) == 0 && WIFSIGNALED((int)status) &&
      WTERMSIG((int)status) == thread->signal)
    source_death_add(source, id, thread->signal, thread->code, thread->address);
  id_table_drop(&watch->threads, (uint32_t)id);
}

static void signal_note(struct watch *watch, int id, const siginfo_t *info)
{
  struct watch_thread *thread = thread_get(watch, id);

  if (!thread)
    return;
  thread->signal = info->si_signo;
  thread->code = info->si_code;
  thread->address = info->si_code > 0 ? (uint64_t)(uintptr_t)info->si_addr : 0;
}

/* ---- handlers ---- */

/* "SigCgt:" in its status. */
static bool has_handler(const struct source *source, int thread, int signal)
{
  char path[64], buffer[4096];
  const char *line;

  snprintf(path, sizeof(path), "/proc/%d/status", thread);
  if (source->kernel->file_read(source->kernel->data, path, buffer, sizeof(buffer)) < 0)
    return false;
  line = strstr(buffer, "\nSigCgt:");
  return line && signal >= 1 && signal <= 64 && strtoull(line + 8, NULL, 16) >> (signal - 1) & 1;
}

/* The signal for which the thread has stopped has a handler: a step leads to the handler's first instruction without
 * executing any. */
static bool handler_step(struct watch *watch, const struct source *source, int id, int signal)
{
  struct watch_thread *thread = thread_get(watch, id);

  if (!thread || !has_handler(source, id, signal))
    return false;
  thread->at = thread_place(id);
  thread->is_stepped = thread->at && ptrace(PTRACE_SINGLESTEP, id, NULL, (void *)(uintptr_t)signal) == 0;
  return thread->is_stepped;
}

/* Whether this is the stop after such a step. */
static bool handler_note(struct watch *watch, struct source *source, int id, int signal, const siginfo_t *info)
{
  struct watch_thread *thread = thread_get(watch, id);

  if (!thread || !thread->is_stepped || signal != SIGTRAP)
    return false;
  thread->is_stepped = false;
  if (info->si_code == SIGTRAP) /* not a trap: the kernel reports that a handler was entered */
    tasks_signal(source->tasks, (uint32_t)id, thread->at, thread_place(id));
  return true;
}

void watch_stop(struct watch *watch, struct source *source, int id, int status)
{
  int signal = WSTOPSIG(status), event = status >> 16;
  siginfo_t info;

  if (event == PTRACE_EVENT_STOP && signal != SIGTRAP) { /* the whole group stops, until SIGCONT */
    ptrace(PTRACE_LISTEN, id, NULL, NULL);
    return;
  }
  if (event == PTRACE_EVENT_EXIT) {
    tasks_title_look(source->tasks, source_thread_process(source, id));
    exit_note(watch, source, id);
  }
  if (!event && ptrace(PTRACE_GETSIGINFO, id, NULL, &info) == 0) {
    if (handler_note(watch, source, id, signal, &info)) {
      ptrace(PTRACE_CONT, id, NULL, NULL);
      return;
    }
    signal_note(watch, id, &info);
    if (watch->wants_handlers && handler_step(watch, source, id, signal))
      return;
  }
  ptrace(PTRACE_CONT, id, NULL, (void *)(uintptr_t)(event ? 0 : signal));
}

void watch_done(struct watch *watch)
{
  id_table_done(&watch->threads);
  bell_take(watch);
}
