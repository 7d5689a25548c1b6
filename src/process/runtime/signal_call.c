/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls about signals. The application's settings are kept and answered here; the kernel has the settings
 * that the runtime needs. The rules of each call are those of Linux, kernel/signal.c.
 */
#include <asm/unistd.h>

#include "lastbranch/branch.h"
#include "process/runtime/signal.h"

enum { SET_SIZE = 8 };

/* ---- the kernel's side ---- */

static int64_t kernel_mask(uint64_t mask, uint64_t *ret_before)
{
  enum { SETMASK = 2 };

  return kernel_call(__NR_rt_sigprocmask, SETMASK, (uint64_t)&mask, (uint64_t)ret_before, SET_SIZE, 0, 0);
}

void signal_hold_all(void)
{
  kernel_mask(UINT64_MAX, NULL);
}

void signal_hold_most(void)
{
  kernel_mask(~SIGNAL_BIT(SIGTRAP), NULL);
}

bool signal_is_ready(const struct thread *thread)
{
  return thread->pending.number || thread->kept_set & ~thread->signal_mask;
}

uint64_t signal_real_mask(const struct thread *thread)
{
  return signal_is_ready(thread) ? ~SIGNALS_FAULT : thread->signal_mask & ~SIGNALS_FAULT;
}

unsigned signal_kept_index(unsigned number)
{
  static const uint8_t kept[SIGNALS_KEPT] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
  unsigned i = 0;

  while (kept[i] != number)
    i++;
  return i;
}

static uint64_t own_process(void)
{
  return (uint64_t)kernel_call(__NR_getpid, 0, 0, 0, 0, 0, 0);
}

static uint64_t own_thread(void)
{
  return (uint64_t)kernel_call(__NR_gettid, 0, 0, 0, 0, 0, 0);
}

bool signal_send_thread(unsigned number, const struct signal_info *info)
{
  return !is_failure(kernel_call(__NR_rt_tgsigqueueinfo, own_process(), own_thread(), number, (uint64_t)info, 0, 0));
}

/* A thread may send itself any siginfo. The kernel accepts the caller's thread number in place of its process
 * number. */
bool signal_send(unsigned number, const struct signal_info *info)
{
  if (info->code != CODE_USER && info->code != CODE_KERNEL)
    return signal_send_thread(number, info);
  return !is_failure(kernel_call(__NR_rt_sigqueueinfo, own_thread(), number, (uint64_t)info, 0, 0, 0));
}

/* Signals that end the process by default have our handler, so that the place is recorded. For signals that are ignored
 * or that stop the process, the kernel's own action stays. */
static struct signal_action action_real(unsigned number, const struct signal_action *action)
{
  bool is_fault = SIGNAL_BIT(number) & SIGNALS_FAULT;
  bool is_handled = action->handler > HANDLER_IGNORE;
  bool ends = action->handler == HANDLER_DEFAULT && signal_default(number) == DEFAULT_END;
  struct signal_action real = {.handler = action->handler,
                               .flags = action->flags & (SA_RESTART | SA_NOCLDSTOP | SA_NOCLDWAIT)};

  if (is_fault || is_handled || ends) {
    real.handler = (uint64_t)signal_enter;
    real.restorer = (uint64_t)signal_restore;
    real.flags |= SA_SIGINFO | SA_ONSTACK | SA_RESTORER;
    real.mask = UINT64_MAX;
  }
  return real;
}

void signal_install(unsigned number, const struct signal_action *action)
{
  const struct signal_action real = action_real(number, action);

  kernel_call(__NR_rt_sigaction, number, (uint64_t)&real, 0, SET_SIZE, 0, 0);
}

/* Kept signals that are no longer blocked are sent through the kernel again, to get a frame with the vector
 * registers. */
static void send_kept(struct thread *thread)
{
  uint64_t ready = thread->kept_set & ~thread->signal_mask;

  if (!ready)
    return;
  signal_hold_all();
  for (; ready; ready &= ready - 1) {
    unsigned number = (unsigned)__builtin_ctzll(ready) + 1;

    thread->kept_set &= ~SIGNAL_BIT(number);
    signal_send_thread(number, &thread->kept[signal_kept_index(number)]);
  }
}

void signal_set_mask(struct thread *thread, uint64_t mask)
{
  thread->signal_mask = mask & ~SIGNALS_NEVER;
  send_kept(thread);
  kernel_mask(signal_real_mask(thread), NULL);
}

/* ---- the start ---- */

