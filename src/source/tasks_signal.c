/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals of threads that were reported, kept until the branches of their threads reach them.
 */
#include <string.h>

#include "base/base.h"
#include "source/tasks_inside.h"

static void signal_drop(struct tasks *tasks, size_t place)
{
  struct task_signal *signals = tasks->signals + place;

  memmove(signals, signals + 1, (--tasks->signal_count - place) * sizeof(*signals));
}

void tasks_signals_forget(struct tasks *tasks, uint32_t thread)
{
  for (size_t i = tasks->signal_count; i-- > 0;)
    if (tasks->signals[i].thread == thread)
      signal_drop(tasks, i);
}

void tasks_signal(struct tasks *tasks, uint32_t thread, uint64_t at, uint64_t handler)
{
  struct task_signal *signal = tasks->signal_count < TASKS_SIGNALS
                                 ? array_append(&tasks->signals, &tasks->signal_count, &tasks->signal_capacity)
                                 : NULL;

  if (signal) /* otherwise there will be a gap */
    *signal = (struct task_signal){thread, at, handler};
}

static size_t signal_find(const struct tasks *tasks, const struct task_thread *thread, uint64_t at)
{
  size_t place = 0;

  while (place < tasks->signal_count &&
         (tasks->signals[place].thread != thread->number || tasks->signals[place].at != at))
    place++;
  return place;
}

bool tasks_signal_is(const struct tasks *tasks, const struct task_thread *thread, uint64_t at)
{
  return signal_find(tasks, thread, at) < tasks->signal_count;
}

bool tasks_signal_take(struct tasks *tasks, const struct task_thread *thread, uint64_t at, uint64_t *ret_handler)
{
  size_t place = signal_find(tasks, thread, at);

  if (place == tasks->signal_count)
    return false;
  *ret_handler = tasks->signals[place].handler;
  signal_drop(tasks, place);
  while (place-- > 0)
    if (tasks->signals[place].thread == thread->number)
      signal_drop(tasks, place);
  return true;
}
