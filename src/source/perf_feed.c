/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning of records: processes and mappings go into the task table, branches through the decoder of their source.
 * The branches of a sample are a window of their own: nothing was recorded between two samples.
 */
#include "source/bts.h"
#include "source/flow.h"
#include "source/perf.h"

/* ---- branch stacks ---- */

static unsigned branch_flags(const struct perf_branch *branch)
{
  return (branch->is_mispredicted ? LB_BRANCH_MISPREDICTED : 0u) | (branch->is_in_tx ? LB_BRANCH_IN_TSX : 0u);
}

/* The code is the best evidence, if it is available. perf has read it, too, when the branch was taken. */
static unsigned branch_kind(struct perf_session *session, const struct task_thread *thread,
                            const struct perf_branch *branch)
{
  struct task_instruction instruction = tasks_instruction(session->tasks, thread, branch->from);

  if (branch->is_abort || !instruction.length || instruction.kind < 0)
    return perf_branch_kind(branch);
  return (unsigned)instruction.kind;
}

int perf_feed_stack(struct perf_session *session, struct task_thread *thread, const struct perf_branch_stack *stack)
{
  bool is_new = thread->is_begun;
  int r = 0;

  for (uint64_t i = stack->count; i-- > 0 && r >= 0;) {
    struct perf_branch branch = perf_branch_get(stack->entries + i * PERF_BRANCH_SIZE);
    unsigned kind = branch_kind(session, thread, &branch);

    if (!branch.from || flow_is_kernel(branch.from) || flow_is_kernel(branch.to) ||
        (session->kinds && !(session->kinds >> kind & 1)))
      continue;
    if (is_new)
      r = tasks_gap(session->tasks, thread, LB_TRACE_SAMPLED, 0);
    is_new = false;
    if (r >= 0)
      r = flow_branch(session->tasks, thread, branch.from, branch.to, kind, branch_flags(&branch));
  }
  return r;
}

/* ---- AUX data ---- */

static int aux_take(struct perf_session *session, const struct perf_item *item, const struct perf_record *record)
{
  struct task_thread *thread = tasks_thread(session->tasks, record->process, record->thread);
  struct perf_cpu *cpu = &session->cpus[item->place];
  const uint8_t *bytes = item->bytes + item->size;
  bool is_lost = item->is_lost || record->aux.flags & (PERF_AUX_TRUNCATED | PERF_AUX_PARTIAL | PERF_AUX_COLLISION);
  int r = 0;

  if (!thread)
    return tasks_gap(session->tasks, NULL, LB_TRACE_LOST, 0);
  if (!item->is_lost && item->aux_size && session->kind == SOURCE_BTS)
    r = bts_decode(session->tasks, thread, bytes, item->aux_size);
  else if (!item->is_lost && item->aux_size && session->kind == SOURCE_PT)
    r = pt_decode(session->tasks, thread, &session->model, &cpu->pt, bytes, item->aux_size);
  if (r >= 0 && is_lost) {
    cpu->pt = (struct pt_state){0};
    r = flow_lose(session->tasks, thread, 0);
  }
  while (r >= 0 && tasks_exec_take(session->tasks, thread)) /* it was not seen in the branches */
    ;
  return r < 0 ? r : tasks_time(session->tasks, thread, record->time, record->cpu);
}

/* ---- all records ---- */

/* The time of a record about a thread. */
static int time_take(struct perf_session *session, uint32_t process, uint32_t number, const struct perf_record *record)
{
  struct task_thread *thread = tasks_thread(session->tasks, process, number);

  return thread ? tasks_time(session->tasks, thread, record->time, record->cpu) : 0;
}

static int comm_take(struct perf_session *session, const struct perf_record *record)
{
  bool is_late = session->kind == SOURCE_BTS || session->kind == SOURCE_PT;
  int (*exec)(struct tasks *, uint32_t, uint32_t, const char *) = is_late ? tasks_exec_later : tasks_exec;
  struct task_thread *thread;
  int r = (record->comm.is_exec ? exec : tasks_name)(session->tasks, record->comm.process, record->comm.thread,
                                                     record->comm.name);

  if (r < 0 || !record->comm.is_exec)
    return r;
  thread = tasks_thread(session->tasks, record->comm.process, record->comm.thread);
  if (!thread || thread->has_stream) /* branches from before are still to come */
    return 0;
  return tasks_time(session->tasks, thread, record->time, record->cpu);
}

/* All branches of a sample have its time: they were taken just before it. */
static int sample_take(struct perf_session *session, const struct perf_record *record)
{
  struct task_thread *thread = tasks_thread(session->tasks, record->process, record->thread);
  int r;

  if (!thread || !record->sample.stack.count)
    return 0;
  r = tasks_time(session->tasks, thread, record->time, record->cpu);
  if (r >= 0)
    r = perf_feed_stack(session, thread, &record->sample.stack);
  return r < 0 ? r : tasks_time(session->tasks, thread, record->time, record->cpu);
}

static int fork_take(struct perf_session *session, const struct perf_record *record)
{
  int r = tasks_fork(session->tasks, record->task.process, record->task.thread, record->task.parent,
                     record->task.parent_thread);

  return r < 0 ? r : time_take(session, record->task.process, record->task.thread, record);
}

static int map_take(struct perf_session *session, const struct perf_record *record)
{
  const struct task_map map = {record->map.address, record->map.size, record->map.offset, record->map.path};

  return record->map.is_executable ? tasks_map(session->tasks, record->map.process, &map) : 0;
}

static int exit_take(struct perf_session *session, const struct perf_record *record)
{
  struct task_thread *thread = tasks_thread(session->tasks, record->task.process, record->task.thread);
  int r = thread ? flow_end(session->tasks, thread) : 0;

  if (thread && thread->has_stream && r >= 0)
    r = tasks_time_end(session->tasks, thread, record->time, record->cpu);
  return r < 0 ? r : tasks_exit(session->tasks, record->task.process, record->task.thread);
}

int perf_feed(void *data, const struct perf_item *item)
{
  struct perf_session *session = data;
  struct perf_record record;

  if (!item->size || perf_record_parse(&session->layout, item->bytes, item->size, &record) < 0)
    return tasks_gap(session->tasks, NULL, LB_TRACE_LOST, 0);
  switch (record.kind) {
  case PERF_SAMPLE:
    return sample_take(session, &record);
  case PERF_MAP:
    return map_take(session, &record);
  case PERF_COMM:
    return comm_take(session, &record);
  case PERF_FORK:
    return fork_take(session, &record);
  case PERF_EXIT:
    return exit_take(session, &record);
  case PERF_LOST:
    return tasks_gap(session->tasks, NULL, LB_TRACE_LOST, 0);
  case PERF_AUX:
    return aux_take(session, item, &record);
  case PERF_START:
    return time_take(session, record.start.process, record.start.thread, &record);
  default:
    return 0;
  }
}