void signal_init_thread(struct thread *thread)
{
  const struct signal_stack stack = {.start = (uint64_t)thread->state + REGION_SIGNAL,
                                     .size = REGION_SIGNAL_END - REGION_SIGNAL};

  kernel_call(__NR_sigaltstack, (uint64_t)&stack, 0, 0, 0, 0, 0);
  thread->pending.number = 0;
  thread->kept_set = 0;
  thread->is_stepping = false;
  thread->has_saved_mask = false;
  thread->state->pending = 0;
  kernel_mask(signal_real_mask(thread), NULL);
}

static bool can_change(unsigned number)
{
  return !(SIGNAL_BIT(number) & SIGNALS_NEVER);
}

/* Installs our handler for each signal that needs it, unless the program starts with the signal ignored. To learn that,
 * the function installs the handler first, with all signals blocked, and then restores SIG_IGN: the kernel drops a
 * signal that arrived in between. A signal whose action stays the kernel's needs nothing. */
void signal_init(struct runtime *runtime, struct thread *thread)
{
  thread->actions = &runtime->actions;
  kernel_mask(UINT64_MAX, &thread->signal_mask);
  for (unsigned number = 1; number < SIGNALS; number++) {
    struct signal_action *action = &thread->actions->actions[number], before = {0};
    const struct signal_action real = action_real(number, action);
    bool is_ours = real.handler == (uint64_t)signal_enter;

    if (!can_change(number))
      continue;
    kernel_call(__NR_rt_sigaction, number, is_ours ? (uint64_t)&real : 0, (uint64_t)&before, SET_SIZE, 0, 0);
    if (before.handler != HANDLER_IGNORE)
      continue;
    action->handler = HANDLER_IGNORE;
    signal_install(number, action);
  }
  signal_init_thread(thread);
}

/* Signals are blocked in all threads, so that the order does not matter. */
void signal_adopt(struct runtime *runtime)
{
  for (unsigned number = 1; number < SIGNALS; number++) {
    struct signal_action *action = &runtime->actions.actions[number];

    if (!can_change(number))
      continue;
    kernel_call(__NR_rt_sigaction, number, 0, (uint64_t)action, SET_SIZE, 0, 0);
    signal_install(number, action);
  }
}

void signal_clear_actions(struct thread *thread)
{
  for (unsigned number = 1; number < SIGNALS; number++) {
    struct signal_action *action = &thread->actions->actions[number];

    if (!can_change(number))
      continue;
    if (action->handler != HANDLER_IGNORE)
      *action = (struct signal_action){0};
    signal_install(number, action);
  }
}

/* Gives the kernel the settings that it does not have: ignored faults, and the mask with them in it. */
void signal_exec_begin(struct thread *thread)
{
  signal_hold_all();
  for (unsigned number = 1; number < SIGNALS; number++) {
    uint64_t bit = SIGNAL_BIT(number);

    if (bit & SIGNALS_FAULT && thread->actions->actions[number].handler == HANDLER_IGNORE)
      kernel_call(__NR_rt_sigaction, number, (uint64_t)&thread->actions->actions[number], 0, SET_SIZE, 0, 0);
    if (bit & thread->kept_set)
      signal_send_thread(number, &thread->kept[signal_kept_index(number)]);
  }
  if (!thread->pending.number)
    kernel_mask(thread->signal_mask, NULL);
}

void signal_exec_undo(struct thread *thread)
{
  thread->kept_set = 0; /* they will arrive again */
  for (unsigned number = 1; number < SIGNALS; number++)
    if (SIGNAL_BIT(number) & SIGNALS_FAULT)
      signal_install(number, &thread->actions->actions[number]);
  signal_set_mask(thread, thread->signal_mask);
}

/* ---- rt_sigaction ---- */

/* As in the kernel, unknown flags are dropped. */
static void action_set(struct thread *thread, unsigned number, const struct signal_action *action)
{
  enum { EXPOSE_TAGBITS = 0x800 };
  struct signal_action *kept = &thread->actions->actions[number];

  *kept = *action;
  kept->flags &= SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | EXPOSE_TAGBITS | SA_RESTORER | SA_ONSTACK | SA_RESTART |
                 SA_NODEFER | SA_RESETHAND;
  kept->mask &= ~SIGNALS_NEVER;
  if (kept->handler == HANDLER_IGNORE)
    __atomic_fetch_and(&thread->kept_set, ~SIGNAL_BIT(number), __ATOMIC_RELAXED);
  signal_install(number, kept);
}

