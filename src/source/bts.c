/* SPDX-License-Identifier: Apache-2.0
 *
 * BTS records: from, to, and a word with one flag, "predicted". Most processors do not set the flag, so it is ignored
 * (Intel SDM vol. 3, "BTS and DS save area", 64-bit format). The kernel fills unused space at the end of a part of its
 * buffer with zeros. Although recording is off in the kernel, the jumps into it and out of it are recorded; which of
 * them are depends on the processor.
 */
#include "source/bts.h"

#include "base/base.h"
#include "source/flow.h"

static int record_take(struct tasks *tasks, struct task_thread *thread, const uint8_t *bytes)
{
  uint64_t from = bytes_get_u64(bytes), to = bytes_get_u64(bytes + 8);

  if ((!from && !to) || (flow_is_kernel(from) && flow_is_kernel(to)))
    return 0;
  if (flow_is_kernel(to))
    return flow_turn(tasks, thread, from);
  if (flow_is_kernel(from))
    return flow_enter(tasks, thread, to);
  return flow_jump(tasks, thread, from, to, 0);
}

int bts_decode(struct tasks *tasks, struct task_thread *thread, const uint8_t *bytes, size_t size)
{
  int r = 0;

  for (; size >= BTS_RECORD_SIZE && r >= 0; bytes += BTS_RECORD_SIZE, size -= BTS_RECORD_SIZE)
    r = record_take(tasks, thread, bytes);
  if (r >= 0 && size)
    r = flow_lose(tasks, thread, 0);
  return r;
}
