/* SPDX-License-Identifier: Apache-2.0
 *
 * Time in a timeline: the stamps of a trace, the moments of its calls, the part that is chosen by time, and what
 * happened: system calls, signals, and waits. A thread that was in a system call when the part begins or ends is shown
 * in it up to the edge.
 */
#include <errno.h>

#include "analysis/timeline_inside.h"

static bool has_time_part(const struct timeline *timeline)
{
  return timeline->options.time_from || (timeline->options.time_to && timeline->options.time_to != UINT64_MAX);
}

static bool is_stream_wanted(const struct timeline *timeline, uint32_t number)
{
  return timeline->options.stream == LB_TRACE_ALL || timeline->options.stream == number;
}

/* ---- moments ---- */

static uint64_t greater(uint64_t one, uint64_t other)
{
  return one > other ? one : other;
}

void timeline_moment_reach(struct timeline *timeline, struct timeline_stream *stream,
                           const struct analysis_moment *moment)
{
  if (!stream->has_time)
    stream->begin = stream->now = *moment;
  stream->has_time = timeline->has_times = true;
  stream->now.time = greater(stream->now.time, moment->time);
  stream->now.waited = greater(stream->now.waited, moment->waited);
  stream->now.held = greater(stream->now.held, moment->held);
}

/* The clock knows nothing of a stream before its first stamp. The reader has the time of the stamp before a part. */
bool timeline_moment_at(const struct timeline *timeline, uint32_t number, uint64_t branch,
                        struct analysis_moment *ret_moment)
{
  const struct lb_trace_reader *reader = timeline->options.reader;
  const struct timeline_stream *stream = &timeline->streams[number];
  uint64_t time;

  if (!timeline->clock)
    return false;
  if (analysis_clock_at(timeline->clock, reader, number, branch, ret_moment))
    return true;
  time = trace_reader_time(reader, branch);
  if (time == TRACE_NO_TIME)
    return false;
  *ret_moment = (struct analysis_moment){time, stream->now.waited, stream->now.held};
  return true;
}

void timeline_moment_settle(struct timeline *timeline, struct timeline_stream *stream, struct analysis_call *call)
{
  struct analysis_moment moment = call->moment;
  bool is_known =
    call->has_moment || (timeline->is_in_branches && timeline_moment_at(timeline, call->stream, call->branch, &moment));

  if (is_known && !stream->is_past && stream->is_within)
    timeline_moment_reach(timeline, stream, &moment);
  call->has_moment = stream->has_time;
  call->moment = stream->now;
}

