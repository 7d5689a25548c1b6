/* SPDX-License-Identifier: Apache-2.0
 *
 * When the cache is full, all translations are given up and a new age begins in the other of two pools. Each thread
 * announces the age it is in, or that it is outside of the cache. It moves to the new age the next time it calls the
 * dispatcher, or when a part of its log is full. Most threads have left the old pool long before it is needed again. A
 * thread that has not is sent a signal (a nudge).
 *
 * Step numbers are never reused: the logs refer to old ones, and lbr keeps them.
 */
#include <linux/mman.h>

#include "process/runtime/signal.h"

/* ---- threads ---- */

void age_leave(struct thread *thread)
{
  __atomic_store_n(&thread->age, 0, __ATOMIC_RELEASE);
}

/* A nudge would interrupt a system call that waits. The sender sets is_nudged first and then reads the age; this thread
 * clears its age first and then waits until no nudge is on its way. A nudge arrives at once, unless another thread is
 * executing a program just now. */
void age_leave_long(struct thread *thread)
{
  enum { SPINS = 1 << 20 };

  __atomic_store_n(&thread->age, 0, __ATOMIC_SEQ_CST);
  for (unsigned i = 0; i < SPINS && __atomic_load_n(&thread->is_nudged, __ATOMIC_SEQ_CST); i++)
    __builtin_ia32_pause();
}

void age_enter(struct thread *thread, bool is_inside)
{
  struct runtime *runtime = thread->runtime;

  if (thread->lookup_age != runtime->age) {
    cache_lookup_init(thread);
    thread->place_resume = 0;
  }
  __atomic_store_n(&thread->age, is_inside ? runtime->age : 0, __ATOMIC_RELEASE);
}

bool age_is_over(const struct thread *thread)
{
  uint32_t age = __atomic_load_n(&thread->age, __ATOMIC_RELAXED);

  return age && age != __atomic_load_n(&thread->runtime->age, __ATOMIC_RELAXED);
}

bool age_has_step(const struct runtime *runtime, uint32_t step)
{
  return step >= runtime->pool->first;
}

/* Whether the thread is in that age or in an earlier one. */
static bool is_in(const struct thread *thread, uint32_t age)
{
  uint32_t at = __atomic_load_n(&thread->age, __ATOMIC_SEQ_CST);

  return __atomic_load_n(&thread->is_used, __ATOMIC_ACQUIRE) && at && at <= age;
}

static bool is_empty(uint32_t age)
{
  for (const struct thread *thread = thread_first(); thread; thread = thread->next)
    if (is_in(thread, age))
      return false;
  return true;
}

/* ---- threads that stay in an old age ---- */

static int64_t nudge_send(const struct thread *other)
{
  const struct process_state *to = other->state;
  const struct signal_info info = {.number = SIGNAL_NUDGE, .code = CODE_NUDGE};

  return kernel_call(__NR_rt_tgsigqueueinfo, to->process, to->thread, SIGNAL_NUDGE, (uint64_t)&info, 0, 0);
}

/* ESRCH: a process that shares the memory (a child of vfork) may have been killed. */
static void nudge(const struct thread *thread, struct thread *other, uint32_t age)
{
  int64_t result = 0;

  __atomic_store_n(&other->is_nudged, 1, __ATOMIC_SEQ_CST);
  bool is_sent = is_in(other, age);
  if (is_sent)
    result = nudge_send(other);
  __atomic_add_fetch(&thread->runtime->control->nudges, is_sent, __ATOMIC_RELAXED);
  if (!is_sent || is_failure(result))
    __atomic_store_n(&other->is_nudged, 0, __ATOMIC_SEQ_CST);
  if (result == -ESRCH)
    __atomic_store_n(&other->age, 0, __ATOMIC_RELEASE);
}

/* Nudges no thread of another PID namespace, whose numbers are not known here, and none at all under a seccomp filter.
 * Those threads leave by themselves. */
static void nudge_all(const struct thread *thread, uint32_t age, unsigned tries)
{
  enum { AGAIN = 1024 };

  for (struct thread *other = thread_first(); other; other = other->next) {
    bool is_due = !__atomic_load_n(&other->is_nudged, __ATOMIC_RELAXED) || tries % AGAIN == AGAIN - 1;

    if (is_in(other, age) && is_due && !thread->runtime->is_confined &&
        other->state->numbering == thread->state->numbering)
      nudge(thread, other, age);
  }
}

static void pause_free(struct runtime *runtime)
{
  const int64_t time[2] = {0, 20000};

  runtime_unlock(runtime);
  if (runtime->is_confined)
    __builtin_ia32_pause();
  else
    kernel_call(__NR_nanosleep, (uint64_t)time, 0, 0, 0, 0, 0);
  runtime_lock(runtime);
}

/* ---- an age ---- */

/* Frees the local data of steps through which no thread can leave any more. */
static void local_give_back(struct runtime *runtime, uint32_t from, uint32_t to)
{
  uint64_t start = page_up((uint64_t)(runtime->local + from)), end = page_down((uint64_t)(runtime->local + to));

  if (start < end && !runtime->is_confined)
    kernel_call(__NR_madvise, start, end - start, MADV_DONTNEED, 0, 0, 0);
}

static void pool_begin(struct runtime *runtime, struct pool *pool)
{
  local_give_back(runtime, pool->first, runtime->pool->first);
  pool_clear(runtime, pool);
  pool->age = runtime->age + 1;
  pool->first = runtime->number_next;
  page_begin_age(runtime, pool);
  cache_forget(runtime);
  runtime->pool = pool;
  runtime->is_full = false;
  __atomic_add_fetch(&runtime->control->ages, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&runtime->age, pool->age, __ATOMIC_RELEASE);
}

/* A thread that waits here is outside of the cache, and others may take the lock meanwhile. */
void age_begin(struct thread *thread)
{
  struct runtime *runtime = thread->runtime;

  for (unsigned tries = 0; runtime->is_full; tries++) {
    struct pool *next = runtime->pool == runtime->pools ? runtime->pools + 1 : runtime->pools;

    if (is_empty(next->age)) {
      pool_begin(runtime, next);
      return;
    }
    nudge_all(thread, next->age, tries);
    pause_free(runtime);
  }
}
