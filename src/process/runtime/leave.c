/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of the runtime in a process that runs on (process/detach.c). lbr stops all threads by ptrace(2). A thread
 * that waits in a system call of the application leaves from there. Any other thread gets a nudge, which brings it to
 * the boundary of an instruction (signal.c), where signal_deliver calls leave_now. Each thread gives back its own
 * state, and stops at a breakpoint with the application's registers. Then one of them gives back that of the process.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>
#include <linux/mman.h>

#include "process/runtime/runtime.h"
#include "process/runtime/signal.h"

/* ---- a thread ---- */

/* Signals that the runtime has taken and not delivered go back to the kernel, which keeps them while they are blocked.
 */
static void signals_give_back(struct thread *thread)
{
  struct signal_pending *pending = &thread->pending;

  if (pending->number && !pending->is_fault)
    signal_send(pending->number, &pending->info);
  pending->number = 0;
  for (uint64_t set = thread->kept_set; set; set &= set - 1) {
    unsigned number = (unsigned)__builtin_ctzll(set) + 1;

    signal_send_thread(number, &thread->kept[signal_kept_index(number)]);
  }
  thread->kept_set = 0;
}

static void stack_give_back(const struct thread *thread)
{
  struct signal_stack stack = thread->signal_stack;

  stack.flags = stack.size ? stack.flags & SS_AUTODISARM : SS_DISABLE;
  kernel_call(__NR_sigaltstack, (uint64_t)&stack, 0, 0, 0, 0, 0);
}

/* The answer is in memory of the thread's own, since the page in the shared memory may soon belong to another thread.
 */
static _Noreturn void leave(struct thread *thread, int64_t call)
{
  struct attach_left *left = &thread->left;
  const struct process_state *state = thread->state;

  signal_hold_most();
  signals_give_back(thread);
  memcpy(left->registers, state->registers, sizeof(left->registers));
  if (thread->interrupted) /* not restart_syscall(2), which the signals of the runtime may have disarmed */
    left->registers[GPR_RAX] = thread->interrupted_call;
  left->rip = state->rip;
  left->flags = state->flags;
  left->mask = thread->has_saved_mask ? thread->saved_mask : thread->signal_mask;
  left->call = call;
  stack_give_back(thread);
  if (thread->rseq)
    kernel_call(__NR_rseq, thread->rseq, thread->rseq_size, 0, thread->rseq_signature, 0, 0);
  self_get_name(thread);
  age_leave(thread);
  thread_end(thread, END_LEFT, 0);
  runtime_stop(left);
}

_Noreturn void leave_now(struct thread *thread)
{
  leave(thread, -1);
}

/* The thread has not run since it was attached to. The kernel restarts the system call that it was in, as if it had
 * never been stopped. */
_Noreturn void leave_start(struct thread *thread)
{
  enum { SYSCALL_SIZE = 2 };
  struct process_state *state = thread->state;
  uint32_t reason = thread->interrupted;
  bool is_restarted = reason && reason != EINTR;

  thread_enter(thread);
  kernel_call(__NR_sigaltstack, 0, (uint64_t)&thread->signal_stack, 0, 0, 0, 0);
  thread->rseq = 0; /* it is still registered */
  thread->interrupted = 0;
  if (is_restarted) {
    state->rip += SYSCALL_SIZE;
    state->registers[GPR_RAX] = -(uint64_t)reason;
  }
  leave(thread, is_restarted ? (int64_t)thread->interrupted_call : -1);
}

/* The thread was in syscall_pass, with the registers of the application in its state and RIP after the instruction. If
 * the kernel cannot restart the call by itself, the application executes the instruction again, with this number. */
_Noreturn void leave_call(int64_t result, uint64_t number, uint64_t is_again)
{
  enum { SYSCALL_SIZE = 2 };
  struct thread *thread = thread_self();
  struct process_state *state = thread->state;

  thread->interrupted = 0; /* the call was made again */
  state->registers[GPR_RAX] = is_again ? number : (uint64_t)result;
  state->rip -= is_again ? SYSCALL_SIZE : 0;
  leave(thread, is_again ? -1 : (int64_t)number);
}

