/* SPDX-License-Identifier: Apache-2.0
 *
 * A process executes another program. perf reports an execve before the branches that lead to it. Such an execve, and
 * the mappings after it, wait in a list until the thread has reached it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "source/tasks_inside.h"

int task_later_add(struct tasks *tasks, struct task_process *process, const struct task_later *later)
{
  struct task_later *added;
  char *path;

  if (process->later_count >= TASKS_MODULES_MAX)
    return 0;
  path = strdup(later->map.path);
  added = path ? array_append(&process->laters, &process->later_count, &process->later_capacity) : NULL;
  if (!added) {
    free(path);
    return tasks_fail(tasks, -ENOMEM);
  }
  *added = *later;
  added->map.path = path;
  return 0;
}

int tasks_exec(struct tasks *tasks, uint32_t number, uint32_t thread_number, const char *name)
{
  struct task_thread *thread = tasks_thread(tasks, number, thread_number);
  struct task_process *process;

  if (!thread)
    return tasks->error;
  process = thread->process;
  task_process_flush(tasks, process);
  tasks_title_put(tasks, thread);
  tasks_title_forget(tasks, number);
  if (process->is_counted || process->module_count) /* otherwise its address space is not in the trace */
    process->space = tasks->spaces++;
  task_process_clear(process);
  process->is_32 = false;
  thread->has_stream = thread->is_at = thread->is_out = thread->is_begun = false;
  thread->frame_count = 0;
  return tasks_name(tasks, number, thread_number, name);
}

int tasks_exec_later(struct tasks *tasks, uint32_t number, uint32_t thread_number, const char *name)
{
  struct task_thread *thread = tasks_thread(tasks, number, thread_number);

  if (!thread)
    return tasks->error;
  if (!thread->is_begun && !thread->is_forked && !thread->process->later_count)
    return tasks_exec(tasks, number, thread_number, name);
  return task_later_add(tasks, thread->process,
                        &(struct task_later){true, thread_number, {.path = (char *)(uintptr_t)name}});
}

bool tasks_exec_is_due(const struct task_thread *thread)
{
  return thread->process->later_count && thread->process->laters[0].thread == thread->number;
}

/* Takes one executed program and its mappings. */
bool tasks_exec_take(struct tasks *tasks, struct task_thread *thread)
{
  struct task_process *process = thread->process;
  struct task_later *laters = process->laters;
  size_t count = process->later_count, done = 1;

  if (!tasks_exec_is_due(thread))
    return false;
  process->later_count = 0; /* so that these take effect now */
  tasks_exec(tasks, process->number, thread->number, laters[0].map.path);
  for (; done < count && !laters[done].is_exec; done++)
    tasks_map(tasks, process->number,
              &(struct task_map){laters[done].map.address, laters[done].map.size, laters[done].map.offset,
                                 laters[done].map.path});
  for (size_t i = 0; i < done; i++)
    free(laters[i].map.path);
  memmove(laters, laters + done, (count - done) * sizeof(*laters));
  process->later_count = count - done;
  return true;
}
