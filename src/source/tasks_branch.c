/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of threads and the gaps between them: collected in batches, then given to the sink.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "source/tasks_inside.h"

/* A thread gets a stream when there is something to write about it. */
static int thread_open(struct tasks *tasks, struct task_thread *thread)
{
  const struct lb_trace_stream stream = {.space = thread->process->space,
                                         .process = thread->process->number,
                                         .thread = thread->number,
                                         .name = thread->name};
  int r;

  if (thread->has_stream)
    return 0;
  r = tasks->sink->stream(tasks->sink->data, &stream, &thread->stream);
  if (r < 0)
    return tasks_fail(tasks, r);
  thread->has_stream = true;
  tasks->counts.threads++;
  tasks->counts.processes += !thread->process->is_counted;
  thread->process->is_counted = true;
  return tasks_time_open(tasks, thread);
}

int task_thread_flush(struct tasks *tasks, struct task_thread *thread)
{
  size_t count = thread->count;

  thread->count = 0;
  if (!count || tasks->error < 0)
    return tasks->error;
  return tasks_fail(tasks, tasks->sink->branches(tasks->sink->data, thread->stream, thread->batch, count));
}

int tasks_branch(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                 unsigned flags)
{
  const unsigned width = thread->process->is_32 ? LB_BRANCH_FROM_32 | LB_BRANCH_TO_32 : 0;

  assert(kind < LB_BRANCH_KINDS && thread->count < TASKS_BATCH);
  if (tasks->error < 0 || thread_open(tasks, thread) < 0)
    return tasks->error;
  if (!thread->batch && !(thread->batch = malloc(TASKS_BATCH * sizeof(*thread->batch))))
    return tasks_fail(tasks, -ENOMEM);
  thread->batch[thread->count++] = (struct lb_branch){
    .from = from, .to = to, .kind = (uint8_t)kind, .flags = (uint8_t)(flags | width), .from_cpl = 3, .to_cpl = 3};
  return thread->count == TASKS_BATCH ? task_thread_flush(tasks, thread) : 0;
}

int tasks_gap(struct tasks *tasks, struct task_thread *thread, enum lb_trace_gap_reason reason, uint64_t count)
{
  struct lb_trace_gap gap = {.stream = LB_TRACE_ALL, .reason = (uint8_t)reason, .count = thread ? count : 0};

  if (!thread)
    tasks_flush(tasks);
  else if (thread_open(tasks, thread) >= 0)
    task_thread_flush(tasks, thread);
  if (tasks->error < 0)
    return tasks->error;
  if (thread)
    gap.stream = thread->stream;
  tasks->counts.lost += reason == LB_TRACE_LOST;
  return tasks_fail(tasks, tasks->sink->gap(tasks->sink->data, &gap));
}

int task_process_flush(struct tasks *tasks, const struct task_process *process)
{
  for (size_t i = 0; i < tasks->threads.count; i++) {
    struct task_thread *thread = tasks->threads.entries[i].item;

    if (!process || thread->process == process)
      task_thread_flush(tasks, thread);
  }
  return tasks->error;
}

int tasks_flush(struct tasks *tasks)
{
  return task_process_flush(tasks, NULL);
}
