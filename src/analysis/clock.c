/* SPDX-License-Identifier: Apache-2.0
 *
 * See clock.h. The time that a thread did not run is the time that has passed between two stamps with its CPU time,
 * less the CPU time. The recorder reads the CPU time after each long system call, and each time that a part of the log
 * is full. A call that was under way takes what the thread has waited since the reading before, up to its duration. The
 * rest is counted at the stamp: where in between another thread had the processor is not known.
 */
#include "analysis/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct clock_stream {
  bool has_stamp, has_used, is_in_call;
  int cpu;
  uint64_t time;            /* of the last stamp */
  uint64_t used, used_time; /* the last stamp with CPU time */
  uint64_t waited, held;    /* so far */
  uint64_t held_since;      /* held since the last stamp with CPU time */
  struct analysis_syscall call;
  uint64_t call_held; /* `held` when it began */
  char paths[2][TRACE_PATH_MAX + 1];
};

struct analysis_clock {
  struct analysis_clock_listener listener;
  struct clock_stream **streams;
  size_t count, capacity;
  bool has_times;
};

int analysis_clock_new(const struct analysis_clock_listener *listener, struct analysis_clock **ret_clock)
{
  struct analysis_clock *clock = calloc(1, sizeof(*clock));

  if (!clock)
    return -ENOMEM;
  if (listener)
    clock->listener = *listener;
  *ret_clock = clock;
  return 0;
}

void analysis_clock_free(struct analysis_clock *clock)
{
  if (!clock)
    return;
  for (size_t i = 0; i < clock->count; i++)
    free(clock->streams[i]);
  free(clock->streams);
  free(clock);
}

static const struct clock_stream *stream_find(const struct analysis_clock *clock, uint32_t number)
{
  return number < clock->count ? clock->streams[number] : NULL;
}

static struct clock_stream *stream_get(struct analysis_clock *clock, uint32_t number)
{
  struct clock_stream **place =
    number < LB_TRACE_STREAMS_MAX ? array_at(&clock->streams, number, &clock->count, &clock->capacity) : NULL;

  if (place && !*place) {
    *place = calloc(1, sizeof(**place));
    if (*place)
      (*place)->cpu = -1;
  }
  return place ? *place : NULL;
}

/* ---- system calls ---- */

static void call_begin(struct clock_stream *stream, const struct trace_stamp *stamp)
{
  stream->is_in_call = true;
  stream->call_held = stream->held;
  stream->call =
    (struct analysis_syscall){.stream = stamp->stream, .branch = stamp->number, .call = *stamp, .start = stamp->time};
  for (unsigned i = 0; i < 2; i++) {
    if (!stamp->paths[i])
      continue;
    snprintf(stream->paths[i], sizeof(stream->paths[i]), "%s", stamp->paths[i]);
    stream->call.call.paths[i] = stream->paths[i];
  }
}

static int call_end(struct analysis_clock *clock, struct clock_stream *stream, uint64_t time)
{
  struct analysis_syscall *call = &stream->call;
  const struct analysis_moment start = {.time = call->start, .held = stream->call_held};
  const struct analysis_moment end = {.time = time, .waited = call->waited, .held = stream->held};
  const struct analysis_duration passed = analysis_moment_since(&start, &end);

  stream->is_in_call = false;
  call->duration = passed.all;
  call->waited = passed.waited;
  return clock->listener.call ? clock->listener.call(clock->listener.data, call) : 0;
}

static int call_return(struct analysis_clock *clock, struct clock_stream *stream, const struct trace_stamp *stamp)
{
  if (!stream->is_in_call)
    return 0;
  stream->call.has_returned = true;
  stream->call.result = stamp->result;
  stream->call.branch = stamp->number;
  return call_end(clock, stream, stamp->time);
}

/* ---- stamps ---- */

/* The thread has not run for so long since the last stamp with its CPU time. */
static uint64_t idle_since(const struct clock_stream *stream, const struct trace_stamp *stamp)
{
  uint64_t passed = stamp->time > stream->used_time ? stamp->time - stream->used_time : 0;
  uint64_t ran = stamp->used > stream->used ? stamp->used - stream->used : 0;
  uint64_t idle = passed > ran ? passed - ran : 0;

  return idle > stream->held_since ? idle - stream->held_since : 0;
}

