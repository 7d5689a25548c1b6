/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads under ptrace(2): see tracee.h. PTRACE_SEIZE and PTRACE_INTERRUPT stop a thread without a signal, so that
 * nothing of it is left when the thread goes on.
 */
#include "process/tracee.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/target.h"

#define WAIT_SECONDS 0.25  /* between two calls of the wait function */
#define LOOSE_SECONDS 0.05 /* for which threads stand still while another cannot be stopped */
#define PAUSE_NANOSECONDS 50000

enum { SYSCALL_STOP = SIGTRAP | 0x80, MASK_SIZE = 8 };

/* ---- memory ---- */

bool tracees_read(const struct tracees *tracees, void *to, uint64_t from, size_t size)
{
  return pread(tracees->memory, to, size, (off_t)from) == (ssize_t)size;
}

bool tracees_write(const struct tracees *tracees, uint64_t to, const void *from, size_t size)
{
  return pwrite(tracees->memory, from, size, (off_t)to) == (ssize_t)size;
}

/* ---- single threads ---- */

int tracee_set(const struct tracee *tracee, const struct user_regs_struct *registers)
{
  return ptrace(PTRACE_SETREGS, tracee->thread, NULL, registers) < 0 ? -errno : 0;
}

int tracee_block(const struct tracee *tracee, uint64_t mask)
{
  return ptrace(PTRACE_SETSIGMASK, tracee->thread, MASK_SIZE, &mask) < 0 ? -errno : 0;
}

static int wait_for(struct tracee *tracee, int *ret_status)
{
  while (waitpid(tracee->thread, ret_status, __WALL) < 0)
    if (errno != EINTR)
      return -errno;
  if (WIFSTOPPED(*ret_status))
    return 0;
  tracee->is_gone = true;
  return -ESRCH;
}

/* Continues until the next stop of a system call. SIGSTOP cannot be blocked: it takes effect when the thread is let go.
 */
static int call_step(struct tracee *tracee)
{
  int signal = 0, status;

  for (;;) {
    if (ptrace(PTRACE_SYSCALL, tracee->thread, NULL, (void *)(intptr_t)signal) < 0)
      return -errno;
    int r = wait_for(tracee, &status);
    if (r < 0)
      return r;
    if (WSTOPSIG(status) == SYSCALL_STOP)
      return 0;
    signal = status >> 16 ? 0 : WSTOPSIG(status);
  }
}

int tracee_call(const struct tracees *tracees, struct tracee *tracee, uint64_t number, const uint64_t argument[6],
                int64_t *ret_result)
{
  struct user_regs_struct registers = tracee->registers;

  registers.rip = tracees->syscall_at;
  registers.rax = number;
  registers.orig_rax = UINT64_MAX;
  registers.rdi = argument[0];
  registers.rsi = argument[1];
  registers.rdx = argument[2];
  registers.r10 = argument[3];
  registers.r8 = argument[4];
  registers.r9 = argument[5];
  registers.eflags = 0x202;
  int r = tracee_set(tracee, &registers);
  if (r >= 0)
    r = call_step(tracee);
  if (r >= 0)
    r = call_step(tracee);
  if (r >= 0 && ptrace(PTRACE_GETREGS, tracee->thread, NULL, &registers) < 0)
    r = -errno;
  if (r >= 0)
    *ret_result = (int64_t)registers.rax;
  return r;
}

/* Is a stopped thread at the breakpoint? */
static bool is_arrived(const struct tracees *tracees, const struct tracee *tracee, int status, uint64_t *ret_answer)
{
  struct user_regs_struct registers;

  if (status >> 16 || WSTOPSIG(status) != SIGTRAP || ptrace(PTRACE_GETREGS, tracee->thread, NULL, &registers) < 0 ||
      registers.rip != tracees->breakpoint)
    return false;
  *ret_answer = registers.rdi;
  return true;
}

int tracee_run(const struct tracees *tracees, struct tracee *tracee, const struct user_regs_struct *registers,
               uint64_t *ret_answer)
{
  int r = tracee_set(tracee, registers), signal = 0, status;

  while (r >= 0) {
    if (ptrace(PTRACE_CONT, tracee->thread, NULL, (void *)(intptr_t)signal) < 0)
      return -errno;
    r = wait_for(tracee, &status);
    if (r >= 0 && is_arrived(tracees, tracee, status, ret_answer))
      return 0;
    signal = r < 0 || status >> 16 ? 0 : WSTOPSIG(status);
    if (signal == SIGSEGV || signal == SIGILL || signal == SIGBUS || signal == SIGTRAP)
      return -EFAULT; /* the runtime itself has failed */
  }
  return r;
}

