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
  uint32_t function;
  bool is_cut;   /* it was entered before the shown part begins */
  bool is_shown; /* it is a function of the module, if there is one */
};

/* The stream with this number, and its description. NULL without memory. */
struct timeline_stream *timeline_stream_get(struct timeline *timeline, uint32_t number);

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
