/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves a process that lbr has attached to (attach.c). All threads are stopped. A thread in a system call of the
 * application leaves from there, so that the kernel restarts the call; any other thread is told to come to the boundary
 * of an instruction (runtime/leave.c). When all of them stand at the breakpoint of the runtime, one undoes what the
 * runtime has done to the process, and all go on natively.
 */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attach.h"
#include "process/attachment.h"
#include "process/process.h"
#include "process/shared.h"
#include "process/target.h"

#define AGAIN_SECONDS 0.02 /* a thread that has not come is stopped and told again */
#define PAUSE_NANOSECONDS 50000

enum { MASK_TRAP = 1 << 4, FLAGS_PLAIN = 0x202 };

/* One process while lbr leaves it. */
struct leaving {
  const struct attachment *attachment;
  const struct process *process;
  struct tracees tracees;
  uint64_t image; /* address of the runtime's */
};

/* ---- threads ---- */

static void nudge(const struct leaving *leaving, const struct tracee *tracee)
{
  siginfo_t info;

  memset(&info, 0, sizeof(info));
  info.si_signo = SIGSYS;
  info.si_code = ATTACH_CODE_LEAVE;
  syscall(SYS_rt_tgsigqueueinfo, leaving->tracees.process, tracee->thread, SIGSYS, &info);
}

/* System calls during which the runtime holds its lock. */
static bool is_locked(uint64_t number)
{
  return number == SYS_mmap || number == SYS_munmap || number == SYS_mremap || number == SYS_mprotect ||
         number == SYS_madvise || number == SYS_pkey_mprotect;
}

/* Is the thread executing a program? Its signals are those of the program then. */
static bool is_executing(const struct leaving *leaving, const struct tracee *tracee)
{
  uint32_t end = END_NONE;

  return !tracees_read(&leaving->tracees, &end, tracee->registers.gs_base + offsetof(struct process_state, end),
                       sizeof(end)) ||
         end == END_EXEC;
}

/* Has the kernel set the thread back to the instruction of the system call, to make the call again? */
static bool is_set_back(const struct leaving *leaving, const struct user_regs_struct *registers)
{
  enum { SYSCALL_SIZE = 2 };

  return registers->rip == leaving->attachment->call_back - SYSCALL_SIZE &&
         registers->rcx == leaving->attachment->call_back;
}

/* The thread waits in a system call of the application, and leaves from there. Returns false: it does not. */
static bool leave_from_call(const struct leaving *leaving, const struct tracee *tracee)
{
  struct user_regs_struct registers = tracee->registers;
  bool is_back = is_set_back(leaving, &registers), is_in = registers.rip == leaving->attachment->call_back;
  uint64_t number = is_back ? registers.rax : registers.orig_rax;
  unsigned interruption = is_in ? tracee_interruption(&leaving->tracees, tracee) : 0;

  if ((!interruption && !is_back) || is_locked(number) || is_executing(leaving, tracee))
    return false;
  registers.rip = leaving->attachment->call_entry;
  registers.rdi = registers.rax;
  registers.rsi = number;
  registers.rdx = is_back || interruption == EINTR;
  registers.orig_rax = UINT64_MAX;
  registers.eflags = FLAGS_PLAIN;
  return tracee_block(tracee, ~(uint64_t)MASK_TRAP) >= 0 && tracee_set(tracee, &registers) >= 0;
}

/* The thread has not run since lbr attached to it: it was stopped, or others have the processors. */
static bool leave_from_start(const struct leaving *leaving, const struct tracee *tracee)
{
  struct user_regs_struct registers = tracee->registers;

  if (registers.rip != leaving->attachment->thread_entry)
    return false;
  registers.rip = leaving->attachment->start_entry;
  return tracee_set(tracee, &registers) >= 0;
}

/* A thread that stands right behind the breakpoint is about to report that. A thread without GS has executed a program
 * meanwhile. */
static void thread_send_off(const struct leaving *leaving, struct tracee *tracee)
{
  tracee->is_native = !tracee->registers.gs_base;
  if (tracee->is_native)
    return;
  if (tracee->registers.rip != leaving->attachment->breakpoint && !leave_from_start(leaving, tracee) &&
      !leave_from_call(leaving, tracee))
    nudge(leaving, tracee);
  tracee->is_stopped = false;
  ptrace(PTRACE_CONT, tracee->thread, NULL, NULL);
}

static bool is_awaited(const struct tracee *tracee)
{
  return !tracee->is_gone && !tracee->is_native && !tracee->has_arrived;
}

/* Stops the threads that have not come yet, to look at them again. */
static bool threads_stop_again(const struct leaving *leaving, int *ret_thread)
{
  bool is_any = false;

  for (size_t i = 0; i < leaving->tracees.count; i++) {
    const struct tracee *tracee = &leaving->tracees.list[i];

    if (!is_awaited(tracee))
      continue;
    is_any = true;
    *ret_thread = tracee->thread;
    ptrace(PTRACE_INTERRUPT, tracee->thread, NULL, NULL);
  }
  return is_any;
}