/* ---- system calls that were interrupted ---- */

/* System calls that the kernel ends with EINTR when a thread is stopped, although no handler was called: signal(7). And
 * those on sockets with a timeout. They have done nothing, and can be made again. */
static bool is_restartable(uint64_t number)
{
  static const uint16_t numbers[] = {SYS_epoll_wait, SYS_epoll_pwait,  SYS_epoll_pwait2,  SYS_semop,
                                     SYS_semtimedop, SYS_io_getevents, SYS_io_pgetevents, SYS_rt_sigtimedwait,
                                     SYS_read,       SYS_readv,        SYS_recvfrom,      SYS_recvmsg,
                                     SYS_recvmmsg,   SYS_accept,       SYS_accept4,       SYS_write,
                                     SYS_writev,     SYS_sendto,       SYS_sendmsg};

  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
    if (numbers[i] == number)
      return true;
  return false;
}

/* Is a signal pending that has a handler, and that the thread does not block? */
static bool is_signalled(int process, const struct tracee *tracee)
{
  char path[64], line[256];
  unsigned long long own = 0, shared = 0, caught = 0;

  snprintf(path, sizeof(path), "/proc/%d/task/%d/status", process, tracee->thread);
  FILE *file = fopen(path, "re");
  if (!file)
    return true;
  while (fgets(line, sizeof(line), file)) {
    sscanf(line, "SigPnd: %llx", &own);
    sscanf(line, "ShdPnd: %llx", &shared);
    sscanf(line, "SigCgt: %llx", &caught);
  }
  fclose(file);
  return (own | shared) & caught & ~tracee->mask;
}

unsigned tracee_interruption(const struct tracees *tracees, const struct tracee *tracee)
{
  enum { RESTART_SYS = 512, RESTART_NO_HANDLER = 514 };
  const struct user_regs_struct *registers = &tracee->registers;
  int64_t result = -(int64_t)registers->rax;

  if ((int64_t)registers->orig_rax < 0)
    return 0;
  if ((result >= RESTART_SYS && result <= RESTART_NO_HANDLER) || result == TRACEE_RESTART_BLOCK)
    return (unsigned)result;
  bool is_ours = result == EINTR && is_restartable(registers->orig_rax) && !is_signalled(tracees->process, tracee);
  return is_ours ? EINTR : 0;
}

/* The thread goes on as if it had not been stopped: the kernel restarts most system calls, but not all. */
static void tracee_go_on(const struct tracees *tracees, struct tracee *tracee)
{
  enum { SYSCALL_SIZE = 2 };

  if (tracee_interruption(tracees, tracee) != EINTR)
    return;
  tracee->registers.rip -= SYSCALL_SIZE;
  tracee->registers.rax = tracee->registers.orig_rax;
  tracee->registers.orig_rax = UINT64_MAX;
  tracee_set(tracee, &tracee->registers);
}

/* ---- the list ---- */

static struct tracee *tracee_find(const struct tracees *tracees, int thread)
{
  for (size_t i = 0; i < tracees->count; i++)
    if (tracees->list[i].thread == thread)
      return &tracees->list[i];
  return NULL;
}

static struct tracee *tracee_add(struct tracees *tracees, int thread)
{
  struct tracee *added = array_append(&tracees->list, &tracees->count, &tracees->capacity);

  if (added)
    *added = (struct tracee){.thread = thread};
  return added;
}

static long seize_with(const struct tracees *tracees, int thread)
{
  const uintptr_t options = PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD;

  return ptrace(PTRACE_SEIZE, thread, NULL,
                (void *)(options | (tracees->can_suspend ? (uintptr_t)PTRACE_O_SUSPEND_SECCOMP : 0)));
}

/* EINVAL: the kernel was built without a way to suspend filters. */
static int seize(struct tracees *tracees, int thread)
{
  long r = seize_with(tracees, thread);

  if (r < 0 && errno == EINVAL && tracees->can_suspend) {
    tracees->can_suspend = false;
    r = seize_with(tracees, thread);
  }
  if (r < 0)
    return errno == ESRCH ? 0 : -errno; /* it has just ended */
  ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
  return tracee_add(tracees, thread) ? 1 : -ENOMEM;
}

static bool is_zombie(int process, int thread)
{
  int state = target_thread_state((uint32_t)process, (uint32_t)thread);

  return !state || state == 'Z' || state == 'X';
}

