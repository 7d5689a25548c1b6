/* SPDX-License-Identifier: Apache-2.0
 *
 * Times for formats: the time axis of a timeline, and the stamps, system calls and signals of a trace. A trace without
 * stamps has no times; its axis is the number of instructions that a thread has run.
 */
#include "export/times.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct times_stream {
  bool has_time;
  uint64_t last;  /* place of the newest call on the axis */
  uint32_t *held; /* functions that were entered before a time was known */
  size_t count, capacity;
};

static bool is_stream_wanted(const struct export_job *job, uint32_t stream)
{
  return job->options.stream == LB_TRACE_ALL || job->options.stream == stream;
}

/* ---- calls ---- */

static struct times_stream *stream_get(struct export_job *job, uint32_t number)
{
  return array_at(&job->times, number, &job->time_count, &job->time_capacity);
}

/* The number of functions held is at most that of open calls, which the analysis bounds. */
static int call_hold(struct times_stream *stream, const struct analysis_call *call)
{
  uint32_t *added;

  if (!call->is_enter) {
    stream->count -= stream->count > 0;
    return 0;
  }
  added = array_append(&stream->held, &stream->count, &stream->capacity);
  if (!added)
    return -ENOMEM;
  *added = call->function;
  return 0;
}

/* The first time of a stream is known: gives the calls that were held. */
static int held_give(struct export_job *job, uint32_t number, const struct analysis_moment *moment)
{
  struct times_stream *stream = stream_get(job, number);
  int r = 0;

  if (!stream)
    return -ENOMEM;
  stream->has_time = true;
  for (size_t i = 0; i < stream->count && r >= 0; i++) {
    const struct analysis_call call = {
      .stream = number,
      .depth = (uint32_t)i,
      .is_enter = true,
      .how = ANALYSIS_CALL_START,
      .function = stream->held[i],
      .has_moment = true,
      .moment = *moment,
    };

    r = job->options.format->call(job, &call);
  }
  stream->count = 0;
  return r;
}

int times_call(struct export_job *job, const struct analysis_call *call)
{
  struct times_stream *stream = stream_get(job, call->stream);
  int r = 0;

  if (!stream)
    return -ENOMEM;
  if (job->is_by_time && !stream->has_time && !call->has_moment) {
    job->has_untimed = true;
    return call_hold(stream, call);
  }
  if (job->is_by_time && !stream->has_time)
    r = held_give(job, call->stream, &call->moment);
  return r < 0 ? r : job->options.format->call(job, call);
}

/* ---- the clock ---- */

static int clock_call(void *data, const struct analysis_syscall *call)
{
  struct export_job *job = data;
  const struct export_format *format = job->options.format;
  int r = times_choose(job);

  if (r < 0 || !job->is_by_time || !format->syscall || !is_stream_wanted(job, call->stream))
    return r;
  return format->syscall(job, call);
}

static int clock_signal(void *data, const struct trace_stamp *stamp)
{
  struct export_job *job = data;
  const struct export_format *format = job->options.format;
  int r = times_choose(job);

  if (r < 0 || !job->is_by_time || !format->signal || !is_stream_wanted(job, stamp->stream))
    return r;
  return format->signal(job, stamp);
}

int times_new(struct export_job *job, struct lb_trace_reader *reader)
{
  const struct export_format *format = job->options.format;
  const struct analysis_clock_listener listener = {job, clock_call, clock_signal};
  int r;

  assert(job->calls && (job->options.words || !(format->needs & EXPORT_TIMES)));
  if (job->options.by == EXPORT_BY_INSTRUCTIONS ||
      (job->options.by == EXPORT_BY_DEFAULT && !(format->needs & EXPORT_TIMES)))
    return 0;
  r = analysis_clock_new(&listener, &job->clock);
  if (r < 0)
    return r;
  trace_reader_want_stamps(reader);
  analysis_calls_use_clock(job->calls, job->clock, reader);
  return 0;
}

void times_done(struct export_job *job)
{
  analysis_clock_free(job->clock);
  for (size_t i = 0; i < job->time_count; i++)
    free(job->times[i].held);
  free(job->times);
}

/* The value is "NAME monotonic NANOSECONDS realtime NANOSECONDS". */
static void start_take(struct export_job *job, const struct lb_trace_record *record)
{
  if (record->type == LB_TRACE_META && !strcmp(record->meta.key, "clock") && !job->has_start)
    job->has_start = sscanf(record->meta.value, "%*31s monotonic %20" SCNu64 " realtime %20" SCNu64, &job->monotonic,
                            &job->realtime) == 2;
}

int times_record(struct export_job *job, const struct lb_trace_record *record)
{
  const struct export_format *format = job->options.format;
  const struct trace_stamp *stamp = trace_record_stamp(record);
  int r;

  if (!job->clock)
    return 0;
  start_take(job, record);
  r = stamp && job->is_by_time ? held_give(job, stamp->stream, &(struct analysis_moment){.time = stamp->time}) : 0;
  if (r >= 0)
    r = analysis_clock_record(job->clock, record);
  if (!stamp || r < 0)
    return r;
  r = times_choose(job);
  if (r < 0 || !job->is_by_time || !format->stamp || !is_stream_wanted(job, stamp->stream))
    return r;
  return format->stamp(job, stamp);
}

int times_end(struct export_job *job)
{
  return job->clock ? analysis_clock_end(job->clock) : 0;
}

/* ---- the axis ---- */

int times_choose(struct export_job *job)
{
  if (job->is_axis_chosen)
    return 0;
  job->is_axis_chosen = true;
  job->is_by_time = job->clock && (job->has_start || analysis_clock_has_times(job->clock));
  if (job->options.by == EXPORT_BY_TIME && !job->is_by_time)
    return export_fail(job,
                       "the trace has no times; record it again with this version of lbr, or use --by instructions");
  return 0;
}

int export_call_time(struct export_job *job, const struct analysis_call *call, uint64_t *ret_time)
{
  struct times_stream *stream = stream_get(job, call->stream);
  uint64_t time = call->instructions;

  if (!stream)
    return -ENOMEM;
  if (job->is_by_time)
    time = call->has_moment ? call->moment.time : stream->last;
  if (time > stream->last)
    stream->last = time;
  *ret_time = stream->last;
  return 0;
}
