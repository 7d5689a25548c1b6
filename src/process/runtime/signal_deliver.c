/* SPDX-License-Identifier: Apache-2.0
 *
 * Delivery of signals. It runs on the runtime's stack. The application's registers are in the state and its vector
 * registers in the processor; all signals are blocked that can be (the code that sets state->pending ensures that). The
 * application sees the frame that the kernel would have made. Most of it comes from the kernel's own frame, which was
 * on our signal stack. For the kernel's behaviour see Linux, kernel/signal.c, arch/x86/kernel/signal.c and signal_64.c.
 */
#include <asm/unistd.h>
#include <linux/fcntl.h>

#include "lastbranch/branch.h"
#include "process/runtime/signal.h"

/* A frame as the kernel pushes it. */
struct frame {
  uint64_t restorer;
  struct signal_context context;
  struct signal_info info;
};

/* A signal that is being delivered. */
struct signal {
  unsigned number;
  bool is_fault;
  uint64_t again; /* address of the instruction that will cause it again; 0 if none */
  struct signal_info info;
};

/* ---- contexts ---- */

struct signal_context context_at(void (*address)(void), uint64_t mask)
{
  enum { WITH_SS = 2, WITH_SS_STRICTLY = 4 };

  return (struct signal_context){.flags = WITH_SS | WITH_SS_STRICTLY,
                                 .segments = 0x002B000000000033, /* SS, FS, GS, CS */
                                 .rip = (uint64_t)address,
                                 .rflags = FLAGS_OURS,
                                 .mask = mask};
}

static void use_own_stack(const struct thread *thread, struct signal_context *context)
{
  context->stack =
    (struct signal_stack){.start = (uint64_t)thread->state + REGION_SIGNAL, .size = REGION_SIGNAL_END - REGION_SIGNAL};
}

void context_try_resume(const struct thread *thread, struct signal_context *context)
{
  use_own_stack(thread, context);
  context_restore(context, 0);
}

_Noreturn void context_resume(const struct thread *thread, struct signal_context *context)
{
  use_own_stack(thread, context);
  for (;;)
    context_restore(context, thread->state->pending);
}

bool signal_write(struct thread *thread, uint64_t to, const void *from, size_t size)
{
  if (safe_write(thread, to, from, size))
    return true;
  runtime_lock(thread->runtime);
  bool is_released = page_release_all(thread->runtime);
  runtime_unlock(thread->runtime);
  return is_released && safe_write(thread, to, from, size);
}

/* ---- the log ---- */

/* Logs that the running path ends here. */
static void log_signal(struct thread *thread, unsigned kind, uint64_t to)
{
  struct process_state *state = thread->state;
  unsigned passed = state->resume == thread->place_resume ? thread->place_passed : 0;

  log_event(thread, kind, passed, state->rip, to);
  thread->place_resume = 0;
}

/* INT3 was executed. It is listed as a branch to the next instruction, from which the signal comes. INT1 is not
 * listed. */
static void pass_trap(struct thread *thread)
{
  struct process_state *state = thread->state;
  uint64_t left = PROCESS_PAGE - state->rip % PROCESS_PAGE;
  uint8_t bytes[15];
  size_t size = left < sizeof(bytes) ? left : sizeof(bytes);
  struct code code;

  thread->pending.is_trap = false;
  if (!safe_read(thread, bytes, state->rip, size) || !code_decode(bytes, size, &code))
    return;
  uint64_t next = state->rip + code.length;
  if (thread->pending.info.address == state->rip)
    thread->pending.info.address = next;
  if (code.opcode == 0xCC || code.opcode == 0xCD)
    log_signal(thread, code.opcode == 0xCC ? LB_BRANCH_INT3 : LB_BRANCH_INT, next);
  state->rip = next;
}

/* ---- death ---- */

/* The address of a fault, or the process that has sent the signal: both are at the same place. */
static void stamp_info(struct thread *thread, const struct signal *signal)
{
  const struct signal_info *info = &signal->info;

  stamp_signal(thread, signal->number, info->code, signal->is_fault ? info->address : (uint32_t)info->address);
}

