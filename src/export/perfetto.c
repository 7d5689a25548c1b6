/* SPDX-License-Identifier: Apache-2.0
 *
 * Perfetto's own format: a track for each thread below its process, with a slice for each call and each system call,
 * and instants for signals. Tracks below that of the thread show when it waited, the branches that it took in a
 * millisecond, and its processor. Perfetto demands that the slices of a track nest and that their times do not go back:
 * each track has the time of its newest event, and no event is before that, whatever the trace says.
 */
#include "export/perfetto.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "export/called.h"

enum function_state { FUNCTION_NEW, FUNCTION_DEFINED, FUNCTION_HAS_SOURCE };

/* ---- system calls and signals ---- */

/* With a filter, what happens outside the calls that pass it is left out. */
static bool is_wanted(const struct export_job *job, const struct perfetto_stream *stream)
{
  return stream->depth || !job->filter;
}

static void call_add(struct perfetto *perfetto, const struct perfetto_stream *stream)
{
  const struct trace_call_info *info = trace_call_info(stream->call_number);
  char other[32];

  snprintf(other, sizeof(other), "syscall_%u", stream->call_number);
  packet_name(&perfetto->packets, info ? info->name : other);
  packet_note(&perfetto->packets, "call", text_string(&stream->call));
}

/* A system call has begun and something else happens: it does not return (rt_sigreturn, execve), or a signal came first
 * and it is made again. */
static int call_leave(struct export_job *job, struct perfetto_stream *stream, uint32_t number)
{
  struct perfetto *perfetto = job->state;

  if (!stream->is_in_call)
    return 0;
  stream->is_in_call = false;
  if (!is_wanted(job, stream))
    return 0;
  packet_event(&perfetto->packets, PACKET_INSTANT, track_uuid(number, TRACK_CALLS), CATEGORY_SYSCALL);
  call_add(perfetto, stream);
  return packet_put(&perfetto->packets, job, track_time(stream, TRACK_CALLS, stream->call_time));
}

static int call_slice(struct export_job *job, struct perfetto_stream *stream, const struct analysis_syscall *call)
{
  struct perfetto *perfetto = job->state;
  struct packets *packets = &perfetto->packets;
  uint64_t uuid = track_uuid(call->stream, TRACK_CALLS);
  int r = call->has_returned ? job->options.words->result(&stream->call, call->call.code, call->result) : 0;

  if (r < 0)
    return r;
  packet_event(packets, PACKET_SLICE_BEGIN, uuid, CATEGORY_SYSCALL);
  call_add(perfetto, stream);
  if (call->has_returned)
    packet_note_number(packets, "result", call->result);
  packet_note_time(packets, "duration_ns", call->duration);
  if (call->waited)
    packet_note_time(packets, "waited_ns", call->waited);
  r = packet_put(packets, job, track_time(stream, TRACK_CALLS, call->start));
  packet_event(packets, PACKET_SLICE_END, uuid, CATEGORY_NONE);
  if (r >= 0)
    r = packet_put(packets, job, track_time(stream, TRACK_CALLS, call->start + call->duration));
  return r;
}

/* It ends where it was begun: no call of a function is in between. */
static int perfetto_syscall(struct export_job *job, const struct analysis_syscall *call)
{
  struct perfetto_stream *stream;
  const struct trace_call_info *info = trace_call_info(call->call.code);
  uint64_t end = call->start + call->duration, waited = call->waited < call->duration ? call->waited : call->duration;
  int r = track_stream(job, call->stream, &stream);

  if (r < 0 || !stream->is_in_call)
    return r;
  if (!call->duration && !call->has_returned)
    return call_leave(job, stream, call->stream);
  stream->is_in_call = false;
  r = track_descheduled(job, stream, call->stream, call->waited, call->start);
  if (r >= 0 && is_wanted(job, stream))
    r = call_slice(job, stream, call);
  if (r >= 0 && waited)
    r = track_wait(job, stream, call->stream, info ? info->name : "system call", waited, end);
  return r;
}

static int perfetto_signal(struct export_job *job, const struct trace_stamp *stamp)
{
  struct perfetto *perfetto = job->state;
  struct perfetto_stream *stream;
  int r = track_stream(job, stamp->stream, &stream);

  if (r >= 0)
    r = call_leave(job, stream, stamp->stream);
  if (r < 0 || !is_wanted(job, stream))
    return r;
  perfetto->name.length = 0;
  r = job->options.words->signal(&perfetto->name, stamp);
  if (r < 0)
    return r;
  packet_event(&perfetto->packets, PACKET_INSTANT, track_uuid(stamp->stream, TRACK_CALLS), CATEGORY_SIGNAL);
  packet_name(&perfetto->packets, text_string(&perfetto->name));
  packet_note_number(&perfetto->packets, "signal", stamp->code);
  packet_note_number(&perfetto->packets, "code", stamp->result);
  return packet_put(&perfetto->packets, job, track_time(stream, TRACK_CALLS, stamp->time));
}

/* ---- the format ---- */

