/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces pt.c in builds without libipt.
 */
#include <errno.h>

#include "source/pt.h"

int pt_decode(struct tasks *tasks, struct task_thread *thread, const struct pt_model *model, struct pt_state *state,
              const uint8_t *bytes, size_t size)
{
  (void)tasks, (void)thread, (void)model, (void)state, (void)bytes, (void)size;
  return -ENOSYS;
}