static void record_death(struct thread *thread, const struct signal *signal)
{
  struct process_state *state = thread->state;

  self_get_title(thread);
  state->has_top = safe_read(thread, &state->death_top, state->registers[GPR_RSP], sizeof(state->death_top));
  state->signal_code = signal->info.code;
  state->signal_address = signal->info.address;
  state->death_rip = state->rip;
  state->death_flags = state->flags;
  memcpy(state->death_registers, state->registers, sizeof(state->registers));
  stamp_info(thread, signal);
  log_signal(thread, LB_ENTRY_NOWHERE, 0);
  thread_end(thread, END_SIGNAL, signal->number);
}

/* Lets the kernel end the process, as it would natively. For the core file and for a waiting parent, the signal comes
 * again with the application's registers, before another instruction is executed. If a filter of the application
 * forbids system calls, the instruction is executed again instead: a blocked fault kills the process. */
static _Noreturn void die(struct thread *thread, const struct signal *signal)
{
  const struct process_state *state = thread->state;
  const struct signal_action none = {.handler = HANDLER_DEFAULT};
  bool is_again = signal->again && thread->runtime->is_confined;
  struct signal_context context = context_at(NULL, is_again ? UINT64_MAX : ~SIGNAL_BIT(signal->number));

  record_death(thread, signal);
  hold_wait(thread);
  context_put_registers(&context, state->registers);
  context.rip = is_again ? signal->again : state->rip;
  context.rflags = state->flags & ~(uint64_t)FLAG_TF;
  context.vectors = thread->pending.vector_size ? (uint64_t)thread->pending.vectors : 0;
  if (is_again)
    context_resume(thread, &context);
  signal_hold_all();
  kernel_call(__NR_rt_sigaction, signal->number, (uint64_t)&none, 0, sizeof(none.mask), 0, 0);
  if (!signal_send_thread(signal->number, &signal->info))
    kernel_call(__NR_exit_group, 128 + signal->number, 0, 0, 0, 0, 0);
  context_resume(thread, &context);
}

/* ---- handlers ---- */

bool stack_is_used(const struct signal_stack *stack, uint64_t address)
{
  return !(stack->flags & SS_AUTODISARM) && address > stack->start && address - stack->start <= stack->size;
}

/* Places the frame and, above it, the vector registers. Returns false if the frame would overflow the alternate
 * stack. */
static bool frame_place(const struct thread *thread, const struct signal_action *action, uint64_t *ret_frame,
                        uint64_t *ret_vectors)
{
  enum { RED_ZONE = 128, VECTORS_ALIGNMENT = 64 };
  const struct signal_stack *stack = &thread->signal_stack;
  uint64_t at = thread->state->registers[GPR_RSP] - RED_ZONE;
  bool is_on = stack_is_used(stack, at);

  if (action->flags & SA_ONSTACK && stack->size && !is_on) {
    at = stack->start + stack->size;
    is_on = true;
  }
  *ret_vectors = (at - thread->pending.vector_size) & ~(uint64_t)(VECTORS_ALIGNMENT - 1);
  *ret_frame = ((*ret_vectors - sizeof(struct frame)) & ~15ull) - 8;
  return !is_on || (*ret_frame > stack->start && *ret_frame - stack->start <= stack->size);
}

static void frame_fill(const struct thread *thread, const struct signal *signal, const struct signal_action *action,
                       struct frame *frame)
{
  const struct process_state *state = thread->state;
  struct signal_context *context = &frame->context;

  frame->restorer = action->restorer;
  frame->info = signal->info;
  *context = thread->pending.context;
  context->link = 0;
  context->stack = thread->signal_stack;
  context->mask = context->old_mask = thread->has_saved_mask ? thread->saved_mask : thread->signal_mask;
  context_put_registers(context, state->registers);
  context->rip = state->rip;
  context->rflags = state->flags;
}

/* Writes the frame. Returns false if there is no room, or no restorer. */
static bool frame_push(struct thread *thread, const struct signal *signal, const struct signal_action *action,
                       uint64_t *ret_frame)
{
  const struct signal_pending *pending = &thread->pending;
  struct frame frame;
  uint64_t vectors;
  size_t size = action->flags & SA_SIGINFO ? sizeof(frame) : offsetof(struct frame, info);

  if (!(action->flags & SA_RESTORER) || !frame_place(thread, action, ret_frame, &vectors))
    return false;
  frame_fill(thread, signal, action, &frame);
  frame.context.vectors = pending->vector_size ? vectors : 0;
  return signal_write(thread, vectors, pending->vectors, pending->vector_size) &&
         signal_write(thread, *ret_frame, &frame, size);
}

