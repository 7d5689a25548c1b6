/* SPDX-License-Identifier: Apache-2.0
 *
 * The start of the runtime in a process that runs already. lbr has stopped all threads, blocked their signals and
 * mapped the runtime (process/attach.c). One thread prepares the process and a region for each thread. Then each thread
 * enters the cache where it was stopped.
 */
#include <asm/unistd.h>
#include <linux/mman.h>
#include <linux/signal.h>

#include "process/runtime/runtime.h"
#include "process/runtime/signal.h"

static char exe[PROGRAM_PATH], root[32];

static const char *text_at(const struct attach_info *info, uint64_t offset)
{
  return (const char *)info + offset;
}

/* The errors of a start leave the process as it was. */
_Noreturn void attach_fail(enum process_error error, int system_error)
{
  struct attach_info *info = the_runtime.attaching;

  info->error = (int32_t)error;
  info->system_error = system_error;
  the_runtime.attaching = NULL;
  runtime_stop(info);
}

static void ranges_adopt(struct runtime *runtime, const struct attach_info *info)
{
  const struct attach_range *range = (const struct attach_range *)text_at(info, info->ranges);

  for (uint32_t i = 0; i < info->range_count; i++, range++)
    map_adopt(runtime, range, range->path ? text_at(info, range->path) : NULL);
}

static void thread_adopt(struct runtime *runtime, struct attach_thread *from, uint32_t creator)
{
  struct thread *thread = thread_new(runtime, 0, creator);

  if (!thread)
    attach_fail(PROCESS_E_TOO_MANY_THREADS, 0);
  memcpy(thread->state->registers, from->registers, sizeof(from->registers));
  thread->state->rip = from->rip;
  thread->state->flags = from->flags;
  thread->state->is_unwanted = from->is_unwanted;
  thread->signal_mask = from->mask & ~SIGNALS_NEVER;
  thread->rseq = from->rseq;
  thread->rseq_size = from->rseq_size;
  thread->rseq_signature = from->rseq_signature;
  thread->interrupted = from->interrupted;
  thread->interrupted_call = from->call;
  from->thread = (uint64_t)thread;
  from->state = (uint64_t)thread->state;
}

/* The first of the recorded threads stands for the process. */
static void threads_mark(const struct attach_thread *threads, uint32_t count)
{
  uint32_t first = 0;

  while (first < count && threads[first].is_unwanted)
    first++;
  if (first < count)
    ((struct thread *)threads[first].thread)->state->is_first = true;
}

/* All threads have a creator, the first thread: otherwise they would count as a program that was executed
 * (drain_life.c). */
_Noreturn void attach_process(struct attach_info *info)
{
  struct runtime *runtime = &the_runtime;
  struct attach_thread *threads = (struct attach_thread *)text_at(info, info->threads);

  runtime->attaching = info;
  text_put(exe, text_at(info, info->exe));
  runtime->exe = exe;
  text_put(root, text_at(info, info->root));
  runtime->root = root;
  runtime->has_wrgsbase = info->has_wrgsbase;
  runtime->has_entered = true;
  runtime->numbering = info->numbering;
  runtime->is_adopted = true;
  runtime->is_filtered = info->has_filter;
  runtime_open(runtime, info->fd);
  runtime_open_space(runtime);
  ranges_adopt(runtime, info);
  trigger_add(runtime, (const uint64_t *)text_at(info, info->triggers), (uint32_t)info->trigger_count);
  for (uint32_t i = 0; i < info->thread_count; i++)
    thread_adopt(runtime, &threads[i], threads[0].number);
  threads_mark(threads, info->thread_count);
  signal_adopt(runtime);
  if (info->is_code_fixed)
    cache_open_all(runtime);
  runtime->has_thread = true;
  runtime->attaching = NULL;
  runtime_stop(info);
}

/* The kernel would compare the addresses of critical sections with those of the cache, so rseq(2) is off meanwhile: its
 * users see that the number of the processor is unknown. */
static void rseq_leave(const struct thread *thread)
{
  enum { UNREGISTER = 1 };

  if (thread->rseq)
    kernel_call(__NR_rseq, thread->rseq, thread->rseq_size, UNREGISTER, thread->rseq_signature, 0, 0);
}

_Noreturn void attach_thread(struct thread *thread)
{
  thread_enter(thread);
  kernel_call(__NR_sigaltstack, 0, (uint64_t)&thread->signal_stack, 0, 0, 0, 0);
  rseq_leave(thread);
  stamp_used(thread, STAMP_START);
  signal_init_thread(thread);
  dispatch_enter();
}
