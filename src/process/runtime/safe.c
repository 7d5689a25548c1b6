/* SPDX-License-Identifier: Apache-2.0
 *
 * Access to memory of the application that may not be mapped. A fault ends the attempt (signal.c, recover).
 */
#include "process/runtime/runtime.h"

struct copying {
  void *to;
  const void *from;
  size_t size;
};

static int64_t copy_now(void *argument)
{
  const struct copying *copying = argument;

  memcpy(copying->to, copying->from, copying->size);
  return 0;
}

static bool copy_safely(struct thread *thread, void *to, const void *from, size_t size)
{
  struct copying copying = {to, from, size};

  return recover_call(copy_now, &copying, &thread->recover) == 0;
}

bool safe_read(struct thread *thread, void *to, uint64_t from, size_t size)
{
  return copy_safely(thread, to, (const void *)from, size);
}

bool safe_write(struct thread *thread, uint64_t to, const void *from, size_t size)
{
  return copy_safely(thread, (void *)to, from, size);
}