static void used_take(struct clock_stream *stream, const struct trace_stamp *stamp)
{
  uint64_t idle = stream->has_used ? idle_since(stream, stamp) : 0;

  if (stream->is_in_call) {
    uint64_t passed = stamp->time > stream->call.start ? stamp->time - stream->call.start : 0;

    stream->call.waited += idle < passed ? idle : passed;
  }
  stream->waited += idle;
  stream->has_used = true;
  stream->used = stamp->used;
  stream->used_time = stamp->time;
  stream->held_since = 0;
}

static int stamp_take(struct analysis_clock *clock, struct clock_stream *stream, const struct trace_stamp *stamp)
{
  int r = 0;

  clock->has_times = stream->has_stamp = true;
  stream->time = stamp->time;
  if (stamp->has_cpu)
    stream->cpu = stamp->cpu;
  if (stamp->type == TRACE_STAMP_HELD && stamp->result > 0) {
    stream->held += (uint64_t)stamp->result;
    stream->held_since += (uint64_t)stamp->result;
  }
  if (stamp->has_used)
    used_take(stream, stamp);
  if (stamp->type == TRACE_STAMP_CALL) {
    if (stream->is_in_call) /* a signal came before it, or it does not return: rt_sigreturn */
      r = call_end(clock, stream, stream->call.start);
    call_begin(stream, stamp);
  } else if (stamp->type == TRACE_STAMP_RETURN) {
    r = call_return(clock, stream, stamp);
  } else if (stamp->type == TRACE_STAMP_END && stream->is_in_call) {
    r = call_end(clock, stream, stamp->time);
  } else if (stamp->type == TRACE_STAMP_SIGNAL && clock->listener.signal) {
    r = clock->listener.signal(clock->listener.data, stamp);
  }
  return r;
}

int analysis_clock_record(struct analysis_clock *clock, const struct lb_trace_record *record)
{
  const struct trace_stamp *stamp = trace_record_stamp(record);
  struct clock_stream *stream = stamp ? stream_get(clock, stamp->stream) : NULL;

  if (!stamp)
    return 0;
  return stream ? stamp_take(clock, stream, stamp) : -ENOMEM;
}

int analysis_clock_end(struct analysis_clock *clock)
{
  int r = 0;

  for (size_t i = 0; i < clock->count && r >= 0; i++)
    if (clock->streams[i] && clock->streams[i]->is_in_call)
      r = call_end(clock, clock->streams[i], clock->streams[i]->time);
  return r;
}

/* ---- moments ---- */

bool analysis_clock_at(const struct analysis_clock *clock, const struct lb_trace_reader *reader, uint32_t number,
                       uint64_t branch, struct analysis_moment *ret_moment)
{
  const struct clock_stream *stream = stream_find(clock, number);
  uint64_t time = trace_reader_time(reader, branch);

  if (!stream || !stream->has_stamp || time == TRACE_NO_TIME)
    return false;
  *ret_moment = (struct analysis_moment){time, stream->waited, stream->held};
  return true;
}

bool analysis_clock_last(const struct analysis_clock *clock, uint32_t number, struct analysis_moment *ret_moment)
{
  const struct clock_stream *stream = stream_find(clock, number);

  if (!stream || !stream->has_stamp)
    return false;
  *ret_moment = (struct analysis_moment){stream->time, stream->waited, stream->held};
  return true;
}

const struct analysis_syscall *analysis_clock_call(const struct analysis_clock *clock, uint32_t number)
{
  const struct clock_stream *stream = stream_find(clock, number);

  return stream && stream->is_in_call ? &stream->call : NULL;
}

int analysis_clock_cpu(const struct analysis_clock *clock, uint32_t number)
{
  const struct clock_stream *stream = stream_find(clock, number);

  return stream ? stream->cpu : -1;
}

bool analysis_clock_has_times(const struct analysis_clock *clock)
{
  return clock->has_times;
}
