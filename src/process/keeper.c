/* SPDX-License-Identifier: Apache-2.0
 *
 * The keeper: keeper.h. A thread that lbr has stopped in the middle of attaching cannot go on by itself: it would run
 * into the breakpoint of the runtime, with registers that are not its own. A SIGKILL for lbr or for its process group
 * must not have this effect, so a process with a session of its own is the tracer. It is forked before a thread is
 * stopped. lbr and the keeper share a page for the result, and a pipe that tells lbr that the keeper waits or has
 * ended.
 */
#include "process/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attachment.h"
#include "process/process.h"

enum { LOOK_MILLISECONDS = 5 };

/* In memory that both share. */
struct report {
  bool is_done;
  int result;
  size_t attached_count;
  double stopped;
  int thread; /* that the keeper waits for, */
  double seconds;
  bool is_given_up; /* lbr does not want to wait any more */
};

struct keeper {
  struct report *report;
  int lbr;      /* the number of lbr's process */
  int pipe;     /* the keeper writes a byte when it waits */
  bool is_weak; /* gives up when lbr is gone */
};

/* ---- in the keeper ---- */

static bool is_orphan(const struct keeper *keeper)
{
  return getppid() != keeper->lbr;
}

static bool keeper_wait(void *data, int thread, double seconds)
{
  const struct keeper *keeper = data;

  keeper->report->thread = thread;
  keeper->report->seconds = seconds;
  if (write(keeper->pipe, "", 1) < 0 && keeper->is_weak && is_orphan(keeper))
    return false;
  return !__atomic_load_n(&keeper->report->is_given_up, __ATOMIC_ACQUIRE);
}

/* All signals are blocked, so that only SIGKILL for this very process can end it. */
static _Noreturn void keeper_work(struct keeper *keeper, struct process *process, keeper_function *work,
                                  keeper_function *undo, const void *data)
{
  struct report *report = keeper->report;

  setsid();
  fcntl(keeper->pipe, F_SETFL, O_NONBLOCK); /* lbr may be stopped */
  keeper->is_weak = undo != NULL;
  process->attachment->wait = keeper_wait;
  process->attachment->data = keeper;
  report->result = work(process, data);
  report->attached_count = process->attached_count;
  report->stopped = process->stopped;
  report->is_done = true;
  if (undo && report->result >= 0 && is_orphan(keeper)) {
    keeper->is_weak = false;
    undo(process, data);
  }
  _exit(0);
}

/* ---- in lbr ---- */

/* Returns when the keeper has closed its end of the pipe, which it does by ending. The wait function reads logs:
 * threads of the processes may need that to go on, and to leave. */
static void keeper_await(const struct keeper *keeper, tracee_wait_function *wait, void *data)
{
  struct report *report = keeper->report;
  struct pollfd input = {.fd = keeper->pipe, .events = POLLIN};
  char bytes[64];

  for (;;) {
    ssize_t size = poll(&input, 1, wait ? LOOK_MILLISECONDS : -1) > 0 ? read(keeper->pipe, bytes, sizeof(bytes)) : 1;

    if (size == 0 || (size < 0 && errno != EINTR))
      return;
    if (wait && !wait(data, report->thread, report->seconds))
      __atomic_store_n(&report->is_given_up, true, __ATOMIC_RELEASE);
  }
}

static int report_take(const struct report *report, struct process *process)
{
  if (!report->is_done) {
    message("the process of lbr that attaches and leaves was killed; the recorded processes may not go on");
    return -EIO;
  }
  process->attached_count = report->attached_count;
  process->stopped = report->stopped;
  return report->result;
}

/* Forks with all signals blocked, which the keeper inherits: no handler of lbr may run in it. Unlike fork(3), _Fork(3)
 * does not call the functions of pthread_atfork(3), which unblock signals for programs that lbr starts (session). lbr
 * has one thread, so that no lock of libc is held. */
static int keeper_fork(void)
{
  sigset_t all, before;

  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  int pid = _Fork();
  if (pid)
    sigprocmask(SIG_SETMASK, &before, NULL);
  return pid;
}

int keeper_run(struct process *process, keeper_function *work, keeper_function *undo, const void *data)
{
  struct keeper keeper = {.lbr = getpid()};
  tracee_wait_function *wait = process->attachment->wait;
  void *wait_data = process->attachment->data, *memory;
  int ends[2], pid = -1;

  memory = mmap(NULL, sizeof(*keeper.report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return work(process, data); /* without a keeper */
  keeper.report = memory;
  if (pipe2(ends, O_CLOEXEC) == 0) {
    pid = keeper_fork();
    if (pid == 0) {
      close(ends[0]);
      keeper.pipe = ends[1];
      keeper_work(&keeper, process, work, undo, data);
    }
    close(ends[1]);
    keeper.pipe = ends[0];
    if (pid > 0)
      keeper_await(&keeper, wait, wait_data);
    close(ends[0]);
  }
  while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
    ;
  int r = pid > 0 ? report_take(keeper.report, process) : work(process, data);
  munmap(memory, sizeof(*keeper.report));
  return r;
}
