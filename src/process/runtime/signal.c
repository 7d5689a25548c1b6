/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrival of a signal, on the thread's signal stack with all signals blocked. The handling depends on where the thread
 * was: in the cache at an instruction of the application, in the middle of one, in the runtime, or where the
 * application runs outside of the cache. Nothing here may fault, wait for the lock, or touch memory of the application.
 */
#include "process/runtime/signal.h"

/* A signal and the frame that the kernel made for it. */
struct arrival {
  struct thread *thread;
  struct process_state *state;
  unsigned number;
  const struct signal_info *info;
  struct signal_context *context;
  uint64_t pc;
  bool is_in_cache, is_in_runtime;
};

/* ---- frames ---- */

static const uint8_t register_order[16] = {8, 9, 10, 11, 12, 13, 14, 15, 7, 6, 5, 3, 2, 0, 1, 4};

void context_put_registers(struct signal_context *context, const uint64_t registers[16])
{
  for (unsigned i = 0; i < 16; i++)
    context->general[i] = registers[register_order[i]];
}

void context_get_registers(const struct signal_context *context, uint64_t registers[16])
{
  for (unsigned i = 0; i < 16; i++)
    registers[register_order[i]] = context->general[i];
}

/* Size of the vector registers in the kernel's frame: the 512 bytes of FXSAVE, of which the last 48 tell how much
 * follows. */
static uint32_t vector_size(uint64_t vectors)
{
  enum { LEGACY = 512, NOTE = 464, MAGIC = 0x46505853 };
  const uint32_t *note = (const uint32_t *)(vectors + NOTE);

  if (!vectors)
    return 0;
  return note[0] == MAGIC ? note[1] : LEGACY;
}

/* Copies from the frame, which will be lost, what delivery needs. */
static void keep_context(const struct arrival *arrival)
{
  struct signal_pending *pending = &arrival->thread->pending;

  pending->context = *arrival->context;
  pending->vector_size = vector_size(arrival->context->vectors);
  if (pending->vector_size > SIGNAL_VECTORS_MOST)
    runtime_fail(PROCESS_E_NO_MEMORY, 0, arrival->pc);
  memcpy(pending->vectors, (const void *)arrival->context->vectors, pending->vector_size);
}

/* ---- places ---- */

static bool is_between(uint64_t pc, uint64_t start, const uint8_t *end)
{
  return pc - start < (uint64_t)end - start;
}

static bool is_entering(const struct arrival *arrival)
{
  return is_between(arrival->pc, (uint64_t)cache_enter, cache_enter_end);
}

static _Noreturn void own_fault(const struct arrival *arrival)
{
  arrival->thread->runtime->control->number = arrival->number;
  runtime_fail(PROCESS_E_OWN_FAULT, 0, arrival->pc);
}

/* Puts the registers that the cache has borrowed at this place back into the context. */
static void context_unspill(const struct arrival *arrival, unsigned spilled)
{
  enum { R11 = 3, RDI = 8, RSI = 9, RBX = 11, RDX = 12, RCX = 14 };
  struct process_state *state = arrival->state;
  uint64_t *general = arrival->context->general;

  if (spilled & PLACE_R11) {
    state->log = general[R11];
    general[R11] = state->registers[GPR_R11];
  }
  if (spilled & PLACE_RCX)
    general[RCX] = state->spill_rcx;
  if (spilled & PLACE_RDX)
    general[RDX] = state->spill_rdx;
  if (spilled & PLACE_RSI)
    general[RSI] = state->spill;
  if (spilled & PLACE_RDI)
    general[RDI] = state->spill;
  if (spilled & PLACE_RBX)
    general[RBX] = state->spill;
}

/* The context, with borrowed registers put back, is that of the application at this address. It moves into the state,
 * and pending signals are delivered there. If none is to be delivered, the thread continues where it was. */
static void take_over(const struct arrival *arrival, const struct location *location)
{
  struct process_state *state = arrival->state;
  struct signal_context *context = arrival->context;
  uint64_t address = location->address;
  unsigned passed = location->passed;

  context_unspill(arrival, location->spilled);
  keep_context(arrival);
  context_get_registers(context, state->registers);
  state->flags = context->rflags;
  state->rip = address;
  state->native = arrival->pc;
  state->resume = location->spilled & PLACE_R11 ? arrival->pc : (uint64_t)native_enter;
  arrival->thread->place_resume = state->resume;
  arrival->thread->place_passed = passed;
  state->pending = 1;
  context->rip = (uint64_t)cache_enter;
  context->rflags = FLAGS_OURS;
  context->mask = ~SIGNALS_FAULT;
}

