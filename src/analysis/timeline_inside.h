/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files timeline*.c share.
 */
#ifndef ANALYSIS_TIMELINE_INSIDE_H
#define ANALYSIS_TIMELINE_INSIDE_H

#include "analysis/timeline.h"
#include "base/base.h"

#define TIMELINE_FRAMES_MAX (4u << 20) /* of all stacks together: deeper calls are not shown or counted */

/* A call that runs. */
struct timeline_frame {
  uint64_t branch, instructions;               /* counts when it was entered, */
  uint64_t taken;                              /* and number of branches before its first one */
  uint64_t inner_branches, inner_instructions; /* of what it called */
  bool has_moment;
  struct analysis_moment moment; /* when it was entered */
  struct analysis_duration inner_time;
  uint32_t function;
  bool is_cut;   /* it was entered before the shown part begins */
  bool is_shown; /* it is a function of the module, if there is one */
};

/* The stream with this number, and its description. NULL without memory. */
struct timeline_stream *timeline_stream_get(struct timeline *timeline, uint32_t number);

/* Begins the shown part of a stream at a moment; NULL: it is not known. Calls that are open there are counted and shown
 * from there on. Returns 0 or more, or -ENOMEM. */
int timeline_part_begin(struct timeline *timeline, uint32_t number, const struct analysis_moment *moment);

/* ---- time (timeline_time.c) ---- */

/* Prepares for times, with options.reader. Returns 0, or -ENOMEM. */
int timeline_time_init(struct timeline *timeline);

/* Takes a stamp. Returns 0, or -ENOMEM. */
int timeline_stamp_take(struct timeline *timeline, const struct lb_trace_record *record,
                        const struct trace_stamp *stamp);

/* The moment before a branch of the record that is being taken. Returns false if it is not known. */
bool timeline_moment_at(const struct timeline *timeline, uint32_t number, uint64_t branch,
                        struct analysis_moment *ret_moment);

/* The stream has come to a moment. Time only goes forward, whatever the trace says. */
void timeline_moment_reach(struct timeline *timeline, struct timeline_stream *stream,
                           const struct analysis_moment *moment);

/* Gives a call its moment, if it is not known or is outside the part. */
void timeline_moment_settle(struct timeline *timeline, struct timeline_stream *stream, struct analysis_call *call);

/* Ends the shown part of a stream before a branch of the record that is being taken. */
void timeline_part_end(struct timeline *timeline, uint32_t number, uint64_t branch);

/* ---- calls (timeline_calls.c) ---- */

/* Takes a call: an analysis_call_function, `data` is the timeline. */
int timeline_call_take(void *data, const struct analysis_call *call);

/* A call runs in the part that is shown. Returns 0 or more, or -ENOMEM. */
int timeline_call_count(struct timeline *timeline, const struct analysis_call *call);

/* ---- functions that run (timeline_active.c) ---- */

/* The number of active calls of each function in each stream. */
struct timeline_active {
  struct active_function *functions;
  size_t count, capacity;
  size_t running;          /* of these: they are called more often than left */
  struct hash_index index; /* by stream and function */
};

/* Adds `change`, 1 or -1, to the count of a function in a stream. Returns the count after an increment, or before a
 * decrement; or -ENOMEM. */
int timeline_active_add(struct timeline_active *active, uint32_t stream, uint32_t function, int change);
void timeline_active_done(struct timeline_active *active);

#endif
