/* SPDX-License-Identifier: Apache-2.0
 *
 * A thread that a signal kills waits before it ends, if the parent wants to look at its process first (PROCESS_HOLD).
 * If the parent dies meanwhile, the thread does not wait any longer.
 */
#include <asm/unistd.h>
#include <linux/futex.h>

#include "process/runtime/runtime.h"

/* Whether the parent holds its lock on the shared memory. */
static bool parent_is_there(const struct thread *thread)
{
  enum { GET_LOCK = 36, WRITE_LOCK = 1, NO_LOCK = 2 }; /* F_OFD_GETLK, F_WRLCK, F_UNLCK */

  struct {
    int16_t type, whence;
    int64_t start, length;
    int32_t process;
  } lock = {.type = WRITE_LOCK, .length = 1};
  int64_t result = kernel_call(__NR_fcntl, (uint64_t)*thread->fd, GET_LOCK, (uint64_t)&lock, 0, 0, 0);
  return result == 0 && lock.type != NO_LOCK;
}

void hold_wait(struct thread *thread)
{
  enum { WANTED = PROCESS_HOLD | PROCESS_LOCKED };
  const struct runtime *runtime = thread->runtime;
  struct process_state *state = thread->state;
  const int64_t time[2] = {0, 200000000};
  uint32_t serial = state->serial;

  if ((runtime->options & WANTED) != WANTED || runtime->is_confined || thread->is_unrecorded)
    return;
  for (;;) {
    uint32_t released = __atomic_load_n(&state->released, __ATOMIC_ACQUIRE);
    bool is_other = __atomic_load_n(&state->serial, __ATOMIC_RELAXED) != serial; /* the page was reused */

    if (released == serial || is_other || !parent_is_there(thread))
      return;
    kernel_call(__NR_futex, (uint64_t)&state->released, FUTEX_WAIT, released, (uint64_t)time, 0, 0);
  }
}