/* Seizes the threads that are not in the list yet. Returns how many, or -errno. */
static int seize_new(struct tracees *tracees)
{
  char path[64];
  const struct dirent *entry;
  int r = 0, seized = 0;

  snprintf(path, sizeof(path), "/proc/%d/task", tracees->process);
  DIR *folder = opendir(path);
  if (!folder)
    return errno == ENOENT ? -ESRCH : -errno;
  while (r >= 0 && (entry = readdir(folder))) {
    int thread = (int)strtol(entry->d_name, NULL, 10);

    if (thread <= 0 || tracee_find(tracees, thread) || is_zombie(tracees->process, thread))
      continue;
    r = seize(tracees, thread);
    seized += r > 0;
  }
  closedir(folder);
  return r < 0 ? r : seized;
}

static int tracee_read(struct tracee *tracee)
{
  if (ptrace(PTRACE_GETREGS, tracee->thread, NULL, &tracee->registers) < 0 ||
      ptrace(PTRACE_GETSIGMASK, tracee->thread, MASK_SIZE, &tracee->mask) < 0)
    return -errno;
  return 0;
}

/* Has an instruction of the thread faulted, so that a signal is on its way which belongs to this instruction? */
static bool has_fault(const struct tracee *tracee)
{
  enum { MOST = 16 };
  const uint64_t faults = 1u << (SIGILL - 1) | 1u << (SIGTRAP - 1) | 1u << (SIGBUS - 1) | 1u << (SIGFPE - 1) |
                          1u << (SIGSEGV - 1) | 1u << (SIGSYS - 1);
  const struct __ptrace_peeksiginfo_args all = {.nr = MOST};
  siginfo_t infos[MOST];
  long count = ptrace(PTRACE_PEEKSIGINFO, tracee->thread, &all, infos);

  for (long i = 0; i < count; i++)
    if (infos[i].si_signo < 32 && faults >> (infos[i].si_signo - 1) & 1 && infos[i].si_code > 0)
      return true;
  return false;
}

/* What a thread's stop means. Returns whether the caller is told. The signal of a fault is delivered before the thread
 * stops for good. */
static bool stop_take(const struct tracees *tracees, struct tracee *tracee, int status, enum tracee_event *ret_event)
{
  int signal = WSTOPSIG(status), event = status >> 16;

  if (event == PTRACE_EVENT_STOP && !(tracees->is_stopping && has_fault(tracee))) {
    tracee->is_stopped = true;
    *ret_event = TRACEE_STOPPED;
    return tracee_read(tracee) >= 0;
  }
  if (is_arrived(tracees, tracee, status, &tracee->answer)) {
    tracee->is_stopped = tracee->has_arrived = true;
    *ret_event = TRACEE_ARRIVED;
    return true;
  }
  ptrace(PTRACE_CONT, tracee->thread, NULL, (void *)(intptr_t)(event ? 0 : signal));
  if (tracees->is_stopping && event != PTRACE_EVENT_STOP)
    ptrace(PTRACE_INTERRUPT, tracee->thread, NULL, NULL);
  return false;
}

/* A thread has made another one, which is traced from its first instruction on. */
static void clone_take(struct tracees *tracees, int thread, int status)
{
  unsigned long made = 0;

  if (status >> 16 == PTRACE_EVENT_CLONE && ptrace(PTRACE_GETEVENTMSG, thread, NULL, &made) >= 0 &&
      !tracee_find(tracees, (int)made))
    tracee_add(tracees, (int)made);
}

struct tracee *tracees_next(struct tracees *tracees, enum tracee_event *ret_event)
{
  for (;;) {
    int status, thread = waitpid(-1, &status, __WALL | WNOHANG);

    if (thread <= 0)
      return NULL;
    if (WIFSTOPPED(status))
      clone_take(tracees, thread, status);
    struct tracee *tracee = tracee_find(tracees, thread);
    if (!tracee && WIFSTOPPED(status))
      tracee = tracee_add(tracees, thread); /* a new thread */
    if (!tracee)
      continue;
    if (!WIFSTOPPED(status)) {
      tracee->is_gone = true;
      *ret_event = TRACEE_GONE;
      return tracee;
    }
    if (stop_take(tracees, tracee, status, ret_event))
      return tracee;
  }
}

/* ---- all of them ---- */

static int thread_running(const struct tracees *tracees)
{
  for (size_t i = 0; i < tracees->count; i++)
    if (!tracees->list[i].is_stopped && !tracees->list[i].is_gone)
      return tracees->list[i].thread;
  return 0;
}

static void pause_shortly(void)
{
  nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
}

/* Lets the threads run that were stopped. The one that could not be may need them: its child of vfork, which it waits
 * for, may wait for one of them. */
