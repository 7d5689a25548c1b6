/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread's log: four parts in a ring, each followed by a page that faults. Code in the cache writes entries until
 * it faults there (signal.c). The dispatcher writes its own entries by the functions here.
 */
#include <asm/unistd.h>
#include <linux/futex.h>
#include <linux/mman.h>

#include "lastbranch/branch.h"
#include "process/runtime/runtime.h"

static uint64_t part_start(const struct thread *thread, uint64_t number)
{
  uint64_t stride = (uint64_t)thread->runtime->part_size + PROCESS_PAGE;

  return thread->state->log_start + number % PROCESS_PARTS * stride;
}

void runtime_ring(const struct runtime *runtime)
{
  struct process_control *control = runtime->control;

  __atomic_add_fetch(&control->bell, 1, __ATOMIC_SEQ_CST);
  if ((runtime->mode == PROCESS_ALL || runtime->options & PROCESS_TRIGGER) && !runtime->is_confined &&
      __atomic_load_n(&control->is_listening, __ATOMIC_SEQ_CST))
    kernel_call(__NR_futex, (uint64_t)&control->bell, FUTEX_WAKE, 1, 0, 0, 0);
}

/* Whether the parent has not yet read the next part. The wait has a time-out: the parent may have been killed. */
static bool is_full(const struct thread *thread)
{
  const struct process_state *state = thread->state;
  bool is_closed = __atomic_load_n(&thread->runtime->control->is_closed, __ATOMIC_RELAXED);

  return !is_closed && state->written - __atomic_load_n(&state->read, __ATOMIC_ACQUIRE) >= PROCESS_PARTS;
}

void log_look_for_parent(struct thread *thread)
{
  enum { GET_LOCK = 36, WRITE_LOCK = 1, NO_LOCK = 2 }; /* F_OFD_GETLK, F_WRLCK, F_UNLCK */

  struct {
    int16_t type, whence;
    int64_t start, length;
    int32_t process;
  } lock = {.type = WRITE_LOCK, .length = 1};
  struct runtime *runtime = thread->runtime;
  if (!(runtime->options & PROCESS_LOCKED))
    return;
  int64_t result = kernel_call(__NR_fcntl, (uint64_t)*thread->fd, GET_LOCK, (uint64_t)&lock, 0, 0, 0);
  if (result == 0 && lock.type == NO_LOCK)
    __atomic_store_n(&runtime->control->is_closed, 1, __ATOMIC_RELEASE);
}

uint64_t nanoseconds_now(void)
{
  enum { MONOTONIC = 1 };
  int64_t time[2] = {0};

  kernel_call(__NR_clock_gettime, MONOTONIC, (uint64_t)time, 0, 0, 0, 0);
  return (uint64_t)time[0] * 1000000000 + (uint64_t)time[1];
}

/* Whether lbr is about to leave, and reads the log afterwards. */
static bool is_closing(const struct thread *thread)
{
  return __atomic_load_n(&thread->runtime->control->is_closing, __ATOMIC_ACQUIRE) && !thread->runtime->is_confined;
}

/* Whether the parent cannot see that this thread waits: the program has overwritten the thread's page. The parent
 * restores `read` at once (slot_mend), so this is asked only after a while. */
static bool is_overwritten(const struct thread *thread)
{
  const struct process_state *state = thread->state;

  return __atomic_load_n(&state->status, __ATOMIC_RELAXED) != THREAD_LIVE ||
         state->written - __atomic_load_n(&state->read, __ATOMIC_RELAXED) > PROCESS_PARTS;
}

/* Returns for how many nanoseconds it has waited. */
static uint64_t log_wait(struct thread *thread)
{
  enum { TIMED_OUT = -110, SPINS = 1 << 24 };
  int64_t result = 0;
  unsigned spins = 0;
  bool is_timed = is_full(thread) && !thread->runtime->is_confined;
  uint64_t since = is_timed ? nanoseconds_now() : 0;
  struct process_state *state = thread->state;
  const int64_t time[2] = {0, 50000000};

  while (is_full(thread) && !is_closing(thread)) {
    if (thread->runtime->is_confined) {
      __builtin_ia32_pause();
      if (++spins > SPINS && is_overwritten(thread))
        runtime_fail(PROCESS_E_OVERWRITTEN, 0, 0);
      continue;
    }
    uint64_t read = __atomic_load_n(&state->read, __ATOMIC_SEQ_CST);
    __atomic_store_n(&state->is_waiting, 1, __ATOMIC_SEQ_CST);
    if (is_full(thread))
      result = kernel_call(__NR_futex, (uint64_t)&state->read, FUTEX_WAIT, (uint32_t)read, (uint64_t)time, 0, 0);
    __atomic_store_n(&state->is_waiting, 0, __ATOMIC_SEQ_CST);
    if (result == TIMED_OUT && is_overwritten(thread))
      runtime_fail(PROCESS_E_OVERWRITTEN, 0, 0);
    if (result == TIMED_OUT)
      log_look_for_parent(thread);
  }
  uint64_t waited = is_timed ? nanoseconds_now() - since : 0;
  if (is_timed)
    __atomic_store_n(&state->waited, state->waited + waited, __ATOMIC_RELAXED);
  return waited;
}