int64_t signal_call_action(struct thread *thread, const uint64_t argument[6])
{
  uint32_t number = (uint32_t)argument[0];
  struct signal_action action, before;

  if (argument[3] != SET_SIZE)
    return -EINVAL;
  if (argument[1] && !safe_read(thread, &action, argument[1], sizeof(action)))
    return -EFAULT;
  if (number < 1 || number >= SIGNALS || (argument[1] && !can_change(number)))
    return -EINVAL;
  runtime_lock(thread->runtime);
  before = thread->actions->actions[number];
  if (argument[1])
    action_set(thread, number, &action);
  runtime_unlock(thread->runtime);
  if (argument[2] && !signal_write(thread, argument[2], &before, sizeof(before)))
    return -EFAULT;
  return 0;
}

/* ---- masks ---- */

int64_t signal_call_mask(struct thread *thread, const uint64_t argument[6])
{
  enum { BLOCK, UNBLOCK, SETMASK };
  uint64_t before = thread->signal_mask, mask;
  uint32_t how = (uint32_t)argument[0];

  if (argument[3] != SET_SIZE)
    return -EINVAL;
  if (argument[1]) {
    if (!safe_read(thread, &mask, argument[1], sizeof(mask)))
      return -EFAULT;
    if (how > SETMASK)
      return -EINVAL;
    mask = how == BLOCK ? before | mask : how == UNBLOCK ? before & ~mask : mask;
    signal_set_mask(thread, mask);
  }
  if (argument[2] && !signal_write(thread, argument[2], &before, sizeof(before)))
    return -EFAULT;
  return 0;
}

int64_t signal_call_pending(struct thread *thread, const uint64_t argument[6])
{
  uint64_t set = 0;

  if (argument[1] > SET_SIZE)
    return -EINVAL;
  kernel_call(__NR_rt_sigpending, (uint64_t)&set, SET_SIZE, 0, 0, 0, 0);
  set = (set | thread->kept_set) & thread->signal_mask;
  return signal_write(thread, argument[0], &set, argument[1]) ? 0 : -EFAULT;
}

/* The kernel waits with another mask. If a signal ends the wait, its handler runs under the new mask and returns to the
 * old one. `copy` holds the address of our copy of the mask. */
static int64_t wait_masked(struct thread *thread, uint64_t number, const uint64_t copy[6], uint64_t mask)
{
  thread->saved_mask = thread->signal_mask;
  thread->has_saved_mask = true;
  thread->signal_mask = mask & ~SIGNALS_NEVER;
  bool has_kept = thread->kept_set & ~mask;
  if (has_kept)
    signal_set_mask(thread, mask); /* so that the signal is delivered now */
  int64_t result = has_kept ? -EINTR : syscall_pass(number, copy);
  if (result != -EINTR || !thread->state->pending) {
    thread->signal_mask = thread->saved_mask;
    thread->has_saved_mask = false;
  }
  return result;
}

int64_t signal_call_suspend(struct thread *thread, const uint64_t argument[6])
{
  uint64_t mask, real;

  if (argument[1] != SET_SIZE)
    return -EINVAL;
  if (!safe_read(thread, &mask, argument[0], sizeof(mask)))
    return -EFAULT;
  real = mask & ~SIGNALS_FAULT;
  const uint64_t copy[6] = {(uint64_t)&real, SET_SIZE};
  return wait_masked(thread, __NR_rt_sigsuspend, copy, mask);
}

/* Invalid arguments are left to the kernel to report. */
int64_t signal_call_masked(struct thread *thread, uint64_t number, const uint64_t argument[6])
{
  bool is_pair = number == __NR_pselect6 || number == __NR_io_pgetevents;
  unsigned at = is_pair ? 5 : number == __NR_ppoll ? 3 : 4;
  uint64_t pair[2], mask, copy[6];

  memcpy(copy, argument, sizeof(copy));
  if (is_pair) {
    if (!argument[at] || !safe_read(thread, pair, argument[at], sizeof(pair)))
      return syscall_pass(number, argument);
  } else {
    pair[0] = argument[at];
    pair[1] = argument[at + 1];
  }
  if (!pair[0] || pair[1] != SET_SIZE || !safe_read(thread, &mask, pair[0], sizeof(mask)))
    return syscall_pass(number, argument);
  uint64_t real = mask & ~SIGNALS_FAULT;
  pair[0] = (uint64_t)&real;
  copy[at] = is_pair ? (uint64_t)pair : pair[0];
  return wait_masked(thread, number, copy, mask);
}

