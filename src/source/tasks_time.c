/* SPDX-License-Identifier: Apache-2.0
 *
 * The times of threads on their way into a trace, as stamps between branches. A thread that has no branches yet has no
 * stream either: the last time that is known of it is then when it begins.
 */
#include "source/tasks_inside.h"
#include "trace/trace.h"

void tasks_clock(struct tasks *tasks, uint64_t start)
{
  tasks->start = start;
}

/* Times of different processors may differ a little: those of a thread never go back. */
static void time_take(const struct tasks *tasks, struct task_thread *thread, uint64_t time)
{
  time = time > tasks->start ? time - tasks->start : 0;
  if (time > thread->time)
    thread->time = time;
}

static int stamp_give(struct tasks *tasks, const struct task_thread *thread, unsigned type)
{
  const struct trace_stamp stamp = {
    .type = (uint8_t)type,
    .time = thread->time,
    .has_cpu = thread->cpu <= UINT16_MAX,
    .cpu = thread->cpu <= UINT16_MAX ? (uint16_t)thread->cpu : 0,
  };

  return tasks_fail(tasks, tasks->sink->stamp(tasks->sink->data, thread->stream, &stamp));
}

int tasks_time_open(struct tasks *tasks, struct task_thread *thread)
{
  return thread->has_time && tasks->sink->stamp ? stamp_give(tasks, thread, TRACE_STAMP_START) : 0;
}

static int time_put(struct tasks *tasks, struct task_thread *thread, unsigned type, uint64_t time, uint32_t cpu)
{
  if (!tasks->sink->stamp || tasks->error < 0)
    return tasks->error;
  time_take(tasks, thread, time);
  thread->cpu = cpu;
  thread->has_time = true;
  if (!thread->has_stream || task_thread_flush(tasks, thread) < 0)
    return tasks->error;
  return stamp_give(tasks, thread, type);
}

int tasks_time(struct tasks *tasks, struct task_thread *thread, uint64_t time, uint32_t cpu)
{
  return time_put(tasks, thread, TRACE_STAMP_TIME, time, cpu);
}

int tasks_time_end(struct tasks *tasks, struct task_thread *thread, uint64_t time, uint32_t cpu)
{
  return time_put(tasks, thread, TRACE_STAMP_END, time, cpu);
}