static bool are_all_there(const struct leaving *leaving)
{
  for (size_t i = 0; i < leaving->tracees.count; i++)
    if (is_awaited(&leaving->tracees.list[i]))
      return false;
  return true;
}

/* Waits until all threads are at the breakpoint. */
static void threads_leave(struct leaving *leaving)
{
  const struct attachment *attachment = leaving->attachment;
  double start = clock_seconds(), next = start + AGAIN_SECONDS;

  for (size_t i = 0; i < leaving->tracees.count; i++)
    if (!leaving->tracees.list[i].is_gone)
      thread_send_off(leaving, &leaving->tracees.list[i]);
  while (!are_all_there(leaving)) {
    enum tracee_event event;
    struct tracee *tracee = tracees_next(&leaving->tracees, &event);
    int thread = 0;

    if (tracee && event == TRACEE_STOPPED)
      thread_send_off(leaving, tracee);
    if (tracee)
      continue;
    nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
    double now = clock_seconds();
    if (now < next || !threads_stop_again(leaving, &thread))
      continue;
    next = now + AGAIN_SECONDS;
    if (attachment->wait) /* some threads have left: there is no way back */
      attachment->wait(attachment->data, thread, now - start);
  }
}

/* ---- the process ---- */

static bool has_nudge(const struct tracee *tracee)
{
  enum { MOST = 32 };
  const struct __ptrace_peeksiginfo_args all = {.nr = MOST};
  siginfo_t infos[MOST];
  long count = ptrace(PTRACE_PEEKSIGINFO, tracee->thread, &all, infos);

  for (long i = 0; i < count; i++)
    if (infos[i].si_signo == SIGSYS && infos[i].si_code == ATTACH_CODE_LEAVE)
      return true;
  return false;
}

/* A thread may have been told more than once. It has blocked the signal, and must not find it natively. Its answer has
 * been read, so that there is room for the arguments of the call. */
static void nudges_take_back(const struct leaving *leaving, struct tracee *tracee)
{
  enum { SET_SIZE = 8, MOST = 64 };

  struct {
    uint64_t set;
    int64_t time[2];
  } data = {UINT64_C(1) << (SIGSYS - 1), {0, 0}};
  const uint64_t argument[6] = {tracee->answer, 0, tracee->answer + offsetof(__typeof__(data), time), SET_SIZE};
  int64_t result = SIGSYS;
  for (unsigned i = 0; i < MOST && result == SIGSYS && has_nudge(tracee); i++)
    if (!tracees_write(&leaving->tracees, tracee->answer, &data, sizeof(data)) ||
        tracee_call(&leaving->tracees, tracee, SYS_rt_sigtimedwait, argument, &result) < 0)
      return;
}

/* The registers and the mask with which the thread goes on natively. */
static int thread_restore(const struct leaving *leaving, struct tracee *tracee)
{
  struct attach_left left;
  struct user_regs_struct *to = &tracee->registers;

  if (!tracees_read(&leaving->tracees, &left, tracee->answer, sizeof(left)))
    return -EFAULT;
  nudges_take_back(leaving, tracee);
  tracee->is_changed = true;
  if (ptrace(PTRACE_GETREGS, tracee->thread, NULL, to) < 0)
    return -errno;
  unsigned long long *const registers[16] = {&to->rax, &to->rcx, &to->rdx, &to->rbx, &to->rsp, &to->rbp,
                                             &to->rsi, &to->rdi, &to->r8,  &to->r9,  &to->r10, &to->r11,
                                             &to->r12, &to->r13, &to->r14, &to->r15};
  for (unsigned i = 0; i < 16; i++)
    *registers[i] = left.registers[i];
  to->rip = left.rip;
  to->eflags = left.flags;
  to->orig_rax = (uint64_t)left.call;
  to->gs_base = 0;
  tracee->mask = left.mask;
  return 0;
}

/* Lets /proc/PID/exe lead to the program that the runtime has loaded. The kernel allows that only to processes with
 * CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN; in others, the link leads to the runtime as long as the program runs. The
 * thread's stack has room for the argument, below the 128 bytes that belong to its function. */
static int exe_restore(const struct leaving *leaving, struct tracee *first, const struct prctl_mm_map *map)
{
  enum { RED_ZONE = 128 };
  uint64_t at = (first->registers.rsp - RED_ZONE - sizeof(*map)) & ~UINT64_C(15);
  const uint64_t change[6] = {PR_SET_MM, PR_SET_MM_MAP, at, sizeof(*map)}, file[6] = {map->exe_fd};
  int64_t result;
  int r = 0;

  if (tracees_write(&leaving->tracees, at, map, sizeof(*map)))
    r = tracee_call(&leaving->tracees, first, SYS_prctl, change, &result);
  return r < 0 ? r : tracee_call(&leaving->tracees, first, SYS_close, file, &result);
}