int64_t signal_call_wait(struct thread *thread, const uint64_t argument[6])
{
  uint64_t set;
  bool is_good = argument[3] == SET_SIZE && safe_read(thread, &set, argument[0], sizeof(set));

  if (!is_good || !(thread->kept_set & set))
    return syscall_pass(__NR_rt_sigtimedwait, argument);
  unsigned number = (unsigned)__builtin_ctzll(thread->kept_set & set) + 1;
  struct signal_info info = thread->kept[signal_kept_index(number)];
  if (argument[1] && !signal_write(thread, argument[1], &info, sizeof(info)))
    return -EFAULT;
  __atomic_fetch_and(&thread->kept_set, ~SIGNAL_BIT(number), __ATOMIC_RELAXED);
  return number;
}

/* ---- sigaltstack ---- */

/* `stack` is RSP: a stack cannot be changed while it is in use. */
static int64_t stack_set(struct thread *thread, const struct signal_stack *wanted, uint64_t stack)
{
  enum { LEAST = 2048 };
  uint32_t mode = wanted->flags & ~(uint32_t)SS_AUTODISARM;

  if (stack_is_used(&thread->signal_stack, stack))
    return -EPERM;
  if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
    return -EINVAL;
  if (mode != SS_DISABLE && wanted->size < LEAST)
    return -ENOMEM;
  thread->signal_stack = (struct signal_stack){.flags = wanted->flags};
  if (mode != SS_DISABLE) {
    thread->signal_stack.start = wanted->start;
    thread->signal_stack.size = wanted->size;
  }
  return 0;
}

int64_t signal_call_stack(struct thread *thread, const uint64_t argument[6])
{
  uint64_t stack = thread->state->registers[GPR_RSP];
  struct signal_stack before = thread->signal_stack, wanted;
  uint32_t use = !before.size ? SS_DISABLE : stack_is_used(&before, stack) ? SS_ONSTACK : 0;

  before.flags = use | (before.flags & SS_AUTODISARM);
  before.unused = 0;
  if (argument[0]) {
    if (!safe_read(thread, &wanted, argument[0], sizeof(wanted)))
      return -EFAULT;
    int64_t result = stack_set(thread, &wanted, stack);
    if (result)
      return result;
  }
  if (argument[1] && !signal_write(thread, argument[1], &before, sizeof(before)))
    return -EFAULT;
  return 0;
}

/* ---- rt_sigreturn ---- */

static void log_return(struct thread *thread)
{
  const struct lb_step *steps = thread->runtime->steps;
  uint32_t number = (uint32_t)thread->state->exit;
  uint32_t head = steps[number].head;

  log_event(thread, LB_BRANCH_IRET, number - head - 1, steps[number].from, thread->state->rip);
}

/* Restores the application's registers except the vector registers. */
static void registers_restore(struct thread *thread, const struct signal_context *context)
{
  static const uint64_t changeable = 0x50DD5; /* AC, RF, OF, DF, TF, SF, ZF, AF, PF, CF */
  struct process_state *state = thread->state;

  context_get_registers(context, state->registers);
  state->rip = context->rip;
  state->flags = (state->flags & ~changeable) | (context->rflags & changeable);
  thread->signal_mask = context->mask & ~SIGNALS_NEVER;
  stack_set(thread, &context->stack, state->registers[GPR_RSP]);
}

/* The kernel restores the vector registers from the application's frame and continues in the runtime. A signal that
 * arrived meanwhile has the old vector registers in its frame: it is sent again. If the frame is bad, an invalid
 * address for the vectors makes the kernel find it bad, too. No other system call is made, because a filter of the
 * application may forbid them. */
_Noreturn void signal_call_return(struct thread *thread)
{
  struct signal_context frame, context;
  struct signal_pending *pending = &thread->pending;
  bool is_good = safe_read(thread, &frame, thread->state->registers[GPR_RSP], sizeof(frame));

  if (is_good)
    registers_restore(thread, &frame);
  log_return(thread);
  for (;;) {
    thread->state->pending = 0;
    if (pending->number && signal_send(pending->number, &pending->info))
      pending->number = 0;
    send_kept(thread);
    thread->state->pending |= signal_is_ready(thread) || thread->wants_leave;
    context = context_at((void (*)(void))dispatch_enter, signal_real_mask(thread));
    context.vectors = is_good ? frame.vectors : 1;
    if (pending->number || thread->wants_leave) /* it could not be sent again */
      context_resume(thread, &context);
    context_try_resume(thread, &context);
  }
}
