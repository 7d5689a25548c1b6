/* SPDX-License-Identifier: Apache-2.0
 *
 * speedscope's own format: for each thread a profile of events, "O" when a function is entered and "C" when it is left,
 * at instruction counts; functions are listed once, at the end. The events of a profile must be contiguous, but threads
 * are interleaved: the events of the first thread are written as they come, those of others are kept until the end.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/called.h"

#define KEPT_MAX (UINT64_C(256) << 20) /* bytes of events of other threads */

/* A thread other than the first. Its events are stored as bytes: the time since the last (in groups
 * of 7 bits), then the entered function plus 1, or 0. */
struct scope_stream {
  struct text events;
  uint64_t last;    /* instructions, or nanoseconds */
  uint32_t *frames; /* the open ones; for the first thread, too */
  size_t count, capacity;
  bool has_events;
};

struct scope {
  bool has_first;
  uint32_t first; /* the stream that is written as it comes */
  struct scope_stream *streams;
  size_t count, capacity;
  uint64_t kept; /* bytes */
  struct text name;
};

/* ---- writing ---- */

static void put_profile(struct export_job *job, uint32_t stream, bool is_first)
{
  struct scope *scope = job->state;

  (void)called_thread(job, stream, &scope->name);
  export_print(job, "%s{\"type\":\"evented\",\"unit\":\"%s\",\"startValue\":0,\"name\":", is_first ? "" : ",\n",
               job->is_by_time ? "nanoseconds" : "none");
  export_json(job, text_string(&scope->name));
  export_print(job, ",\"events\":[");
}

static void put_event(struct export_job *job, struct scope_stream *stream, bool is_enter, uint32_t frame, uint64_t at)
{
  export_print(job, "%s{\"type\":\"%c\",\"frame\":%u,\"at\":%llu}", stream->has_events ? ",\n" : "\n",
               is_enter ? 'O' : 'C', frame, (unsigned long long)at);
  stream->has_events = true;
}

static void put_profile_end(struct export_job *job, const struct scope_stream *stream)
{
  export_print(job, "],\"endValue\":%llu}", (unsigned long long)stream->last);
}

/* ---- keeping ---- */

static int kept_add(struct text *text, uint64_t value)
{
  char bytes[10];
  size_t count = 0;

  for (; value >= 0x80; value >>= 7)
    bytes[count++] = (char)(value | 0x80);
  bytes[count++] = (char)value;
  return text_add_bytes(text, bytes, count);
}

static uint64_t kept_get(const struct text *text, size_t *at)
{
  uint64_t value = 0;

  for (unsigned shift = 0; *at < text->length; shift += 7) {
    uint8_t byte = (uint8_t)text->data[(*at)++];

    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      break;
  }
  return value;
}

static int event_keep(struct export_job *job, struct scope_stream *stream, const struct analysis_call *call,
                      uint64_t at)
{
  struct scope *scope = job->state;
  size_t before = stream->events.length;
  int r = kept_add(&stream->events, at - stream->last);

  if (r >= 0)
    r = kept_add(&stream->events, call->is_enter ? (uint64_t)call->function + 1 : 0);
  scope->kept += stream->events.length - before;
  if (scope->kept > KEPT_MAX)
    return export_fail(job, "its threads make too many calls for one file of this format; choose one thread "
                            "(--thread), or use the format 'chrome'");
  return r;
}

/* ---- open frames ---- */

static int frame_push(struct scope_stream *stream, uint32_t frame)
{
  uint32_t *added = array_append(&stream->frames, &stream->count, &stream->capacity);

  if (!added)
    return -ENOMEM;
  *added = frame;
  return 0;
}

static int event_write(struct export_job *job, struct scope_stream *stream, bool is_enter, uint32_t frame, uint64_t at)
{
  if (is_enter) {
    put_event(job, stream, true, frame, at);
    return frame_push(stream, frame);
  }
  if (stream->count)
    put_event(job, stream, false, stream->frames[--stream->count], at);
  return 0;
}

