/* SPDX-License-Identifier: Apache-2.0
 *
 * The tracks of a stream in Perfetto's format, and all that is not on the track of the thread itself: waiting, the rate
 * of branches and the processor.
 */
#include <errno.h>

#include "export/perfetto.h"

#define RATE_SPAN 1000000u /* ns: a rate is that of at least so long a time */
#define RATE_MAX 1e18
#define DESCHEDULED 10000u /* ns: less than this is within the precision of CPU times */

#define UUID_CLOCK 1u
#define UUID_PROCESS (UINT64_C(1) << 32) /* plus its number */

uint64_t track_uuid(uint32_t stream, unsigned track)
{
  return ((uint64_t)stream + 1) * TRACKS + track;
}

uint64_t track_time(struct perfetto_stream *stream, unsigned track, uint64_t time)
{
  if (time > stream->last[track])
    stream->last[track] = time;
  return stream->last[track];
}

/* ---- tracks ---- */

/* The axis is not time: a track says so. */
static int axis_put(struct perfetto *perfetto, struct export_job *job)
{
  const struct packet_track track = {.uuid = UUID_CLOCK, .name = "no clock: 1 ns is 1 instruction"};
  int r = packet_track(&perfetto->packets, job, &track);

  packet_event(&perfetto->packets, PACKET_INSTANT, UUID_CLOCK, CATEGORY_NONE);
  packet_name(&perfetto->packets, "times are numbers of instructions that a thread has run; those of different threads "
                                  "cannot be compared");
  return r < 0 ? r : packet_put(&perfetto->packets, job, 0);
}

static int perfetto_first(struct perfetto *perfetto, struct export_job *job)
{
  int r;

  if (perfetto->has_begun)
    return 0;
  perfetto->has_begun = true;
  r = packets_begin(&perfetto->packets, job);
  return r < 0 || job->is_by_time ? r : axis_put(perfetto, job);
}

static int process_put(struct perfetto *perfetto, struct export_job *job, const struct analysis_stream *found)
{
  uint64_t hash = hash_start(found->process);
  const struct packet_track track = {
    .uuid = UUID_PROCESS + found->process,
    .process = found->process,
    .thread_name = found->name,
    .command = found->command,
  };
  uint32_t number, *added;

  for (size_t at = 0; (number = hash_index_next(&perfetto->process_index, hash, &at)) != HASH_NONE;)
    if (perfetto->processes[number] == found->process)
      return 0;
  added = array_append(&perfetto->processes, &perfetto->process_count, &perfetto->process_capacity);
  if (!added || hash_index_add(&perfetto->process_index, hash, perfetto->process_count - 1) < 0)
    return -ENOMEM;
  *added = found->process;
  return packet_track(&perfetto->packets, job, &track);
}

static int children_put(struct perfetto *perfetto, struct export_job *job, uint32_t number)
{
  static const struct packet_track children[TRACKS] = {
    [TRACK_WAITS] = {.name = "waiting"},
    [TRACK_RATE] = {.name = "branches per ms", .is_counter = true},
    [TRACK_PROCESSOR] = {.name = "CPU", .is_counter = true},
  };
  int r = 0;

  for (unsigned i = TRACK_WAITS; i < TRACKS && job->is_by_time && r >= 0; i++) {
    struct packet_track track = children[i];

    track.uuid = track_uuid(number, i);
    track.parent = track_uuid(number, TRACK_CALLS);
    r = packet_track(&perfetto->packets, job, &track);
  }
  return r;
}

/* A stream of something else than a process, for example of a machine's processor, has a plain track. */
static int thread_put(struct perfetto *perfetto, struct export_job *job, uint32_t number)
{
  struct analysis_stream found = {.name = ""};
  struct packet_track track = {.uuid = track_uuid(number, TRACK_CALLS)};
  bool is_thread = analysis_names_stream(job->names, number, &found) && found.process && found.process <= INT32_MAX &&
                   found.thread && found.thread <= INT32_MAX;
  int r = is_thread ? process_put(perfetto, job, &found) : 0;

  perfetto->name.length = 0;
  if (r >= 0)
    r = text_addf(&perfetto->name, "%s%s(thread %u)", found.name, *found.name ? " " : "", number);
  if (r < 0)
    return r;
  if (is_thread) {
    track.parent = UUID_PROCESS + found.process;
    track.process = found.process;
    track.thread = found.thread;
    track.thread_name = text_string(&perfetto->name);
  } else {
    track.name = text_string(&perfetto->name);
  }
  r = packet_track(&perfetto->packets, job, &track);
  return r < 0 ? r : children_put(perfetto, job, number);
}