/* What the thread logs from now on goes to private memory, which nobody reads. If there can be none, the oldest part is
 * overwritten again and again. */
static void log_cut(struct thread *thread, uint64_t start)
{
  unsigned flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, rights = PROT_READ | PROT_WRITE;
  bool is_clean =
    !thread->runtime->is_confined && !is_failure(kernel_map(start, thread->runtime->part_size, rights, flags, -1, 0));

  thread->state->is_cut = is_clean ? CUT_CLEAN : CUT_MIXED;
}

/* Whether the thread must not overwrite its oldest part: lbr wants the branches before a trigger, which was reached.
 * The thread still fills the part after the one that it was filling then. */
static bool is_past_trigger(struct thread *thread)
{
  const struct process_control *control = thread->runtime->control;

  if (!(thread->runtime->options & PROCESS_TRIGGER) || thread->is_unrecorded)
    return false;
  if (__atomic_load_n(&control->is_closing, __ATOMIC_ACQUIRE))
    return true;
  if (!__atomic_load_n(&control->hit.is_taken, __ATOMIC_ACQUIRE))
    return false;
  if (!thread->has_hit_part)
    thread->hit_part = thread->state->written;
  thread->has_hit_part = true;
  return thread->state->written != thread->hit_part;
}

/* `written` is increased before `log` is moved. A thread that is killed between the two leaves a part that looks
 * complete, but whose end may hold old entries or zeroes. */
static uint64_t next_part(struct thread *thread)
{
  struct process_state *state = thread->state;
  bool is_last = !state->is_cut && is_past_trigger(thread);
  uint64_t waited = 0;

  if (!state->is_cut)
    __atomic_store_n(&state->written, state->written + 1, __ATOMIC_RELEASE);
  bool is_read = thread->runtime->mode == PROCESS_ALL && !thread->is_unrecorded && !state->is_unwanted;
  if (is_read) {
    runtime_ring(thread->runtime);
    waited = log_wait(thread);
  }
  uint64_t start = part_start(thread, state->written);
  if (is_read && is_full(thread) && is_closing(thread))
    is_last = !state->is_cut;
  if (is_last)
    log_cut(thread, start);
  memset((void *)start, 0, thread->runtime->part_size); /* so that its end can be found */
  __atomic_store_n(&state->log, start, __ATOMIC_RELEASE);
  if (waited)
    stamp_put(thread, STAMP_HELD, waited);
  stamp_used(thread, STAMP_TIME);
  return state->log;
}

uint64_t log_turn(struct thread *thread, uint64_t address)
{
  uint64_t end = part_start(thread, thread->state->written) + thread->runtime->part_size;

  if (address - end >= PROCESS_PAGE)
    return 0;
  thread->wants_move =
    profile_turn(thread, (const uint32_t *)(end - thread->runtime->part_size), thread->runtime->part_size / 4);
  return next_part(thread);
}

void log_reserve(struct thread *thread, unsigned entries)
{
  struct process_state *state = thread->state;
  uint64_t end = part_start(thread, state->written) + thread->runtime->part_size;

  if (state->log + entries * 4 <= end)
    return;
  for (; state->log < end; state->log += 4)
    *(uint32_t *)state->log = 0;
  next_part(thread);
}

bool log_has(const struct thread *thread, uint64_t address)
{
  uint64_t start = part_start(thread, thread->state->written);

  return address >= start && address < thread->state->log;
}

void log_put(struct thread *thread, uint32_t entry)
{
  log_reserve(thread, 1);
  *(uint32_t *)thread->state->log = entry;
  __atomic_store_n(&thread->state->log, thread->state->log + 4, __ATOMIC_RELEASE);
}

void log_event(struct thread *thread, unsigned kind, unsigned passed, uint64_t from, uint64_t to)
{
  log_reserve(thread, 1 + LB_ENTRY_EVENT_WORDS);
  uint32_t *at = (uint32_t *)thread->state->log;
  at[0] = LB_ENTRY_EVENT;
  at[1] = kind | passed << 8;
  at[2] = (uint32_t)from;
  at[3] = (uint32_t)(from >> 32);
  at[4] = (uint32_t)to;
  at[5] = (uint32_t)(to >> 32);
  thread->event_end = thread->state->log + 4 * (1 + LB_ENTRY_EVENT_WORDS);
  __atomic_store_n(&thread->state->log, thread->event_end, __ATOMIC_RELEASE);
}
