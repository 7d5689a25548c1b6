/* SPDX-License-Identifier: Apache-2.0
 *
 * The moment that lbr waits for (lbr record --trigger). A trigger is an address of the application. Paths end before it
 * (instruction.c), and no exit is tied to the unit there, so that the dispatcher sees each time that it is reached. The
 * first thread that reaches one fills the hit record in the control page; after that the triggers are gone.
 *
 * With a limit on the time (--trigger-slow), a trigger is the first instruction of a function. When it is reached, the
 * return address becomes a trigger of a second kind. When that is reached with the stack of the call removed, the call
 * is over, and its duration known.
 *
 * lbr knows the names, and the runtime knows what is mapped. So a thread that has mapped a file waits until lbr has
 * told which triggers are in it.
 */
#include <asm/unistd.h>
#include <linux/futex.h>

#include "process/runtime/runtime.h"

enum {
  BACKS = 1 << 12,        /* slots of the table of return addresses, */
  BACKS_MOST = BACKS / 2, /* of which so many are used: calls from elsewhere are not timed */
};

#define STACK_REACH (UINT64_C(8) << 20) /* calls whose stacks are further apart are on different stacks */

/* All of this is guarded by the lock. A child of fork has a copy. */
static uint64_t places[PROCESS_TRIGGERS];
static uint32_t place_count;
static uint64_t backs[BACKS];
static uint32_t back_count;

/* ---- the tables ---- */

static uint64_t *back_slot(uint64_t address)
{
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 52;

  while (backs[at] && backs[at] != address)
    at = (at + 1) % BACKS;
  return &backs[at];
}

static bool is_place(uint64_t address)
{
  for (uint32_t i = 0; i < place_count; i++)
    if (places[i] == address)
      return true;
  return false;
}

bool trigger_is_at(const struct runtime *runtime, uint64_t address)
{
  return runtime->has_triggers && (is_place(address) || (back_count && *back_slot(address)));
}

/* Paths through the address were made before it became a trigger. */
void trigger_add(struct runtime *runtime, const uint64_t *addresses, uint32_t count)
{
  for (uint32_t i = 0; i < count && place_count < PROCESS_TRIGGERS; i++) {
    if (is_place(addresses[i]))
      continue;
    page_renew(runtime, addresses[i]);
    places[place_count++] = addresses[i];
    runtime->has_triggers = true;
  }
}

void trigger_remove(struct runtime *runtime, uint64_t start, uint64_t end)
{
  uint32_t kept = 0;

  for (uint32_t i = 0; i < place_count; i++)
    if (places[i] < start || places[i] >= end)
      places[kept++] = places[i];
  place_count = kept;
  runtime->has_triggers = place_count || back_count;
}

static void back_add(struct runtime *runtime, uint64_t address)
{
  uint64_t *slot = back_slot(address);

  if (*slot || back_count >= BACKS_MOST)
    return;
  page_renew(runtime, address);
  *slot = address;
  back_count++;
}

/* ---- the hit ---- */

/* Exits can be tied to the unit from now on: another one takes its place. */
static void unit_renew(struct runtime *runtime, uint64_t address)
{
  struct unit *unit = cache_find(runtime, address);

  if (unit && unit->is_checked && !unit->byte_count)
    cache_make_stale(runtime, unit);
}

/* The hit is known: the application goes on without the cost of triggers. */
static void triggers_end(struct runtime *runtime)
{
  for (uint32_t i = 0; i < place_count; i++)
    unit_renew(runtime, places[i]);
  for (uint32_t i = 0; i < BACKS && back_count; i++)
    if (backs[i])
      unit_renew(runtime, backs[i]);
  place_count = back_count = 0;
  runtime->has_triggers = false;
}