/* Undoes what the runtime has done to the process, in its first thread. */
static int process_restore(struct leaving *leaving, struct tracee *first)
{
  enum { SET_SIZE = 8 };
  struct user_regs_struct registers = first->registers;
  struct attach_gone gone;
  uint64_t answer;
  int64_t result;
  int r;

  registers.rip = leaving->attachment->leave_entry;
  registers.orig_rax = UINT64_MAX;
  registers.eflags = FLAGS_PLAIN;
  r = tracee_run(&leaving->tracees, first, &registers, &answer);
  if (r < 0)
    return r;
  if (!tracees_read(&leaving->tracees, &gone, answer, sizeof(gone)))
    return -EFAULT;
  const uint64_t action[6] = {SIGTRAP, answer, 0, SET_SIZE};
  r = tracee_call(&leaving->tracees, first, SYS_rt_sigaction, action, &result);
  for (unsigned i = 0; i < 2 && r >= 0 && gone.image[i].start; i++) {
    const uint64_t piece[6] = {gone.image[i].start, gone.image[i].end - gone.image[i].start};

    r = tracee_call(&leaving->tracees, first, SYS_munmap, piece, &result);
  }
  return r >= 0 && gone.has_map ? exe_restore(leaving, first, &gone.map) : r;
}

/* A thread that has made other calls since goes once more through the place where the kernel restarts calls, and stops
 * there. */
static int thread_stop_again(struct leaving *leaving, struct tracee *tracee)
{
  const struct tracee kept = *tracee;
  enum tracee_event event;
  int r = tracee_set(tracee, &kept.registers);

  tracee->is_stopped = false;
  if (r < 0 || ptrace(PTRACE_INTERRUPT, tracee->thread, NULL, NULL) < 0 ||
      ptrace(PTRACE_CONT, tracee->thread, NULL, NULL) < 0)
    return -ESRCH;
  while (!tracee->is_stopped && !tracee->is_gone)
    if (!tracees_next(&leaving->tracees, &event))
      nanosleep(&(struct timespec){.tv_nsec = PAUSE_NANOSECONDS}, NULL);
  tracee->registers = kept.registers;
  tracee->mask = kept.mask;
  return tracee->is_gone ? -ESRCH : 0;
}

static int leave_stopped(struct leaving *leaving)
{
  struct tracee *first = NULL;
  int r = 0;

  threads_leave(leaving);
  for (size_t i = 0; i < leaving->tracees.count && r >= 0; i++) {
    struct tracee *tracee = &leaving->tracees.list[i];

    if (tracee->is_gone || tracee->is_native)
      continue;
    r = thread_restore(leaving, tracee);
    first = first ? first : tracee;
  }
  if (r >= 0)
    r = first ? process_restore(leaving, first) : -ESRCH;
  return r < 0 ? r : thread_stop_again(leaving, first);
}

/* Finds the runtime's image: at its address in a process that lbr has attached to, elsewhere in one that has executed a
 * program since. */
static int image_find(struct leaving *leaving, struct attachment *attachment, const struct target_maps *maps)
{
  leaving->image = target_image(maps);
  if (!leaving->image)
    return -ESRCH;
  attachment_place(attachment, leaving->image);
  leaving->tracees.breakpoint = attachment->breakpoint;
  return 0;
}

/* Has the runtime, if it has just been executed, taken over the signals of its process? */
static bool can_leave(const struct leaving *leaving)
{
  for (size_t i = 0; i < leaving->tracees.count; i++) {
    const struct tracee *tracee = &leaving->tracees.list[i];
    uint64_t at = tracee->registers.gs_base + offsetof(struct process_state, can_leave);
    uint32_t is_ready = 0;

    if (!tracee->is_gone && tracee->registers.gs_base &&
        tracees_read(&leaving->tracees, &is_ready, at, sizeof(is_ready)) && is_ready)
      return true;
  }
  return false;
}

int attachment_end(struct attachment *attachment, const struct process *process, int pid)
{
  struct leaving leaving = {.attachment = attachment, .process = process};
  struct target_maps maps = {0};
  double start = clock_seconds();
  int r = tracees_stop(&leaving.tracees, pid, 0, attachment->wait, attachment->data);

  if (r < 0)
    return r;
  r = target_maps_read(pid, &maps);
  if (r >= 0)
    r = image_find(&leaving, attachment, &maps);
  if (r >= 0)
    r = attach_find_syscall(&leaving.tracees, &maps);
  if (r >= 0)
    r = can_leave(&leaving) ? leave_stopped(&leaving) : -EAGAIN;
  target_maps_done(&maps);
  tracees_free(&leaving.tracees);
  attachment->stopped = clock_seconds() - start;
  return r;
}