/* ---- the format ---- */

static int scope_begin(struct export_job *job)
{
  export_print(job,
               "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n\"exporter\":\"lbr %s\","
               "\"name\":\"calls; values are %s\",\"activeProfileIndex\":0,\n\"profiles\":[",
               LB_VERSION,
               job->options.by == EXPORT_BY_TIME ? "times since the start of the recording"
                                                 : "instructions of the thread");
  return 0;
}

static struct scope_stream *stream_get(struct scope *scope, uint32_t number)
{
  return array_at(&scope->streams, number, &scope->count, &scope->capacity);
}

static int scope_call(struct export_job *job, const struct analysis_call *call)
{
  struct scope *scope = job->state;
  struct scope_stream *stream = stream_get(scope, call->stream);
  uint64_t at;
  int r = stream ? export_call_time(job, call, &at) : -ENOMEM;

  if (r < 0)
    return r;
  if (!scope->has_first) {
    scope->has_first = true;
    scope->first = call->stream;
    put_profile(job, call->stream, true);
  }
  r = call->stream == scope->first ? event_write(job, stream, call->is_enter, call->function, at)
                                   : event_keep(job, stream, call, at);
  stream->last = at;
  return r;
}

static int put_kept(struct export_job *job, uint32_t number)
{
  struct scope *scope = job->state;
  struct scope_stream *stream = &scope->streams[number];
  uint64_t now = 0;
  int r = 0;

  put_profile(job, number, false);
  for (size_t at = 0; at < stream->events.length && r >= 0;) {
    uint64_t frame;

    now += kept_get(&stream->events, &at);
    frame = kept_get(&stream->events, &at);
    r = event_write(job, stream, frame, (uint32_t)(frame - 1), now);
  }
  put_profile_end(job, stream);
  return r;
}

static int put_frames(struct export_job *job)
{
  struct scope *scope = job->state;
  struct called called;
  int r = 0;

  export_print(job, "],\n\"shared\":{\"frames\":[");
  for (uint32_t i = 0; (r = called_get(job, i, &scope->name, &called)) >= 0; i++) {
    export_print(job, "%s{\"name\":", i ? ",\n" : "\n");
    export_json(job, called.symbol);
    if (called.source || called.module) {
      export_print(job, ",\"file\":");
      export_json(job, called.source ? called.source : called.module);
    }
    if (called.source && called.line)
      export_print(job, ",\"line\":%u", called.line);
    export_print(job, "}");
  }
  export_print(job, "]}}\n");
  return r == LB_E_NO_ENTRY ? 0 : r;
}

static int scope_end(struct export_job *job)
{
  struct scope *scope = job->state;
  int r = 0;

  if (!scope->has_first)
    return called_fail(job);
  put_profile_end(job, &scope->streams[scope->first]);
  for (uint32_t i = 0; i < scope->count && r >= 0; i++)
    if (scope->streams[i].events.length)
      r = put_kept(job, i);
  called_warn(job, NULL);
  return r < 0 ? r : put_frames(job);
}

static void scope_done(struct export_job *job)
{
  struct scope *scope = job->state;

  for (size_t i = 0; i < scope->count; i++) {
    text_done(&scope->streams[i].events);
    free(scope->streams[i].frames);
  }
  free(scope->streams);
  text_done(&scope->name);
}

const struct export_format export_format_speedscope = {
  .name = "speedscope",
  .what = "timeline of calls, for www.speedscope.app",
  .suffix = ".speedscope.json",
  .needs = EXPORT_CALLS,
  .wants_instructions = true,
  .has_axis = true,
  .bytes_per_branch = 14,
  .state_size = sizeof(struct scope),
  .begin = scope_begin,
  .call = scope_call,
  .end = scope_end,
  .done = scope_done,
};