/* The first thread wins. */
static void hit(struct thread *thread, uint64_t address, uint64_t time, uint64_t duration)
{
  struct process_hit_record *record = &thread->runtime->control->hit;
  uint32_t none = 0;

  if (!__atomic_compare_exchange_n(&record->is_taken, &none, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
    return;
  record->process = thread->state->process;
  record->thread = thread->state->thread;
  record->address = address;
  record->time = time;
  record->duration = duration;
  __atomic_store_n(&record->is_filled, 1, __ATOMIC_RELEASE);
  runtime_ring(thread->runtime);
}

/* ---- calls that are timed ---- */

/* Is the call over when RSP is there? It may have been left by longjmp or by an exception. Nothing is known of calls on
 * another stack, such as that of a signal handler. */
static bool is_over(const struct trigger_call *call, uint64_t stack)
{
  return call->stack < stack && stack - call->stack < STACK_REACH;
}

/* Removes the calls that are over; the last ones are the innermost. */
static void calls_drop(struct thread *thread, uint64_t stack)
{
  uint32_t kept = 0;

  for (uint32_t i = 0; i < thread->call_count; i++)
    if (!is_over(&thread->calls[i], stack))
      thread->calls[kept++] = thread->calls[i];
  thread->call_count = kept;
}

/* A function was called. If there are too many calls, the outermost is not timed any more. */
static void call_begin(struct thread *thread, uint64_t address)
{
  uint64_t stack = thread->state->registers[GPR_RSP], back;

  calls_drop(thread, stack + 1);
  if (!safe_read(thread, &back, stack, sizeof(back)) || !back)
    return;
  if (thread->call_count == TRIGGER_CALLS) {
    for (uint32_t i = 1; i < TRIGGER_CALLS; i++)
      thread->calls[i - 1] = thread->calls[i];
    thread->call_count--;
  }
  back_add(thread->runtime, back);
  thread->calls[thread->call_count++] = (struct trigger_call){stack, address, back, nanoseconds_now()};
}

/* A return address was reached, perhaps by a jump. It is a return if RSP is just above one of the calls: RET n removes
 * the arguments, too. */
static void call_end(struct thread *thread, uint64_t address)
{
  enum { ARGUMENTS_MOST = 1 << 16 };
  uint64_t stack = thread->state->registers[GPR_RSP], now = 0;

  for (uint32_t i = 0; i < thread->call_count; i++) {
    const struct trigger_call *call = &thread->calls[i];

    if (call->back != address || !is_over(call, stack) || stack - call->stack > ARGUMENTS_MOST)
      continue;
    now = now ? now : nanoseconds_now();
    if (now - call->time > thread->runtime->control->slow)
      hit(thread, call->address, now, now - call->time);
  }
  calls_drop(thread, stack);
}

void trigger_reached(struct thread *thread, uint64_t address)
{
  struct runtime *runtime = thread->runtime;
  const struct process_control *control = runtime->control;
  bool is_confined = runtime->is_confined;

  if (thread->is_unrecorded || thread->state->is_unwanted)
    return;
  if (!control->slow)
    hit(thread, address, is_confined ? 0 : nanoseconds_now(), 0);
  else if (!is_confined && !__atomic_load_n(&control->hit.is_taken, __ATOMIC_RELAXED)) {
    if (back_count && *back_slot(address))
      call_end(thread, address);
    if (is_place(address))
      call_begin(thread, address);
  }
  if (__atomic_load_n(&control->hit.is_taken, __ATOMIC_RELAXED))
    triggers_end(runtime);
}

/* ---- lbr's answer ---- */

static bool is_wanted(const struct runtime *runtime)
{
  const struct process_control *control = runtime->control;

  return !__atomic_load_n(&control->is_closed, __ATOMIC_RELAXED) &&
         !__atomic_load_n(&control->is_closing, __ATOMIC_ACQUIRE) &&
         !__atomic_load_n(&control->hit.is_taken, __ATOMIC_RELAXED);
}

static bool is_open(const struct process_state *state)
{
  return __atomic_load_n(&state->ask, __ATOMIC_ACQUIRE) == ASK_OPEN;
}

void trigger_ask(struct thread *thread, uint64_t start, uint64_t end)
{
  enum { TIMED_OUT = -110 };
  const int64_t time[2] = {0, 50000000};
  struct runtime *runtime = thread->runtime;
  struct process_state *state = thread->state;

  if (!(runtime->options & PROCESS_TRIGGER) || thread->is_unrecorded || runtime->is_confined || !is_wanted(runtime))
    return;
  state->ask_start = start;
  state->ask_end = end;
  __atomic_store_n(&state->ask, ASK_OPEN, __ATOMIC_RELEASE);
  runtime_ring(runtime);
  while (is_open(state) && is_wanted(runtime))
    if (kernel_call(__NR_futex, (uint64_t)&state->ask, FUTEX_WAIT, ASK_OPEN, (uint64_t)time, 0, 0) == TIMED_OUT)
      log_look_for_parent(thread);
  uint32_t count = state->trigger_count;
  if (!is_open(state) && count <= PROCESS_TRIGGERS) {
    runtime_lock(runtime);
    trigger_add(runtime, state->triggers, count);
    runtime_unlock(runtime);
  }
  __atomic_store_n(&state->ask, ASK_NONE, __ATOMIC_RELEASE);
}
