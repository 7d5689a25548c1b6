/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of the runtime, which is held for short times only: one word; the kernel is called only if a thread has to
 * wait. Children of vfork take it too: they share the memory, and therefore the key of the futex. Such a child can be
 * killed alone, so a thread that waits for long checks whether the holder still exists.
 */
#include <asm/unistd.h>
#include <linux/futex.h>

#include "process/runtime/runtime.h"

enum { LOCK_FREE, LOCK_TAKEN, LOCK_WAITED };

static bool lock_try(uint32_t *lock)
{
  uint32_t expected = LOCK_FREE;

  return __atomic_compare_exchange_n(lock, &expected, LOCK_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Sleeps for a limited time, because a holder that has become confined meanwhile wakes no thread. Returns false after a
 * timeout. */
static bool lock_sleep(uint32_t *lock)
{
  enum { TIMED_OUT = -110 };
  const int64_t time[2] = {0, 10000000};

  return kernel_call(__NR_futex, (uint64_t)lock, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, LOCK_WAITED, (uint64_t)time, 0, 0) !=
         TIMED_OUT;
}

/* The holder was killed in the middle of an update: the cache is marked as full, so that nothing is built on an
 * incomplete state. Returns true to exactly one of the waiting threads. */
static bool lock_inherit(struct runtime *runtime, uint64_t holder)
{
  if (!__atomic_compare_exchange_n(&runtime->holder, &holder, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    return false;
  runtime->is_full = true;
  return true;
}

static bool lock_is_left(struct runtime *runtime)
{
  uint64_t holder = __atomic_load_n(&runtime->holder, __ATOMIC_ACQUIRE);

  return holder && kernel_call(__NR_tgkill, holder >> 32, (uint32_t)holder, 0, 0, 0, 0) == -ESRCH &&
         lock_inherit(runtime, holder);
}

/* Threads of another PID namespace are not named, because the runtime could not find out whether they exist. */
static void lock_name(struct runtime *runtime)
{
  const struct process_state *state = runtime->has_thread ? thread_self()->state : NULL;
  bool is_known = state && !state->numbering;
  uint64_t holder = is_known ? (uint64_t)state->process << 32 | state->thread : 0;

  __atomic_store_n(&runtime->holder, holder, __ATOMIC_RELEASE);
}

/* A thread that has waited leaves the lock marked as waited for, because others may still sleep. */
void runtime_lock(struct runtime *runtime)
{
  enum { SPINS = 100 };

  for (unsigned i = 0; i < SPINS; i++) {
    if (lock_try(&runtime->lock)) {
      lock_name(runtime);
      return;
    }
    __builtin_ia32_pause();
  }
  while (__atomic_exchange_n(&runtime->lock, LOCK_WAITED, __ATOMIC_ACQUIRE) != LOCK_FREE) {
    if (runtime->is_confined)
      __builtin_ia32_pause();
    else if (!lock_sleep(&runtime->lock) && lock_is_left(runtime))
      break;
  }
  lock_name(runtime);
}

void runtime_unlock(struct runtime *runtime)
{
  __atomic_store_n(&runtime->holder, 0, __ATOMIC_RELEASE);
  if (__atomic_exchange_n(&runtime->lock, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_WAITED && !runtime->is_confined)
    kernel_call(__NR_futex, (uint64_t)&runtime->lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}

void runtime_unlock_for(struct runtime *runtime, uint32_t process)
{
  if (lock_inherit(runtime, (uint64_t)process << 32 | process))
    runtime_unlock(runtime);
}