/* The recorder cannot go on: if the program was running before, it runs on without the recorder. lbr sees the error,
 * and leaves. */
void leave_or_fail(struct thread *thread, enum process_error error, uint64_t address)
{
  const int64_t time[2] = {0, 1000000};
  struct runtime *runtime = thread->runtime;
  uint32_t none = PROCESS_E_NONE;

  if (!(runtime->options & PROCESS_ATTACHED) || runtime->is_confined)
    runtime_fail(error, 0, address);
  if (__atomic_compare_exchange_n(&runtime->control->error, &none, error, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    runtime->control->address = address;
    runtime->control->error_process = thread->state->process;
  }
  runtime_ring(runtime);
  while (!__atomic_load_n(&thread->wants_leave, __ATOMIC_ACQUIRE))
    kernel_call(__NR_nanosleep, (uint64_t)time, 0, 0, 0, 0, 0);
  leave_now(thread);
}

/* lbr cannot stop a thread that waits for its child of vfork. If lbr is about to leave, the thread leaves first and
 * makes the call natively. lbr may also have given up. */
void leave_before_wait(struct thread *thread)
{
  enum { TRIES = 2000, SYSCALL_SIZE = 2 };
  const int64_t time[2] = {0, 1000000};
  const struct runtime *runtime = thread->runtime;

  if (!(runtime->options & PROCESS_ATTACHED) || runtime->is_confined)
    return;
  for (unsigned i = 0; i < TRIES && __atomic_load_n(&runtime->control->is_closing, __ATOMIC_ACQUIRE); i++) {
    if (__atomic_load_n(&thread->wants_leave, __ATOMIC_ACQUIRE)) {
      thread->state->rip -= SYSCALL_SIZE;
      leave_now(thread);
    }
    kernel_call(__NR_nanosleep, (uint64_t)time, 0, 0, 0, 0, 0);
  }
}

/* ---- the process ---- */

/* lbr lets /proc/self/exe lead to the program again, when the runtime's image is not mapped any more. */
static void exe_tell(const struct runtime *runtime, struct attach_gone *gone)
{
  int64_t fd = kernel_call(__NR_openat, (uint64_t)AT_FDCWD, (uint64_t)runtime->exe, O_RDONLY | O_CLOEXEC, 0, 0, 0);

  gone->has_map = !is_failure(fd);
  gone->map = self_map(runtime, (uint32_t)fd);
}

static void image_tell(const struct runtime *runtime, struct attach_gone *gone)
{
  uint64_t kept = runtime->interpreter, kept_end = (uint64_t)interpreter_place + INTERPRETER_PLACE;

  gone->image[0] = (struct attach_piece){(uint64_t)__executable_start, kept ? kept : page_up((uint64_t)_end)};
  if (kept)
    gone->image[1] = (struct attach_piece){kept_end, page_up((uint64_t)_end)};
}

/* Runs on a stack of the image, because the regions are unmapped. lbr unmaps the image itself. */
_Noreturn void leave_process(void)
{
  static struct attach_gone gone;
  struct runtime *runtime = &the_runtime;
  enum { SET_SIZE = 8 };

  runtime->has_thread = false;
  image_tell(runtime, &gone);
  if (!runtime->is_adopted)
    exe_tell(runtime, &gone);
  page_release_all(runtime);
  for (unsigned number = 1; number < SIGNALS; number++) {
    const struct signal_action *action = &runtime->actions.actions[number];

    if (number == SIGTRAP)
      memcpy(gone.trap_action, action, sizeof(gone.trap_action));
    else if (!(SIGNAL_BIT(number) & SIGNALS_NEVER))
      kernel_call(__NR_rt_sigaction, number, (uint64_t)action, 0, SET_SIZE, 0, 0);
  }
  kernel_call(__NR_close, (uint64_t)runtime->fd, 0, 0, 0, 0, 0);
  cache_unmap(runtime);
  if (thread_regions_end())
    kernel_call(__NR_munmap, PLACE_REGIONS, thread_regions_end() - PLACE_REGIONS, 0, 0, 0, 0);
  kernel_call(__NR_munmap, PLACE_START, place_end() - PLACE_START, 0, 0, 0, 0);
  runtime_stop(&gone);
}
