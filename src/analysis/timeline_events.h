/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a timeline: system calls, signals, and times in which a thread did not run. Their number is bounded:
 * when there are too many, the longest are kept (of waits, the longest time without running) and the others are
 * counted.
 */
#ifndef ANALYSIS_TIMELINE_EVENTS_H
#define ANALYSIS_TIMELINE_EVENTS_H

#include "analysis/clock.h"

#define TIMELINE_EVENTS_MAX (1u << 20)

enum timeline_event_kind {
  TIMELINE_SYSCALL,
  TIMELINE_IDLE,   /* the thread did not run for some of this time, outside of a system call that is known to have
                      waited: where in it is not known */
  TIMELINE_HELD,   /* it waited for the recorder */
  TIMELINE_SIGNAL, /* at one moment */
};

#define TIMELINE_NO_FUNCTION UINT32_MAX

struct timeline_event {
  uint64_t start, end; /* nanoseconds since the start of the recording, cut at the edges of the shown part, */
  uint64_t duration;   /* and the whole duration */
  uint64_t waited;     /* of that, so long the thread did not run */
  uint32_t stream;
  uint32_t function; /* that made the system call, or that the signal met; or TIMELINE_NO_FUNCTION */
  uint16_t depth;    /* row below that function's */
  uint8_t kind;      /* enum timeline_event_kind */
  bool has_returned; /* from the system call */
  uint32_t code;     /* of the system call or signal */
  int64_t result;    /* of the system call; of a signal, its si_code */
  uint64_t value;    /* of a signal, as in struct trace_stamp */
  uint8_t argument_count;
  uint64_t arguments[TRACE_ARGUMENTS_MAX];
  char *paths[2]; /* NULL: not known */
};

struct timeline_event_list {
  struct timeline_event *events;
  size_t count, capacity, max;
  uint64_t least;            /* shorter ones are not kept */
  uint64_t left_out;         /* number of those that are not kept, */
  uint64_t longest_left_out; /* and the length of the longest of them */
};

struct timeline_events {
  struct timeline_event_list calls, waits, signals;
};

/* At most `max` in each list; 0 for TIMELINE_EVENTS_MAX. */
void timeline_events_init(struct timeline_events *events, size_t max);
void timeline_events_done(struct timeline_events *events);

/* Adds an event; its paths are copied if it is kept. Returns 0, or -ENOMEM. */
int timeline_events_add(struct timeline_events *events, const struct timeline_event *event);

/* To be called after the last event: sorts the lists, the longest first, signals by time, and cuts them to their size.
 */
void timeline_events_end(struct timeline_events *events);

#endif