/* Delivers later, before the application continues. A system call that was not made yet, or that the kernel wants to
 * restart, is executed again by the application. */
static void wait_in_runtime(const struct arrival *arrival)
{
  struct signal_context *context = arrival->context;

  keep_context(arrival);
  arrival->state->pending = 1;
  context->mask = ~SIGNALS_FAULT;
  if (is_entering(arrival)) {
    arrival->state->flags |= context->rflags & FLAG_TF;
    context->rflags = FLAGS_OURS;
    context->rip = (uint64_t)cache_enter;
  } else if (is_between(arrival->pc, (uint64_t)syscall_pass_start, syscall_pass_call + 1)) {
    bool is_made = arrival->pc == (uint64_t)syscall_pass_call && context->general[14] == (uint64_t)syscall_pass_back;

    arrival->thread->is_unmade = !is_made;
    context->rip = (uint64_t)syscall_pass_abort;
  } else if (is_between(arrival->pc, (uint64_t)context_restore_start, context_restore_call + 1)) {
    context->rip = (uint64_t)context_restore_abort;
  }
}

/* In the middle of an instruction: single-steps to its end. */
static void step_begin(const struct arrival *arrival)
{
  struct signal_context *context = arrival->context;

  arrival->thread->is_stepping = true;
  arrival->thread->owns_trap_flag = context->rflags & FLAG_TF;
  context->rflags |= FLAG_TF;
  context->mask = ~SIGNALS_FAULT;
}

static void step_end(const struct arrival *arrival)
{
  arrival->thread->is_stepping = false;
  if (!arrival->thread->owns_trap_flag)
    arrival->context->rflags &= ~(uint64_t)FLAG_TF;
}

/* Delivers pending signals as soon as possible. */
static void deliver_soon(const struct arrival *arrival)
{
  struct location location;

  if (arrival->is_in_runtime)
    wait_in_runtime(arrival);
  else if (!arrival->is_in_cache)
    take_over(arrival, &(struct location){.address = arrival->pc});
  else if (cache_locate(arrival->thread->runtime, arrival->pc, &location) && location.is_boundary)
    take_over(arrival, &location);
  else
    step_begin(arrival);
}

/* ---- faults ---- */

/* A fault is delivered first: another pending signal is sent again. For ILL, FPE and TRAP the siginfo holds the address
 * of the instruction. */
static void keep_fault(const struct arrival *arrival, uint64_t address)
{
  struct signal_pending *pending = &arrival->thread->pending;

  if (pending->number)
    signal_send(pending->number, &pending->info);
  pending->number = arrival->number;
  pending->is_fault = true;
  pending->info = *arrival->info;
  if (pending->info.address == arrival->pc)
    pending->info.address = address;
}

/* Whether RIP is past the instruction already: INT3, INT 3 and INT1. Under a hypervisor this is not always true for
 * INT1. */
static bool is_behind(const struct arrival *arrival)
{
  const uint8_t *code = (const uint8_t *)arrival->pc;

  return arrival->number == SIGTRAP && (code[-1] == 0xCC || code[-1] == 0xF1 || (code[-1] == 3 && code[-2] == 0xCD));
}

/* A fault of the application's instruction, before any of its effects. If another signal was being single-stepped to
 * the end of the instruction, it is delivered here, and the fault will come again. */
static void fault_in_cache(const struct arrival *arrival)
{
  bool is_trap = is_behind(arrival);
  struct location location;

  if (!cache_locate(arrival->thread->runtime, arrival->pc - is_trap, &location) || location.is_stub)
    own_fault(arrival);
  if (arrival->thread->is_stepping) {
    step_end(arrival);
  } else {
    keep_fault(arrival, location.address);
    arrival->thread->pending.is_trap = is_trap;
  }
  take_over(arrival, &location);
}

/* A fault in the runtime. It is expected in three places: where `recover` is set; where the application jumps to a
 * non-canonical address; and where rt_sigreturn rejects the application's frame, with the new registers in the
 * state. */