size_t timeline_first_at(const struct lb_trace_reader *reader, const struct lb_trace_branches *branches, uint64_t time)
{
  size_t low = 0, high = branches->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (trace_reader_time(reader, branches->first + middle) < time)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* ---- the end of a part ---- */

/* Cuts a moment at the end of the part. Of the time since the moment before, a thread has waited at the end. */
static void moment_cut(const struct timeline *timeline, const struct timeline_stream *stream,
                       struct analysis_moment *moment)
{
  uint64_t to = timeline->options.time_to, beyond;

  if (!to || moment->time <= to)
    return;
  beyond = moment->time - to;
  moment->time = to;
  moment->waited = greater(stream->now.waited, moment->waited > beyond ? moment->waited - beyond : 0);
  moment->held = greater(stream->now.held, moment->held > beyond ? moment->held - beyond : 0);
}

void timeline_part_end(struct timeline *timeline, uint32_t number, uint64_t branch)
{
  struct timeline_stream *stream = &timeline->streams[number];
  struct analysis_moment moment;

  if (timeline_moment_at(timeline, number, branch, &moment)) {
    moment_cut(timeline, stream, &moment);
    timeline_moment_reach(timeline, stream, &moment);
  }
  stream->is_past = true;
}

/* ---- events ---- */

/* Cuts an event at the edges of the part, completes it with the function that runs, and keeps it. */
static int event_add(struct timeline *timeline, struct timeline_stream *stream, struct timeline_event *event)
{
  uint64_t to = timeline->options.time_to ? timeline->options.time_to : UINT64_MAX;
  uint64_t from = stream->has_time ? stream->begin.time : timeline->options.time_from;

  if (!stream->is_within || stream->is_past || event->start >= to || (event->start < from && event->end <= from))
    return 0;
  event->start = greater(event->start, from);
  event->end = greater(event->end < to ? event->end : to, event->start);
  event->depth = (uint16_t)(stream->shown < TIMELINE_DEPTH_MAX ? stream->shown : TIMELINE_DEPTH_MAX);
  event->function = TIMELINE_NO_FUNCTION;
  for (size_t i = stream->count; i-- > 0 && event->function == TIMELINE_NO_FUNCTION;)
    if (stream->frames[i].is_shown)
      event->function = stream->frames[i].function;
  return timeline_events_add(&timeline->events, event);
}

/* The frames of a stream are those of the function that has made the call: there is no branch between its start and its
 * end. */
static int call_take(void *data, const struct analysis_syscall *call)
{
  struct timeline *timeline = data;
  struct timeline_stream *stream = timeline_stream_get(timeline, call->stream);
  struct timeline_event event = {
    .kind = TIMELINE_SYSCALL,
    .stream = call->stream,
    .start = call->start,
    .end = call->start + call->duration,
    .duration = call->duration,
    .waited = call->waited < call->duration ? call->waited : call->duration,
    .has_returned = call->has_returned,
    .code = call->call.code,
    .result = call->result,
    .argument_count = call->call.argument_count,
    .paths = {(char *)(uintptr_t)call->call.paths[0], (char *)(uintptr_t)call->call.paths[1]},
  };

  if (!stream)
    return -ENOMEM;
  memcpy(event.arguments, call->call.arguments, sizeof(event.arguments));
  return event_add(timeline, stream, &event);
}

static int signal_take(void *data, const struct trace_stamp *stamp)
{
  struct timeline *timeline = data;
  struct timeline_stream *stream = timeline_stream_get(timeline, stamp->stream);
  struct timeline_event event = {
    .kind = TIMELINE_SIGNAL,
    .stream = stamp->stream,
    .start = stamp->time,
    .end = stamp->time,
    .code = stamp->code,
    .result = stamp->result,
    .value = stamp->value,
  };

  return stream ? event_add(timeline, stream, &event) : -ENOMEM;
}

/* The thread has not run for some of the time since its CPU time was last read. A system call that is under way
 * accounts for as much of that as it can (clock.c); the rest is idle time. */
static int idle_take(struct timeline *timeline, struct timeline_stream *stream, const struct trace_stamp *stamp,
                     const struct analysis_moment *now)
{
  struct timeline_event event = {
    .kind = TIMELINE_IDLE,
    .stream = stamp->stream,
    .start = stream->read_time,
    .end = greater(stamp->time, stream->read_time),
    .waited = now->waited > stream->read_waited ? now->waited - stream->read_waited : 0,
  };
  bool is_first = !stream->has_read;
  uint64_t in_call = stream->is_in_call && stamp->time > stream->call_start ? stamp->time - stream->call_start : 0;

  event.waited -= event.waited < in_call ? event.waited : in_call;
  if (in_call && stream->call_start > event.start)
    event.end = stream->call_start;
  stream->has_read = true;
  stream->read_time = stamp->time;
  stream->read_waited = now->waited;
  event.duration = event.end - event.start;
  return is_first || !event.waited ? 0 : event_add(timeline, stream, &event);
}

static int held_take(struct timeline *timeline, struct timeline_stream *stream, const struct trace_stamp *stamp)
{
  uint64_t held = stamp->result > 0 ? (uint64_t)stamp->result : 0;
  struct timeline_event event = {
    .kind = TIMELINE_HELD,
    .stream = stamp->stream,
    .start = stamp->time > held ? stamp->time - held : 0,
    .end = stamp->time,
    .duration = held,
    .waited = held,
  };

  return held ? event_add(timeline, stream, &event) : 0;
}

/* ---- stamps ---- */

/* A part that is chosen by time begins at its first stamp, if there is none of its branches before. The thread may have
 * been in a system call since before the part; what it waited then counts only after the beginning. `before` is NULL if
 * the stream begins here. */
static int stamp_begin(struct timeline *timeline, const struct trace_stamp *stamp, const struct analysis_moment *before)
{
  struct analysis_moment moment = {.time = stamp->time};
  uint64_t within = stamp->time - timeline->options.time_from;

  if (before && analysis_clock_last(timeline->clock, stamp->stream, &moment)) {
    moment.time = timeline->options.time_from;
    moment.waited = greater(before->waited, moment.waited > within ? moment.waited - within : 0);
    moment.held = greater(before->held, moment.held > within ? moment.held - within : 0);
  }
  return timeline_part_begin(timeline, stamp->stream, &moment);
}

static int stamp_events(struct timeline *timeline, struct timeline_stream *stream, const struct trace_stamp *stamp)
{
  struct analysis_moment now;
  int r;

  if (!analysis_clock_last(timeline->clock, stamp->stream, &now))
    return 0;
  r = stamp->has_used ? idle_take(timeline, stream, stamp, &now) : 0;
  if (r >= 0 && stamp->type == TRACE_STAMP_HELD)
    r = held_take(timeline, stream, stamp);
  stream->is_in_call = stamp->type == TRACE_STAMP_CALL ||
                       (stream->is_in_call && (stamp->type == TRACE_STAMP_TIME || stamp->type == TRACE_STAMP_HELD));
  if (stamp->type == TRACE_STAMP_CALL)
    stream->call_start = stamp->time;
  if (r < 0 || stream->is_past || !stream->is_within)
    return r;
  moment_cut(timeline, stream, &now);
  timeline_moment_reach(timeline, stream, &now);
  if (stream->is_in_call) /* it is shown up to the end of the part: its own end comes later */
    return 0;
  if (has_time_part(timeline) && timeline->options.time_to && stamp->time >= timeline->options.time_to)
    stream->is_past = true;
  return 0;
}

int timeline_stamp_take(struct timeline *timeline, const struct lb_trace_record *record,
                        const struct trace_stamp *stamp)
{
  struct timeline_stream *stream = timeline_stream_get(timeline, stamp->stream);
  struct analysis_moment before;
  bool has_before, is_begin;
  int r;

  if (!stream)
    return -ENOMEM;
  timeline->has_times = true;
  timeline->time_end = greater(timeline->time_end, stamp->time);
  if (!is_stream_wanted(timeline, stamp->stream))
    return 0;
  is_begin = !stream->is_within && has_time_part(timeline) && stamp->time >= timeline->options.time_from;
  stream->is_within |= is_begin; /* for a system call that ends here */
  has_before = analysis_clock_last(timeline->clock, stamp->stream, &before);
  r = analysis_clock_record(timeline->clock, record);
  if (r >= 0 && is_begin)
    r = stamp_begin(timeline, stamp, has_before ? &before : NULL);
  return r < 0 ? r : stamp_events(timeline, stream, stamp);
}

int timeline_time_init(struct timeline *timeline)
{
  const struct analysis_clock_listener listener = {.data = timeline, .call = call_take, .signal = signal_take};
  int r = analysis_clock_new(&listener, &timeline->clock);

  if (r >= 0)
    analysis_calls_use_clock(timeline->calls, timeline->clock, timeline->options.reader);
  return r;
}