int track_stream(struct export_job *job, uint32_t number, struct perfetto_stream **ret_stream)
{
  struct perfetto *perfetto = job->state;
  struct perfetto_stream *stream =
    array_at(&perfetto->streams, number, &perfetto->stream_count, &perfetto->stream_capacity);
  int r = 0;

  if (!stream)
    return -ENOMEM;
  if (!stream->is_named) {
    stream->is_named = true;
    r = perfetto_first(perfetto, job);
    if (r >= 0)
      r = thread_put(perfetto, job, number);
  }
  if (r >= 0)
    *ret_stream = stream;
  return r;
}

/* ---- waiting ---- */

int track_wait(struct export_job *job, struct perfetto_stream *stream, uint32_t number, const char *name,
               uint64_t duration, uint64_t end)
{
  struct perfetto *perfetto = job->state;
  uint64_t uuid = track_uuid(number, TRACK_WAITS);
  uint64_t begin = track_time(stream, TRACK_WAITS, end > duration ? end - duration : 0);
  int r;

  packet_event(&perfetto->packets, PACKET_SLICE_BEGIN, uuid, CATEGORY_WAIT);
  packet_name(&perfetto->packets, name);
  packet_note_time(&perfetto->packets, "waited_ns", duration);
  r = packet_put(&perfetto->packets, job, begin);
  packet_event(&perfetto->packets, PACKET_SLICE_END, uuid, CATEGORY_NONE);
  return r < 0 ? r : packet_put(&perfetto->packets, job, track_time(stream, TRACK_WAITS, end));
}

int track_descheduled(struct export_job *job, struct perfetto_stream *stream, uint32_t number, uint64_t in_call,
                      uint64_t end)
{
  struct analysis_moment moment;
  uint64_t waited;

  if (!analysis_clock_last(job->clock, number, &moment) || moment.waited < stream->waited)
    return 0;
  waited = moment.waited - stream->waited;
  stream->waited = moment.waited;
  if (waited < in_call || waited - in_call < DESCHEDULED)
    return 0;
  return track_wait(job, stream, number, "not running (where is not exact)", waited - in_call, end);
}

/* ---- counters ---- */

static int counter_put(struct export_job *job, struct perfetto_stream *stream, uint32_t number, unsigned track,
                       uint64_t value, uint64_t time)
{
  struct perfetto *perfetto = job->state;

  packet_event(&perfetto->packets, PACKET_COUNTER, track_uuid(number, track), CATEGORY_NONE);
  packet_value(&perfetto->packets, value);
  return packet_put(&perfetto->packets, job, track_time(stream, track, time));
}

/* A value holds until the next one: the rate of a span stands at its begin. */
static int rate_put(struct export_job *job, struct perfetto_stream *stream, uint32_t number, const struct point *end)
{
  uint64_t time = end->time - stream->rate.time, branches = end->branches - stream->rate.branches;
  double rate = (double)branches * RATE_SPAN / (double)(time ? time : 1);
  int r = counter_put(job, stream, number, TRACK_RATE, rate < RATE_MAX ? (uint64_t)(rate + 0.5) : (uint64_t)RATE_MAX,
                      stream->rate.time);

  stream->rate = *end;
  return r;
}

/* A long time without a stamp, such as that of a system call, is a span of its own. */
int track_rate(struct export_job *job, struct perfetto_stream *stream, const struct trace_stamp *stamp)
{
  struct point now = {stamp->time, stamp->number}, before = stream->stamp;
  int r = 0;

  if (!stream->has_stamp) {
    stream->has_stamp = true;
    stream->rate = stream->stamp = now;
    return 0;
  }
  if (now.time < before.time || now.branches < before.branches)
    return 0;
  stream->stamp = now;
  if (now.time - before.time >= RATE_SPAN && before.time > stream->rate.time)
    r = rate_put(job, stream, stamp->stream, &before);
  if (r >= 0 && now.time - stream->rate.time >= RATE_SPAN)
    r = rate_put(job, stream, stamp->stream, &now);
  return r;
}

int track_cpu(struct export_job *job, struct perfetto_stream *stream, const struct trace_stamp *stamp)
{
  if (!stamp->has_cpu || (stream->has_cpu && stream->cpu == stamp->cpu))
    return 0;
  stream->has_cpu = true;
  stream->cpu = stamp->cpu;
  return counter_put(job, stream, stamp->stream, TRACK_PROCESSOR, stamp->cpu, stamp->time);
}

int track_rate_end(struct export_job *job, struct perfetto_stream *stream, uint32_t number)
{
  int r = stream->has_stamp ? rate_put(job, stream, number, &stream->stamp) : 0;

  return r < 0 || !stream->has_stamp ? r : counter_put(job, stream, number, TRACK_RATE, 0, stream->stamp.time);
}
