/* SPDX-License-Identifier: Apache-2.0
 *
 * The lock of the runtime, held for short times only: one word, which the kernel is asked about only if somebody has to
 * wait. Children of vfork take it too: they share the memory, and so the key of the futex.
 */
#include <asm/unistd.h>
#include <linux/futex.h>

#include "process/runtime.h"

enum { LOCK_FREE, LOCK_TAKEN, LOCK_WAITED };

static bool lock_try(uint32_t *lock)
{
  uint32_t expected = LOCK_FREE;
  return __atomic_compare_exchange_n(lock, &expected, LOCK_TAKEN, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

/* Sleeps at most a while: who holds the lock may have become confined meanwhile, and then wakes nobody. */
static void lock_sleep(uint32_t *lock)
{
  const int64_t time[2] = {0, 10000000};
  kernel_call(__NR_futex, (uint64_t)lock, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, LOCK_WAITED, (uint64_t)time, 0, 0);
}

/* Who has waited leaves the lock marked as waited for: others may sleep still. */
void runtime_lock(struct runtime *runtime)
{
  enum { SPINS = 100 };
  for (unsigned i = 0; i < SPINS; i++) {
    if (lock_try(&runtime->lock))
      return;
    __builtin_ia32_pause();
  }
  while (__atomic_exchange_n(&runtime->lock, LOCK_WAITED, __ATOMIC_ACQUIRE) != LOCK_FREE) {
    if (runtime->is_confined)
      __builtin_ia32_pause();
    else
      lock_sleep(&runtime->lock);
  }
}

void runtime_unlock(struct runtime *runtime)
{
  if (__atomic_exchange_n(&runtime->lock, LOCK_FREE, __ATOMIC_RELEASE) == LOCK_WAITED && !runtime->is_confined)
    kernel_call(__NR_futex, (uint64_t)&runtime->lock, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, 1, 0, 0, 0);
}
