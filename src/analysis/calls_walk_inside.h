/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that calls_walk.c and calls_walk_range.c share.
 */
#ifndef ANALYSIS_CALLS_WALK_INSIDE_H
#define ANALYSIS_CALLS_WALK_INSIDE_H

#include "analysis/calls_walk.h"
#include "trace/trace.h"

/* All functions that return int return 0, 1 if the view wants no more, or negative. */

/* NULL without memory. */
struct calls_stream *calls_stream_get(struct calls_walk *walk, uint32_t number);

/* Calls view.enter for the innermost of the first `count` open calls, unless an option hides it. */
int calls_node_show(struct calls_walk *walk, uint32_t number, struct calls_stream *stream, size_t count);

/* Closes the newest open call. */
int calls_node_leave(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_call *call);

/* ---- the range (calls_walk_range.c) ---- */

int calls_range_branches(struct calls_walk *walk, const struct lb_trace_record *record);
int calls_range_stamp(struct calls_walk *walk, const struct lb_trace_record *record, const struct trace_stamp *stamp);

/* To be called after the last record, when system calls that have not returned were shown. */
int calls_range_end(struct calls_walk *walk);

/* Adds the time of a system call to the innermost open call, which made it, and calls view.syscall unless an option
 * hides it. */
int calls_syscall_show(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_syscall *call);

/* A moment without the waiting that is counted in it and belongs to a time outside of the range. */
static inline struct analysis_moment calls_moment(const struct calls_stream *stream,
                                                  const struct analysis_moment *moment)
{
  uint64_t waited = stream->waited_outside, held = stream->held_outside;

  return (struct analysis_moment){
    .time = moment->time,
    .waited = moment->waited > waited ? moment->waited - waited : 0,
    .held = moment->held > held ? moment->held - held : 0,
  };
}

#endif