static void fault_in_runtime(const struct arrival *arrival)
{
  struct thread *thread = arrival->thread;

  if (thread->recover) {
    arrival->context->rip = thread->recover;
    arrival->context->general[15] = thread->recover_stack;
    thread->recover = 0;
  } else if (is_entering(arrival) || arrival->pc == (uint64_t)dispatch_enter) {
    keep_fault(arrival, arrival->state->rip);
    wait_in_runtime(arrival);
  } else {
    own_fault(arrival);
  }
}

/* A system call that the application's filter rejects (SIGSYS) is treated as a fault after the call. */
static void arrived_fault(const struct arrival *arrival)
{
  arrival->thread->pending.is_trap = false;
  if (arrival->number == SIGSYS) {
    keep_fault(arrival, arrival->pc);
    deliver_soon(arrival);
  } else if (arrival->is_in_cache) {
    fault_in_cache(arrival);
  } else if (arrival->is_in_runtime) {
    fault_in_runtime(arrival);
  } else {
    keep_fault(arrival, arrival->pc);
    take_over(arrival, &(struct location){.address = arrival->pc});
  }
}

/* ---- single steps ---- */

/* The application single-steps itself. In the runtime TF is off once the application's TF has been saved. The trap is
 * delivered where one of the application's instructions ends; the point of entry from the runtime is not such a
 * place. */
static void arrived_trap(const struct arrival *arrival)
{
  struct thread *thread = arrival->thread;
  struct process_state *state = arrival->state;
  struct location location = {.address = arrival->pc};

  if (arrival->is_in_runtime) {
    if (is_entering(arrival)) {
      thread->trap_rip = state->rip;
      thread->trap_log = state->log;
      state->flags &= ~(uint64_t)FLAG_TF;
    } else if (state->flags & FLAG_TF) {
      arrival->context->rflags &= ~(uint64_t)FLAG_TF;
    }
    return;
  }
  bool is_boundary =
    !arrival->is_in_cache || (cache_locate(thread->runtime, arrival->pc, &location) && location.is_boundary);
  uint64_t log = location.spilled & PLACE_R11 ? arrival->context->general[3] : state->log;
  if (is_boundary && location.address == thread->trap_rip && log == thread->trap_log && !location.passed)
    return;
  if (!is_boundary && arrival->context->rflags & FLAG_TF)
    return; /* it will trap again */
  keep_fault(arrival, location.address);
  thread->pending.is_trap = false;
  if (is_boundary)
    take_over(arrival, &location);
  else
    step_begin(arrival);
}

/* The cache was begun anew: from this boundary, the entry of a unit, the application continues in the new
 * generation. */
static void move_on(const struct arrival *arrival, const struct location *location)
{
  struct process_state *state = arrival->state;
  struct signal_context *context = arrival->context;

  context->mask = arrival->thread->move_mask;
  if (!arrival->is_in_cache || location->passed)
    return;
  context_unspill(arrival, location->spilled);
  context_get_registers(context, state->registers);
  state->flags = context->rflags;
  state->rip = location->address;
  context->rip = (uint64_t)dispatch_enter;
  context->general[15] = state->stack;
  context->rflags = FLAGS_OURS;
}

/* A trap of our own single-stepping, which continues to the next boundary, or until the application has left the cache.
 * A thread leaves an age that is over at either point, through signal_deliver. */
static void arrived_step(const struct arrival *arrival)
{
  struct thread *thread = arrival->thread;
  struct location location = {0};
  bool is_at_boundary =
    !arrival->is_in_cache || (cache_locate(thread->runtime, arrival->pc, &location) && location.is_boundary);

  if (!is_at_boundary)
    return;
  step_end(arrival);
  bool is_moving = thread->wants_move;
  thread->wants_move = false;
  if (is_moving && !thread->pending.number && !thread->kept_set && !age_is_over(thread) && !thread->wants_leave) {
    move_on(arrival, &location);
    return;
  }
  deliver_soon(arrival);
}

/* ---- signals that are sent ---- */

/* If the kernel has no room for the data of a signal, the signal arrives without a sender. */
static bool is_nudge(const struct arrival *arrival)
{
  const struct signal_info *info = arrival->info;
  bool is_nobodys = info->code == CODE_USER && !info->address && arrival->thread->is_nudged;

  return arrival->number == SIGNAL_NUDGE && (info->code == CODE_NUDGE || info->code == CODE_LEAVE || is_nobodys);
}

