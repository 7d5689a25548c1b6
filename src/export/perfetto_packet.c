/* SPDX-License-Identifier: Apache-2.0
 *
 * See perfetto.h. The numbers of fields are those of Perfetto's protos/perfetto/trace: trace.proto, trace_packet.proto,
 * trace_packet_defaults.proto, clock_snapshot.proto, interned_data/interned_data.proto and, in track_event/,
 * track_event.proto, track_descriptor.proto, process_descriptor.proto, thread_descriptor.proto,
 * counter_descriptor.proto, debug_annotation.proto and source_location.proto.
 */
#include <errno.h>

#include "export/perfetto.h"

enum { TRACE_PACKET = 1 };
enum {
  PACKET_CLOCK_SNAPSHOT = 6,
  PACKET_TIMESTAMP = 8,
  PACKET_SEQUENCE = 10,
  PACKET_TRACK_EVENT = 11,
  PACKET_INTERNED_DATA = 12,
  PACKET_SEQUENCE_FLAGS = 13,
  PACKET_DEFAULTS = 59,
  PACKET_TRACK_DESCRIPTOR = 60,
  PACKET_IS_FIRST = 87,
};
enum { STATE_CLEARED = 1, STATE_NEEDED = 2 }; /* TracePacket.SequenceFlags */
enum { DEFAULTS_CLOCK = 58 };
enum { SNAPSHOT_CLOCK = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };
enum { CLOCK_OF_WALL = 1, CLOCK_OF_SYSTEM = 3 }; /* BuiltinClock: REALTIME, MONOTONIC */
enum { INTERNED_CATEGORY = 1, INTERNED_NAME = 2, INTERNED_SOURCE = 4 };
enum { NAME_NUMBER = 1, NAME_STRING = 2, SOURCE_FILE = 2, SOURCE_FUNCTION = 3, SOURCE_LINE = 4 };
enum {
  EVENT_CATEGORY = 3,
  EVENT_NOTE = 4,
  EVENT_TYPE = 9,
  EVENT_NAME_NUMBER = 10,
  EVENT_TRACK = 11,
  EVENT_NAME = 23,
  EVENT_COUNTER = 30,
  EVENT_SOURCE = 34,
};
enum { NOTE_INT = 4, NOTE_STRING = 6, NOTE_NAME = 10 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_THREAD = 4, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_COMMAND = 2, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

#define SEQUENCE 1u
#define TIME_MAX (UINT64_C(1) << 62) /* Perfetto's times are signed: what is beyond is cut, so that sums fit, too */

void packets_done(struct packets *packets)
{
  message_done(&packets->packet);
  message_done(&packets->body);
  message_done(&packets->part);
  message_done(&packets->inner);
  message_done(&packets->interned);
}

/* Writes the packet, which has all but its sequence. */
static int packet_write(struct packets *packets, struct export_job *job, unsigned flags)
{
  struct message *packet = &packets->packet, *head = &packets->part;

  message_number(packet, PACKET_SEQUENCE, SEQUENCE);
  message_number(packet, PACKET_SEQUENCE_FLAGS, flags);
  if (packets->interned.text.length)
    message_take(packet, PACKET_INTERNED_DATA, &packets->interned);
  message_take(head, TRACE_PACKET, packet);
  export_put(job, text_string(&head->text), head->text.length);
  head->text.length = 0;
  return head->error;
}

/* ---- the beginning ---- */

static void clock_add(struct packets *packets, unsigned clock, uint64_t time)
{
  message_number(&packets->part, CLOCK_ID, clock);
  message_number(&packets->part, CLOCK_TIMESTAMP, time);
  message_take(&packets->body, SNAPSHOT_CLOCK, &packets->part);
}

/* Times are those of CLOCK_MONOTONIC, which is also the clock of the whole trace: Perfetto's default, CLOCK_BOOTTIME,
 * is not known. */
static int clock_put(struct packets *packets, struct export_job *job)
{
  int r;

  message_number(&packets->packet, PACKET_IS_FIRST, 1);
  clock_add(packets, CLOCK_OF_SYSTEM, job->monotonic);
  clock_add(packets, CLOCK_OF_WALL, job->realtime);
  message_number(&packets->body, SNAPSHOT_PRIMARY, CLOCK_OF_SYSTEM);
  message_take(&packets->packet, PACKET_CLOCK_SNAPSHOT, &packets->body);
  r = packet_write(packets, job, STATE_CLEARED);
  message_number(&packets->part, DEFAULTS_CLOCK, CLOCK_OF_SYSTEM);
  message_take(&packets->packet, PACKET_DEFAULTS, &packets->part);
  packets->start = job->monotonic;
  return r;
}

static void interned_add(struct packets *packets, unsigned field, uint64_t number, const char *string)
{
  message_number(&packets->inner, NAME_NUMBER, number);
  message_string(&packets->inner, NAME_STRING, string);
  message_take(&packets->interned, field, &packets->inner);
}

int packets_begin(struct packets *packets, struct export_job *job)
{
  static const char *const categories[CATEGORIES] = {
    [CATEGORY_CALL] = "call",
    [CATEGORY_SYSCALL] = "syscall",
    [CATEGORY_SIGNAL] = "signal",
    [CATEGORY_WAIT] = "wait",
  };
  bool has_clock = job->is_by_time && job->has_start && job->monotonic < TIME_MAX && job->realtime < TIME_MAX;
  int r = has_clock ? clock_put(packets, job) : 0;

  if (!has_clock)
    message_number(&packets->packet, PACKET_IS_FIRST, 1);
  for (unsigned i = CATEGORY_CALL; i < CATEGORIES; i++)
    interned_add(packets, INTERNED_CATEGORY, i, categories[i]);
  return r < 0 ? r : packet_write(packets, job, STATE_CLEARED);
}

/* ---- tracks ---- */

static void process_add(struct packets *packets, const struct packet_track *track)
{
  message_number(&packets->part, PROCESS_PID, track->process);
  if (track->command)
    message_string(&packets->part, PROCESS_COMMAND, track->command);
  message_string(&packets->part, PROCESS_NAME, track->thread_name);
  message_take(&packets->body, TRACK_PROCESS, &packets->part);
}

static void thread_add(struct packets *packets, const struct packet_track *track)
{
  message_number(&packets->part, THREAD_PID, track->process);
  message_number(&packets->part, THREAD_TID, track->thread);
  message_string(&packets->part, THREAD_NAME, track->thread_name);
  message_take(&packets->body, TRACK_THREAD, &packets->part);
}

int packet_track(struct packets *packets, struct export_job *job, const struct packet_track *track)
{
  struct message *body = &packets->body;

  message_number(body, TRACK_UUID, track->uuid);
  if (track->parent)
    message_number(body, TRACK_PARENT, track->parent);
  if (track->name)
    message_string(body, TRACK_NAME, track->name);
  if (track->thread)
    thread_add(packets, track);
  else if (track->process)
    process_add(packets, track);
  if (track->is_counter)
    message_take(body, TRACK_COUNTER, &packets->part); /* empty: no unit */
  message_take(&packets->packet, PACKET_TRACK_DESCRIPTOR, body);
  return packet_write(packets, job, STATE_NEEDED);
}

/* ---- events ---- */

void packet_event(struct packets *packets, enum packet_type type, uint64_t track, enum packet_category category)
{
  message_number(&packets->body, EVENT_TYPE, type);
  message_number(&packets->body, EVENT_TRACK, track);
  if (category)
    message_number(&packets->body, EVENT_CATEGORY, category);
}

void packet_name(struct packets *packets, const char *name)
{
  message_string(&packets->body, EVENT_NAME, name);
}

void packet_value(struct packets *packets, uint64_t value)
{
  message_number(&packets->body, EVENT_COUNTER, value);
}

void packet_function(struct packets *packets, uint32_t function, bool has_source)
{
  message_number(&packets->body, EVENT_NAME_NUMBER, (uint64_t)function + 1);
  if (has_source)
    message_number(&packets->body, EVENT_SOURCE, (uint64_t)function + 1);
}

void packet_define(struct packets *packets, uint32_t function, const char *name, const char *source, unsigned line)
{
  interned_add(packets, INTERNED_NAME, (uint64_t)function + 1, name);
  if (!source)
    return;
  message_number(&packets->inner, NAME_NUMBER, (uint64_t)function + 1);
  message_string(&packets->inner, SOURCE_FILE, source);
  message_string(&packets->inner, SOURCE_FUNCTION, name);
  if (line)
    message_number(&packets->inner, SOURCE_LINE, line);
  message_take(&packets->interned, INTERNED_SOURCE, &packets->inner);
}

void packet_note(struct packets *packets, const char *name, const char *value)
{
  message_string(&packets->part, NOTE_NAME, name);
  message_string(&packets->part, NOTE_STRING, value);
  message_take(&packets->body, EVENT_NOTE, &packets->part);
}

void packet_note_number(struct packets *packets, const char *name, int64_t value)
{
  message_string(&packets->part, NOTE_NAME, name);
  message_number(&packets->part, NOTE_INT, (uint64_t)value);
  message_take(&packets->body, EVENT_NOTE, &packets->part);
}

void packet_note_time(struct packets *packets, const char *name, uint64_t nanoseconds)
{
  packet_note_number(packets, name, nanoseconds < INT64_MAX ? (int64_t)nanoseconds : INT64_MAX);
}

int packet_put(struct packets *packets, struct export_job *job, uint64_t time)
{
  message_number(&packets->packet, PACKET_TIMESTAMP, packets->start + (time < TIME_MAX ? time : TIME_MAX));
  message_take(&packets->packet, PACKET_TRACK_EVENT, &packets->body);
  return packet_write(packets, job, STATE_NEEDED);
}
