/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the calls of each function took: sums, the longest call, and the distribution of the durations.
 */
#ifndef ANALYSIS_LATENCY_H
#define ANALYSIS_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls.h"
#include "analysis/thread_times.h"
#include "analysis/trace_input.h"

/* ---- distributions (latency_histogram.c) ---- */

/* Durations are counted in buckets, as an HDR histogram has them: one for each duration below 16 ns, and 16 for each
 * power of two above. A bucket is thus at most 1/16 as wide as the durations in it. */
#define ANALYSIS_LATENCY_PARTS 16u
#define ANALYSIS_LATENCY_BUCKETS (61u * ANALYSIS_LATENCY_PARTS)

/* The buckets from the first to the last that was needed. All zero: empty. */
struct analysis_histogram {
  uint64_t *counts;
  uint32_t first, count; /* number of the bucket that counts[0] is, and how many there are */
  uint64_t total;        /* durations in all of them */
};

/* The bucket of a duration, and the least duration of a bucket; that of ANALYSIS_LATENCY_BUCKETS is UINT64_MAX. */
uint32_t analysis_bucket_of(uint64_t duration);
uint64_t analysis_bucket_least(uint32_t bucket);

/* Counts a duration. `room` is the number of buckets that may still be allocated. Returns 1; 0 if there is no room; or
 * -ENOMEM. */
int analysis_histogram_add(struct analysis_histogram *histogram, uint64_t duration, size_t *room);

/* The duration than which `share` (0 to 1) of the durations are not longer: the middle of its bucket. 0 if empty. */
uint64_t analysis_histogram_at(const struct analysis_histogram *histogram, double share);

/* ---- functions ---- */

/* All times are in nanoseconds. A call is whole if the trace has both its beginning and its end. Others began before
 * the recording, or were cut by its end or by a gap: their time is in the sums, but they have no duration. */
struct analysis_latency_row {
  uint32_t function; /* number: analysis_calls_function */
  uint64_t calls;
  uint64_t cut;                 /* of these, those that are not whole */
  struct analysis_duration all; /* in the function and all that it called; a recursion counts once */
  struct analysis_duration own; /* without what it called */
  uint64_t median, p90, p99;    /* durations of whole calls; exact within 1/32, and never out of the next two */
  uint64_t shortest, longest;
  struct { /* the longest one, and the first of these; all 0 if there are no whole calls */
    uint32_t stream;
    uint64_t waited;                    /* part of its duration */
    uint64_t start;                     /* since the start of the recording */
    uint64_t first_branch, last_branch; /* numbers of the branches that entered and left it */
  } where;
  struct analysis_histogram histogram; /* of whole calls */
  uint32_t active;                     /* private: its open calls in the current stream */
};

enum analysis_latency_order {
  ANALYSIS_LATENCY_BY_LONGEST,
  ANALYSIS_LATENCY_BY_TOTAL,
  ANALYSIS_LATENCY_BY_OWN,
  ANALYSIS_LATENCY_BY_WAITING, /* own */
  ANALYSIS_LATENCY_BY_MEDIAN,
  ANALYSIS_LATENCY_BY_P99,
  ANALYSIS_LATENCY_BY_CALLS,
  ANALYSIS_LATENCY_BY_NAME,
  ANALYSIS_LATENCY_ORDERS,
};

/* "longest", "total", ...; NULL past the last. */
const char *analysis_latency_order_name(unsigned order);

struct analysis_latency {
  struct analysis_calls *calls;
  struct analysis_thread_times threads;
  struct analysis_latency_row *rows; /* of functions that were called */
  size_t count, capacity;
  bool has_forgotten; /* histograms lack durations for which there was no room */
  /* The members below are private. */
  struct latency_stream *streams;
  size_t stream_count, stream_capacity;
  uint32_t stream; /* the one whose functions are marked as active */
  size_t room;     /* buckets that may still be allocated */
};

/* Reads the trace, or one stream of it (LB_TRACE_ALL: all). `names` and `code` belong to that trace and must stay valid
 * for as long as the result; `code` may be NULL. Memory is bounded by about 300 MiB, symbols not counted. Returns 0,
 * also if the trace could not be read to its end; or negative after a message, for example if the trace has no times.
 * analysis_latency_done in either case. */
int analysis_latency_read(struct trace_input *input, struct analysis_names *names, struct analysis_code *code,
                          uint32_t stream, struct analysis_latency *ret_latency);
void analysis_latency_done(struct analysis_latency *latency);

/* Keeps only functions of this name (analysis_called_is) and module (analysis_module_is); NULL: all. */
void analysis_latency_keep(struct analysis_latency *latency, const struct analysis_names *names, const char *function,
                           const char *module);

/* Sorts the rows: the greatest first, equal ones by name. */
void analysis_latency_sort(struct analysis_latency *latency, enum analysis_latency_order order);

#endif