/* A nudge: another thread wants this one to leave an age that is over, or lbr wants it to leave the cache.
 * signal_deliver does that. */
static void arrived_nudge(const struct arrival *arrival)
{
  struct thread *thread = arrival->thread;

  thread->wants_leave |= arrival->info->code == CODE_LEAVE && thread->runtime->options & PROCESS_ATTACHED;
  if (!thread->is_stepping && (age_is_over(thread) || thread->wants_leave))
    deliver_soon(arrival);
  __atomic_store_n(&thread->is_nudged, 0, __ATOMIC_SEQ_CST);
}

/* A second signal can come only if the mask has just been changed. */
static void arrived_sent(const struct arrival *arrival)
{
  struct thread *thread = arrival->thread;
  struct signal_pending *pending = &thread->pending;
  uint64_t bit = SIGNAL_BIT(arrival->number);

  if (bit & SIGNALS_FAULT) {
    thread->kept[signal_kept_index(arrival->number)] = *arrival->info;
    thread->kept_set |= bit;
    if (thread->signal_mask & bit)
      return;
  } else if (pending->number) {
    signal_send(arrival->number, arrival->info);
    arrival->context->mask = ~SIGNALS_FAULT;
    return;
  } else {
    pending->number = arrival->number;
    pending->is_fault = false;
    pending->info = *arrival->info;
  }
  if (!thread->is_stepping)
    deliver_soon(arrival);
}

/* ---- all ---- */

/* Whether an instruction caused the signal. Signals that the kernel sends for other reasons (a memory error found
 * elsewhere, a counter overflow) have such codes too, and a program may send itself any code. A system call does not
 * fault. */
static bool is_fault(const struct arrival *arrival)
{
  enum { BUS_MEMORY_ELSEWHERE = 5, TRAP_COUNTER = 6 };
  int32_t code = arrival->info->code;

  if (!(SIGNAL_BIT(arrival->number) & SIGNALS_FAULT) || code <= 0)
    return false;
  if (arrival->number == SIGSYS)
    return code == CODE_SECCOMP;
  if ((arrival->number == SIGBUS && code == BUS_MEMORY_ELSEWHERE) ||
      (arrival->number == SIGTRAP && code == TRAP_COUNTER))
    return false;
  return !is_between(arrival->pc, (uint64_t)syscall_pass_start, syscall_pass_back + 1);
}

static bool log_is_full(const struct arrival *arrival)
{
  enum { R11 = 3 };

  if (arrival->number != SIGSEGV || !arrival->is_in_cache || arrival->info->code <= 0)
    return false;
  uint64_t next = log_turn(arrival->thread, arrival->info->address);
  if (!next)
    return false;
  arrival->context->general[R11] = next;
  if ((arrival->thread->wants_move || age_is_over(arrival->thread)) && !arrival->thread->is_stepping) {
    arrival->thread->move_mask = arrival->context->mask;
    step_begin(arrival);
  }
  return true;
}

void signal_arrived(uint64_t number, struct signal_info *info, struct signal_context *context)
{
  struct thread *thread = thread_self();
  struct arrival arrival = {.thread = thread,
                            .state = thread->state,
                            .number = (unsigned)number,
                            .info = info,
                            .context = context,
                            .pc = context->rip,
                            .is_in_cache = cache_has(thread->runtime, context->rip),
                            .is_in_runtime = is_between(context->rip, (uint64_t)__executable_start, etext)};

  thread->was_signalled = true;
  if (log_is_full(&arrival))
    return;
  if (arrival.pc == PLACE_NOWHERE) { /* a jump into the runtime's memory: dispatch.c */
    arrival.pc = context->rip = thread->state->rip;
    info->address = info->address == PLACE_NOWHERE ? arrival.pc : info->address;
  }
  if (is_nudge(&arrival))
    arrived_nudge(&arrival);
  else if (!is_fault(&arrival))
    arrived_sent(&arrival);
  else if (number != SIGTRAP || info->code != CODE_TRACE)
    arrived_fault(&arrival);
  else if (thread->is_stepping)
    arrived_step(&arrival);
  else
    arrived_trap(&arrival);
}