static void all_loosen(struct tracees *tracees)
{
  tracees->is_stopping = false;
  for (size_t i = 0; i < tracees->count; i++) {
    struct tracee *tracee = &tracees->list[i];

    if (!tracee->is_stopped || tracee->is_gone)
      continue;
    tracee_go_on(tracees, tracee);
    tracee->is_stopped = false;
    ptrace(PTRACE_CONT, tracee->thread, NULL, NULL);
  }
}

static void all_tighten(struct tracees *tracees)
{
  tracees->is_stopping = true;
  for (size_t i = 0; i < tracees->count; i++)
    if (!tracees->list[i].is_stopped && !tracees->list[i].is_gone)
      ptrace(PTRACE_INTERRUPT, tracees->list[i].thread, NULL, NULL);
}

/* Is the thread still on its way to the stop? */
static bool is_running(const struct tracees *tracees, int thread)
{
  const struct tracee *tracee = tracee_find(tracees, thread);

  return tracee && !tracee->is_stopped && !tracee->is_gone;
}

/* Waits until all threads of the list are stopped. */
static int all_wait(struct tracees *tracees, tracee_wait_function *wait, void *data)
{
  double start = clock_seconds(), since = start, next = start + WAIT_SECONDS;
  enum tracee_event event;
  int thread, late = 0; /* the thread that cannot be stopped while others are */

  while ((thread = thread_running(tracees))) {
    if (tracees_next(tracees, &event))
      continue;
    pause_shortly();
    double now = clock_seconds();
    if (late && !is_running(tracees, late)) {
      late = 0;
      since = now;
      all_tighten(tracees);
    } else if (!late && now - since > LOOSE_SECONDS) {
      late = thread;
      all_loosen(tracees);
    }
    if (now >= next && wait && !wait(data, thread, now - start))
      return -EINTR;
    next = now >= next ? now + WAIT_SECONDS : next;
  }
  return 0;
}

static int memory_open(struct tracees *tracees)
{
  char path[64];

  snprintf(path, sizeof(path), "/proc/%d/mem", tracees->process);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0)
    return -errno;
  tracees->memory = fd;
  return 0;
}

/* While a process stands still, lbr goes before all others that want a processor, if it may: the threads that it has
 * let go would otherwise keep it from the rest. */
static void be_urgent(bool is_urgent)
{
  static struct sched_param before;
  static int policy = -1;
  const struct sched_param level = {.sched_priority = 1};

  if (is_urgent) {
    policy = sched_getscheduler(0);
    if (policy < 0 || sched_getparam(0, &before) < 0 || sched_setscheduler(0, SCHED_RR, &level) < 0)
      policy = -1;
  } else if (policy >= 0) {
    sched_setscheduler(0, policy, &before);
    policy = -1;
  }
}

int tracees_stop(struct tracees *tracees, int process, uint64_t breakpoint, tracee_wait_function *wait, void *data)
{
  int r;

  *tracees = (struct tracees){
    .process = process, .breakpoint = breakpoint, .is_stopping = true, .can_suspend = target_can_suspend()};
  be_urgent(true);
  do {
    r = seize_new(tracees);
    int waited = r < 0 ? r : all_wait(tracees, wait, data);
    r = waited < 0 ? waited : r;
  } while (r > 0);
  tracees->is_stopping = false;
  if (r >= 0)
    r = memory_open(tracees);
  if (r < 0)
    tracees_free(tracees);
  return r;
}

static void tracee_free(const struct tracees *tracees, struct tracee *tracee)
{
  if (tracee->is_gone || !tracee->is_stopped)
    return;
  if (!tracee->is_changed)
    tracee_go_on(tracees, tracee);
  tracee_block(tracee, tracee->mask);
  tracee_set(tracee, &tracee->registers);
  ptrace(PTRACE_DETACH, tracee->thread, NULL, NULL);
}

/* A thread can only be let go when it is stopped. One that cannot be stopped now is let go when lbr ends. */
static void all_stop_again(struct tracees *tracees)
{
  double end = clock_seconds() + LOOSE_SECONDS;
  enum tracee_event event;

  all_tighten(tracees);
  while (thread_running(tracees) && clock_seconds() < end)
    if (!tracees_next(tracees, &event))
      pause_shortly();
}

void tracees_free(struct tracees *tracees)
{
  if (thread_running(tracees))
    all_stop_again(tracees);
  for (size_t i = 0; i < tracees->count; i++)
    tracee_free(tracees, &tracees->list[i]);
  be_urgent(false);
  if (tracees->memory)
    close(tracees->memory);
  free(tracees->list);
  *tracees = (struct tracees){0};
}
