/* SPDX-License-Identifier: Apache-2.0
 *
 * Time in a trace: when a branch was taken, and for how long its thread had not run until then. Stamps have exact
 * times; the time of a branch between two stamps is interpolated by branches.
 */
#ifndef ANALYSIS_CLOCK_H
#define ANALYSIS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace.h"

/* All in nanoseconds. */
struct analysis_moment {
  uint64_t time;   /* since the start of the recording */
  uint64_t waited; /* of that, so long has the thread not run since its first stamp: it waited in system calls, or other
                      threads had the processor */
  uint64_t held;   /* so long has it waited for the recorder; `waited` does not include this */
};

/* What passed between two moments, the first of which is `before`: how long it took without the time that the thread
 * waited for the recorder, and for how much of that it did not run. */
struct analysis_duration {
  uint64_t all, waited;
};

static inline struct analysis_duration analysis_moment_since(const struct analysis_moment *before,
                                                             const struct analysis_moment *after)
{
  uint64_t passed = after->time > before->time ? after->time - before->time : 0;
  uint64_t held = after->held > before->held ? after->held - before->held : 0;
  uint64_t waited = after->waited > before->waited ? after->waited - before->waited : 0;
  uint64_t all = passed > held ? passed - held : 0;

  return (struct analysis_duration){all, waited < all ? waited : all};
}

/* A system call that has returned. */
struct analysis_syscall {
  uint32_t stream;
  uint64_t branch;         /* branches of the stream before it ends */
  struct trace_stamp call; /* its paths are valid in the callback only */
  bool has_returned;
  int64_t result;
  uint64_t start, duration; /* of a call that has not returned, until its thread ends or the trace does; without the
                               time that the thread waited for the recorder */
  uint64_t waited;          /* part of the duration in which the thread did not run */
};

/* Is told of system calls when they end, and of signals. Returns 0, or negative to stop. */
struct analysis_clock_listener {
  void *data;
  int (*call)(void *data, const struct analysis_syscall *call);
  int (*signal)(void *data, const struct trace_stamp *stamp);
};

struct analysis_clock;

/* `listener` may be NULL; so may its functions. Returns 0, or -ENOMEM. */
int analysis_clock_new(const struct analysis_clock_listener *listener, struct analysis_clock **ret_clock);
void analysis_clock_free(struct analysis_clock *clock); /* takes NULL */

/* Takes a record of a trace; the reader was asked for stamps. Call it before other analyses take the record. Returns 0,
 * what the listener returned, or -ENOMEM. */
int analysis_clock_record(struct analysis_clock *clock, const struct lb_trace_record *record);

/* To be called after the last record: ends the calls that have not returned. Returns as above. */
int analysis_clock_end(struct analysis_clock *clock);

/* The moment before branch `number` of a stream, which is one of the record that the reader gave last, or follows it.
 * Returns false, touching nothing, if it is not known. */
bool analysis_clock_at(const struct analysis_clock *clock, const struct lb_trace_reader *reader, uint32_t stream,
                       uint64_t number, struct analysis_moment *ret_moment);

/* The moment of the last stamp of a stream. Returns as above. */
bool analysis_clock_last(const struct analysis_clock *clock, uint32_t stream, struct analysis_moment *ret_moment);

/* The system call that a stream is in, which has not ended; NULL if there is none. It is valid until the next record.
 */
const struct analysis_syscall *analysis_clock_call(const struct analysis_clock *clock, uint32_t stream);

/* The processor on which a stream ran last, or -1. */
int analysis_clock_cpu(const struct analysis_clock *clock, uint32_t stream);

/* Has there been any stamp? */
bool analysis_clock_has_times(const struct analysis_clock *clock);

#endif