static void mask_for_handler(struct thread *thread, const struct signal *signal, const struct signal_action *action)
{
  thread->signal_mask |= action->mask;
  if (!(action->flags & SA_NODEFER))
    thread->signal_mask |= SIGNAL_BIT(signal->number);
  thread->signal_mask &= ~SIGNALS_NEVER;
  thread->has_saved_mask = false;
  if (thread->signal_stack.flags & SS_AUTODISARM)
    thread->signal_stack = (struct signal_stack){.flags = SS_DISABLE};
}

/* Enters the handler, with vector registers as at the start of a program. */
static _Noreturn void handler_enter(struct thread *thread, const struct signal *signal,
                                    const struct signal_action *action, uint64_t frame)
{
  struct process_state *state = thread->state;

  stamp_info(thread, signal);
  log_signal(thread, LB_BRANCH_INTERRUPT, action->handler);
  age_leave(thread);
  mask_for_handler(thread, signal, action);
  state->registers[GPR_RAX] = 0;
  state->registers[GPR_RDI] = signal->number;
  state->registers[GPR_RSI] = frame + offsetof(struct frame, info);
  state->registers[GPR_RDX] = frame + offsetof(struct frame, context);
  state->registers[GPR_RSP] = frame;
  state->rip = action->handler;
  state->flags &= ~(uint64_t)(FLAG_DF | FLAG_TF | FLAG_RF);
  thread->pending.vector_size = 0;
  state->pending = signal_is_ready(thread) || thread->wants_leave;
  struct signal_context context = context_at((void (*)(void))dispatch_enter, signal_real_mask(thread));
  context_resume(thread, &context);
}

/* ---- one signal ---- */

/* The application's action, which is reset if it was for one signal only. */
static struct signal_action action_take(struct thread *thread, unsigned number)
{
  struct signal_action *action = &thread->actions->actions[number];

  runtime_lock(thread->runtime);
  struct signal_action taken = *action;
  if (taken.handler > HANDLER_IGNORE && taken.flags & SA_RESETHAND) {
    action->handler = HANDLER_DEFAULT;
    if (signal_default(number) != DEFAULT_END) /* otherwise the kernel's setting stays the same */
      signal_install(number, action);
  }
  runtime_unlock(thread->runtime);
  return taken;
}

/* Handles a write to a page that is protected because it holds translated code: the instruction is executed again, in a
 * unit of its own. */
static bool is_code_write(struct thread *thread, const struct signal *signal)
{
  enum { ERROR_WRITE = 2 };
  struct process_state *state = thread->state;
  bool is_write = signal->is_fault && signal->number == SIGSEGV && signal->info.code == CODE_ACCESS &&
                  thread->pending.context.error & ERROR_WRITE;

  if (!is_write || !page_write_fault(thread, signal->info.address, state->rip))
    return false;
  log_signal(thread, LB_ENTRY_NOWHERE, 0);
  dispatch_to(thread);
  return true;
}

/* Returns true if the signal was given back to the kernel: it is blocked meanwhile, or it only stops the process. */
static bool give_back(const struct thread *thread, const struct signal *signal, const struct signal_action *action)
{
  bool is_blocked = thread->signal_mask & SIGNAL_BIT(signal->number);
  bool is_stop = action->handler == HANDLER_DEFAULT && signal_default(signal->number) == DEFAULT_STOP;

  return !signal->is_fault && (is_blocked || is_stop) && signal_send(signal->number, &signal->info);
}

static bool is_ignored(const struct signal *signal, const struct signal_action *action)
{
  return action->handler == HANDLER_IGNORE ||
         (action->handler == HANDLER_DEFAULT && signal_default(signal->number) != DEFAULT_END);
}

/* The thread was in a system call when lbr attached to it, and would execute it again. A handler that the kernel would
 * have called then ends the call, unless the kernel would restart it: signal(7). */
static void call_interrupt(struct thread *thread, const struct signal_action *action)
{
  enum { RESTART_SYS = 512, RESTART_NO_INTERRUPT = 513, SYSCALL_SIZE = 2 };
  struct process_state *state = thread->state;
  uint32_t reason = thread->interrupted;

  thread->interrupted = 0;
  if (!reason || reason == RESTART_NO_INTERRUPT || (reason == RESTART_SYS && action->flags & SA_RESTART))
    return;
  state->rip += SYSCALL_SIZE;
  state->registers[GPR_RAX] = (uint64_t)-EINTR;
}

