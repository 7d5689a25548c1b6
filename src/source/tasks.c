/* SPDX-License-Identifier: Apache-2.0
 *
 * The processes and threads that are written into a trace. A process has a number for its address space, the modules in
 * it, and its code (tasks_code.c); a thread has a stream from its first branch on, a new one for each program that it
 * executes.
 */
#include "source/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/tasks_inside.h"

int tasks_new(const struct source_sink *sink, tasks_memory *memory, void *data, struct tasks **ret_tasks)
{
  struct tasks *tasks = calloc(1, sizeof(*tasks));
  int r = -ENOMEM;

  if (!tasks)
    return r;
  tasks->sink = sink;
  tasks->memory = memory;
  tasks->memory_data = data;
  r = symbol_cache_new(NULL, &tasks->cache);
  if (r >= 0)
    r = symbol_cache_add_vdso(tasks->cache);
  if (r < 0) {
    tasks_free(tasks);
    return r;
  }
  *ret_tasks = tasks;
  return 0;
}

static void process_done(struct task_process *process)
{
  for (size_t i = 0; i < process->later_count; i++)
    free(process->laters[i].map.path);
  free(process->laters);
  task_process_clear(process);
  free(process->instructions);
}

void tasks_free(struct tasks *tasks)
{
  if (!tasks)
    return;
  for (size_t i = 0; i < tasks->threads.count; i++)
    free(((struct task_thread *)tasks->threads.entries[i].item)->batch);
  for (size_t i = 0; i < tasks->processes.count; i++)
    process_done(tasks->processes.entries[i].item);
  id_table_done(&tasks->threads);
  id_table_done(&tasks->processes);
  id_table_done(&tasks->titles);
  symbol_cache_free(tasks->cache);
  free(tasks->signals);
  free(tasks);
}

int tasks_fail(struct tasks *tasks, int error)
{
  if (error < 0 && tasks->error >= 0)
    tasks->error = error;
  return tasks->error;
}

/* ---- lookup ---- */

/* Adds a process or thread. Returns NULL if there are too many, which is not an error, or without memory. */
static void *task_new(struct tasks *tasks, struct id_table *table, uint32_t number, size_t size)
{
  void *task;

  if (table->count >= TASKS_MAX)
    return NULL;
  task = id_table_new(table, number, size);
  if (!task)
    tasks_fail(tasks, -ENOMEM);
  return task;
}

struct task_process *tasks_process(struct tasks *tasks, uint32_t number)
{
  struct task_process *process = id_table_find(&tasks->processes, number);

  if (process)
    return process;
  process = task_new(tasks, &tasks->processes, number, sizeof(*process));
  if (process) {
    process->number = number;
    process->space = tasks->spaces++;
  }
  return process;
}

struct task_thread *tasks_thread(struct tasks *tasks, uint32_t process, uint32_t number)
{
  struct task_thread *thread = id_table_find(&tasks->threads, number);
  struct task_process *owner;

  if (thread)
    return thread;
  owner = tasks_process(tasks, process);
  thread = owner ? task_new(tasks, &tasks->threads, number, sizeof(*thread)) : NULL;
  if (thread) {
    thread->number = number;
    thread->process = owner;
    owner->threads++;
  }
  return thread;
}

static void process_drop(struct tasks *tasks, struct task_process *process)
{
  process_done(process);
  id_table_drop(&tasks->processes, process->number);
}

static void thread_drop(struct tasks *tasks, struct task_thread *thread)
{
  thread->process->threads--;
  free(thread->batch);
  id_table_drop(&tasks->threads, thread->number);
}

/* ---- events ---- */

int tasks_fork(struct tasks *tasks, uint32_t number, uint32_t thread_number, uint32_t parent_number,
               uint32_t parent_thread)
{
  const struct task_thread *creator;
  struct task_thread *thread = id_table_find(&tasks->threads, thread_number);
  struct task_process *parent;
  bool is_new;

  if (thread) /* its end was not seen; a forged record may name it as its own creator */
    tasks_exit(tasks, thread->process->number, thread_number);
  creator = id_table_find(&tasks->threads, parent_thread);
  parent = id_table_find(&tasks->processes, parent_number);
  is_new = !id_table_find(&tasks->processes, number);
  thread = tasks_thread(tasks, number, thread_number);
  if (!thread)
    return tasks->error;
  thread->is_forked = true;
  if (creator)
    memcpy(thread->name, creator->name, sizeof(thread->name));
  if (is_new && parent && parent != thread->process)
    return task_process_copy(tasks, thread->process, parent);
  return tasks->error;
}

int tasks_name(struct tasks *tasks, uint32_t process, uint32_t number, const char *name)
{
  struct task_thread *thread = tasks_thread(tasks, process, number);

  if (!thread || !strncmp(thread->name, name, sizeof(thread->name) - 1))
    return tasks->error;
  strncpy(thread->name, name, sizeof(thread->name) - 1);
  thread->name[sizeof(thread->name) - 1] = 0;
  if (!thread->has_stream || !tasks->sink->describe)
    return tasks->error;
  return tasks_fail(tasks, tasks->sink->describe(tasks->sink->data, thread->stream, "name", thread->name));
}

int tasks_exit(struct tasks *tasks, uint32_t number, uint32_t thread_number)
{
  struct task_thread *thread = id_table_find(&tasks->threads, thread_number);
  struct task_process *process;

  (void)number;
  if (!thread)
    return tasks->error;
  process = thread->process;
  task_thread_flush(tasks, thread);
  tasks_title_put(tasks, thread);
  tasks_signals_forget(tasks, thread_number);
  thread_drop(tasks, thread);
  if (!process->threads) {
    tasks_title_forget(tasks, process->number);
    process_drop(tasks, process);
  }
  return tasks->error;
}

/* ---- queries ---- */

uint32_t tasks_space(const struct task_thread *thread)
{
  return thread->process->space;
}

uint32_t tasks_number(const struct task_thread *thread)
{
  return thread->process->number;
}

bool tasks_is_32(const struct task_thread *thread)
{
  return thread->process->is_32;
}

struct task_counts tasks_counts(const struct tasks *tasks)
{
  return tasks->counts;
}
