/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of Perfetto's format: packets, and the tracks of a thread.
 */
#ifndef EXPORT_PERFETTO_H
#define EXPORT_PERFETTO_H

#include "base/base.h"
#include "export/export.h"
#include "export/protobuf.h"

/* ---- packets (perfetto_packet.c): a trace is a message whose field 1, TracePacket, repeats. All packets are of one
 * sequence, so that names are written once and then referred to by number. ---- */

enum packet_category { CATEGORY_NONE, CATEGORY_CALL, CATEGORY_SYSCALL, CATEGORY_SIGNAL, CATEGORY_WAIT, CATEGORIES };

/* TrackEvent.Type */
enum packet_type { PACKET_SLICE_BEGIN = 1, PACKET_SLICE_END, PACKET_INSTANT, PACKET_COUNTER };

/* Starts as all zero. */
struct packets {
  struct message packet, body, part, inner;
  struct message interned; /* of the next packet */
  uint64_t start;          /* the time of a packet is this plus the time of the event */
};

void packets_done(struct packets *packets);

/* Writes the packets that come first: the clock, if the trace has one, and the names of categories. Returns 0, or
 * -ENOMEM. */
int packets_begin(struct packets *packets, struct export_job *job);

/* Describes a track. */
struct packet_track {
  uint64_t uuid, parent; /* not 0; 0: none */
  const char *name;      /* of a track that is neither a process nor a thread */
  bool is_counter;
  uint32_t process, thread; /* 0: none. A track with a process and no thread is that of the process */
  const char *thread_name;  /* or of the process */
  const char *command;      /* of a process; NULL: not known */
};

int packet_track(struct packets *packets, struct export_job *job, const struct packet_track *track);

/* An event: begin it, add what it has, put it. */
void packet_event(struct packets *packets, enum packet_type type, uint64_t track, enum packet_category category);
void packet_name(struct packets *packets, const char *name);
void packet_value(struct packets *packets, uint64_t value); /* of a counter */

/* The name of a function, and where its source is. The first packet that names a function defines its number. */
void packet_function(struct packets *packets, uint32_t function, bool has_source);
void packet_define(struct packets *packets, uint32_t function, const char *name, const char *source, unsigned line);

/* What Perfetto shows when the event is selected. */
void packet_note(struct packets *packets, const char *name, const char *value);
void packet_note_number(struct packets *packets, const char *name, int64_t value);
void packet_note_time(struct packets *packets, const char *name, uint64_t nanoseconds);

/* Writes the event. Returns 0, or -ENOMEM. */
int packet_put(struct packets *packets, struct export_job *job, uint64_t time);

/* ---- tracks (perfetto_track.c) ---- */

/* The tracks of a stream; their uuids are consecutive. */
enum { TRACK_CALLS, TRACK_WAITS, TRACK_RATE, TRACK_PROCESSOR, TRACKS };

struct point {
  uint64_t time, branches;
};

struct perfetto_stream {
  bool is_named;   /* it has tracks */
  bool is_in_call; /* a system call has begun */
  bool has_stamp, has_cpu;
  uint32_t depth;        /* slices that are open on the track of calls */
  uint64_t last[TRACKS]; /* newest time on each track */
  uint64_t call_time;    /* when the system call began, */
  uint32_t call_number;  /* its number and */
  struct text call;      /* text */
  uint64_t waited;       /* time of waiting that has been shown */
  struct point rate;     /* branches from here on are not part of a rate yet */
  struct point stamp;    /* the newest stamp */
  uint16_t cpu;
};

struct perfetto {
  struct packets packets;
  bool has_begun;
  uint64_t slices;
  uint8_t *functions; /* what was written of each: enum function_state of perfetto.c */
  size_t function_count, function_capacity;
  struct perfetto_stream *streams;
  size_t stream_count, stream_capacity;
  uint32_t *processes; /* that have a track */
  size_t process_count, process_capacity;
  struct hash_index process_index;
  struct text name;
};

uint64_t track_uuid(uint32_t stream, unsigned track);

/* The time of the next event on a track: never before the one before. */
uint64_t track_time(struct perfetto_stream *stream, unsigned track, uint64_t time);

/* All of these return 0, or -ENOMEM. Gets a stream, and writes its tracks when it is first seen. */
int track_stream(struct export_job *job, uint32_t number, struct perfetto_stream **ret_stream);

/* The thread has waited for `duration` before `end`. */
int track_wait(struct export_job *job, struct perfetto_stream *stream, uint32_t number, const char *name,
               uint64_t duration, uint64_t end);

/* Shows the time that the thread has not run since this was last called, without `in_call`, which it has waited in a
 * system call. Where in between that was is not known: the slice stands before `end`. */
int track_descheduled(struct export_job *job, struct perfetto_stream *stream, uint32_t number, uint64_t in_call,
                      uint64_t end);

/* Counters: at each stamp, and at the end of the trace. */
int track_rate(struct export_job *job, struct perfetto_stream *stream, const struct trace_stamp *stamp);
int track_rate_end(struct export_job *job, struct perfetto_stream *stream, uint32_t number);
int track_cpu(struct export_job *job, struct perfetto_stream *stream, const struct trace_stamp *stamp);

#endif