/* Returns if the signal has no effect. If its frame cannot be written, that is a fault in turn. */
static void deliver(struct thread *thread, struct signal *signal)
{
  for (;;) {
    uint64_t frame;
    bool is_blocked = thread->signal_mask & SIGNAL_BIT(signal->number);
    struct signal_action action = action_take(thread, signal->number);

    if (signal->is_fault && (is_blocked || action.handler == HANDLER_IGNORE))
      die(thread, signal);
    if (give_back(thread, signal, &action) || is_ignored(signal, &action))
      return;
    if (action.handler == HANDLER_DEFAULT)
      die(thread, signal);
    call_interrupt(thread, &action);
    if (frame_push(thread, signal, &action, &frame))
      handler_enter(thread, signal, &action, frame);
    bool is_last = signal->number == SIGSEGV;
    *signal = (struct signal){SIGSEGV, true, 0, {.number = SIGSEGV, .code = CODE_KERNEL}};
    if (is_last)
      die(thread, signal);
  }
}

/* ---- all ---- */

/* Takes the next signal that is pending and not blocked, in the kernel's order: a fault, then the other synchronous
 * signals, then the rest. */
static bool take(struct thread *thread, struct signal *ret_signal)
{
  struct signal_pending *pending = &thread->pending;
  uint64_t ready = thread->kept_set & ~thread->signal_mask;

  if (pending->number && (pending->is_fault || !ready)) {
    *ret_signal = (struct signal){pending->number, pending->is_fault, 0, pending->info};
    pending->number = 0;
    return true;
  }
  if (!ready)
    return false;
  unsigned number = (unsigned)__builtin_ctzll(ready) + 1;
  *ret_signal = (struct signal){number, false, 0, thread->kept[signal_kept_index(number)]};
  __atomic_fetch_and(&thread->kept_set, ~SIGNAL_BIT(number), __ATOMIC_RELAXED);
  return true;
}

/* Completes the siginfo of special faults. */
static void signal_complete(struct thread *thread, struct signal *signal, uint64_t rip)
{
  if (signal->number == SIGSYS && signal->info.code == CODE_SECCOMP)
    signal->info.address = thread->state->rip; /* after the system call */
  else if (signal->is_fault && (signal->number != SIGTRAP || signal->info.code != CODE_TRACE))
    signal->again = rip;
}

/* Nothing was delivered: the application continues with its mask. This does part of the work of rt_sigreturn, and saves
 * a system call. */
static void go_on(struct thread *thread)
{
  struct signal_pending *pending = &thread->pending;

  if (thread->has_saved_mask)
    thread->signal_mask = thread->saved_mask;
  thread->has_saved_mask = false;
  if (!pending->vector_size) {
    signal_set_mask(thread, thread->signal_mask);
    return;
  }
  struct signal_context context = context_at((void (*)(void))cache_enter, signal_real_mask(thread));
  context.vectors = (uint64_t)pending->vectors;
  context_resume(thread, &context);
}

/* If the age in which the thread would continue is over, it continues in the new one. */
static void change_age(struct thread *thread)
{
  const struct process_state *state = thread->state;
  uint64_t place = state->resume == (uint64_t)native_enter ? state->native : state->resume;

  if (!age_is_over(thread) || !cache_has(thread->runtime, place))
    return;
  log_signal(thread, LB_ENTRY_NOWHERE, 0);
  dispatch_to(thread);
}

/* The thread leaves at state->rip. Signals that have arrived are delivered before: given back to the kernel, they would
 * come after those that are still there. */
static void leave_if_wanted(struct thread *thread)
{
  if (!thread->wants_leave)
    return;
  log_signal(thread, LB_ENTRY_NOWHERE, 0);
  leave_now(thread);
}

void signal_deliver(void)
{
  struct thread *thread = thread_self();
  struct process_state *state = thread->state;
  uint64_t rip = state->rip;
  struct signal signal;

  state->pending = 0;
  if (thread->pending.number && thread->pending.is_fault && thread->pending.is_trap)
    pass_trap(thread);
  while (take(thread, &signal)) {
    signal_complete(thread, &signal, rip);
    if (!is_code_write(thread, &signal))
      deliver(thread, &signal);
  }
  leave_if_wanted(thread);
  change_age(thread);
  go_on(thread);
}
