/* SPDX-License-Identifier: Apache-2.0
 *
 * When the threads of a trace began, and how long they ran and waited. Only stamps are needed for this: the reader may
 * count branches.
 */
#ifndef ANALYSIS_THREAD_TIMES_H
#define ANALYSIS_THREAD_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/clock.h"
#include "lastbranch/trace.h"

/* All in nanoseconds. */
struct analysis_thread_time {
  uint64_t start;       /* since the start of the recording */
  uint64_t all, waited; /* as struct analysis_duration: from its first stamp to its last */
};

struct analysis_thread_times {
  /* The members are private. */
  struct analysis_clock *clock;
  struct thread_span {
    bool is_known;
    struct analysis_moment first, last;
  } * spans; /* by number of the stream */
  size_t count, capacity;
};

/* Takes a record of a trace; the reader was asked for stamps. `times` is all zero before the first one. Returns 0, or
 * -ENOMEM. */
int analysis_thread_times_record(struct analysis_thread_times *times, const struct lb_trace_record *record);
void analysis_thread_times_done(struct analysis_thread_times *times);

/* The times of a stream. Returns false, touching nothing, if the trace has none for it. */
bool analysis_thread_times_of(const struct analysis_thread_times *times, uint32_t stream,
                              struct analysis_thread_time *ret_time);

/* The times of all streams added up, or of one stream; `start` is that of the first. Returns as above. */
bool analysis_thread_times_sum(const struct analysis_thread_times *times, uint32_t stream,
                               struct analysis_thread_time *ret_time);

#endif