static int perfetto_stamp(struct export_job *job, const struct trace_stamp *stamp)
{
  struct perfetto_stream *stream;
  int r = track_stream(job, stamp->stream, &stream);

  if (r >= 0 && !stream->is_in_call) /* at the end of the call it is known how long the call has waited */
    r = track_descheduled(job, stream, stamp->stream, 0, stamp->time);
  if (r >= 0 && stamp->type == TRACE_STAMP_HELD && stamp->result > 0)
    r = track_wait(job, stream, stamp->stream, "waiting for lbr", (uint64_t)stamp->result, stamp->time);
  if (r >= 0)
    r = track_rate(job, stream, stamp);
  if (r >= 0)
    r = track_cpu(job, stream, stamp);
  if (r < 0 || stamp->type != TRACE_STAMP_CALL)
    return r;
  stream->is_in_call = true;
  stream->call_time = stamp->time;
  stream->call_number = stamp->code;
  stream->call.length = 0;
  return job->options.words->call(&stream->call, stamp);
}

/* Names the function of an event. */
static int function_add(struct export_job *job, uint32_t function)
{
  struct perfetto *perfetto = job->state;
  uint8_t *state = array_at(&perfetto->functions, function, &perfetto->function_count, &perfetto->function_capacity);
  struct called called;
  int r;

  if (!state)
    return -ENOMEM;
  if (*state == FUNCTION_NEW) {
    r = called_get(job, function, &perfetto->name, &called);
    if (r < 0)
      return r;
    *state = called.source ? FUNCTION_HAS_SOURCE : FUNCTION_DEFINED;
    packet_define(&perfetto->packets, function, called.symbol, called.source, called.line);
  }
  packet_function(&perfetto->packets, function, *state == FUNCTION_HAS_SOURCE);
  return 0;
}

static int slice_put(struct export_job *job, struct perfetto_stream *stream, const struct analysis_call *call,
                     uint64_t time)
{
  struct perfetto *perfetto = job->state;
  uint64_t uuid = track_uuid(call->stream, TRACK_CALLS);
  int r = 0;

  if (!call->is_enter && !stream->depth)
    return 0;
  stream->depth += call->is_enter ? 1 : UINT32_MAX;
  packet_event(&perfetto->packets, call->is_enter ? PACKET_SLICE_BEGIN : PACKET_SLICE_END, uuid,
               call->is_enter ? CATEGORY_CALL : CATEGORY_NONE);
  if (call->is_enter)
    r = function_add(job, call->function);
  perfetto->slices++;
  return r < 0 ? r : packet_put(&perfetto->packets, job, track_time(stream, TRACK_CALLS, time));
}

static int perfetto_call(struct export_job *job, const struct analysis_call *call)
{
  struct perfetto_stream *stream;
  uint64_t time;
  int r = track_stream(job, call->stream, &stream);

  if (r >= 0)
    r = call_leave(job, stream, call->stream);
  if (r >= 0)
    r = export_call_time(job, call, &time);
  return r < 0 ? r : slice_put(job, stream, call, time);
}

static int stream_end(struct export_job *job, uint32_t number)
{
  struct perfetto *perfetto = job->state;
  struct perfetto_stream *stream = &perfetto->streams[number];
  int r = call_leave(job, stream, number);

  while (r >= 0 && stream->depth)
    r = slice_put(job, stream, &(struct analysis_call){.stream = number}, 0);
  return r < 0 ? r : track_rate_end(job, stream, number);
}

static int perfetto_end(struct export_job *job)
{
  struct perfetto *perfetto = job->state;
  int r = 0;

  if (!perfetto->slices)
    return called_fail(job);
  for (uint32_t i = 0; i < perfetto->stream_count && r >= 0; i++)
    r = stream_end(job, i);
  called_warn(job, NULL);
  if (!job->is_by_time && job->options.by == EXPORT_BY_DEFAULT)
    export_warn(job, "the trace has no times: in the file, a nanosecond is an instruction of the thread");
  return r;
}

static void perfetto_done(struct export_job *job)
{
  struct perfetto *perfetto = job->state;

  for (size_t i = 0; i < perfetto->stream_count; i++)
    text_done(&perfetto->streams[i].call);
  free(perfetto->streams);
  free(perfetto->functions);
  free(perfetto->processes);
  hash_index_done(&perfetto->process_index);
  packets_done(&perfetto->packets);
  text_done(&perfetto->name);
}

const struct export_format export_format_perfetto = {
  .name = "perfetto",
  .what = "timeline of calls, system calls, signals and waits, for Perfetto",
  .suffix = ".pftrace",
  .needs = EXPORT_CALLS | EXPORT_TIMES,
  .wants_instructions = true,
  .has_axis = true,
  .bytes_per_branch = 8,
  .state_size = sizeof(struct perfetto),
  .call = perfetto_call,
  .stamp = perfetto_stamp,
  .syscall = perfetto_syscall,
  .signal = perfetto_signal,
  .end = perfetto_end,
  .done = perfetto_done,
};
