/* SPDX-License-Identifier: Apache-2.0
 *
 * Two traces that are compared: one of them, and a stream of it that is read branch by branch (diff_side.c); threads
 * that belong together (diff_threads.c); two streams in step (diff_pair.c); string functions, which are skipped
 * (diff_strings.c); functions whose counts differ (diff_counts.c), or whose times do (diff_times.c).
 */
#ifndef ANALYSIS_DIFF_SIDE_H
#define ANALYSIS_DIFF_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/clock.h"
#include "analysis/counts.h"
#include "analysis/diff.h"
#include "analysis/filter.h"
#include "analysis/names.h"
#include "analysis/syscalls.h"
#include "analysis/thread_times.h"
#include "analysis/trace_input.h"
#include "analysis/trace_progress.h"
#include "analysis/trace_stream.h"
#include "base/base.h"
#include "lastbranch/trace.h"

#define DIFF_SHOWN_MAX 4096u

struct diff_options {
  uint32_t streams[2];                   /* LB_TRACE_ALL: all */
  struct analysis_filter_options filter; /* only such branches are compared */
  uint32_t before, after; /* branches that are shown before the runs diverge, and of each run after that */
  uint32_t top;           /* functions whose counts are shown */
  uint64_t limit;         /* differences of a pair of threads that are shown */
  bool is_strict;         /* string functions of the C library are compared, too */
  bool is_resync, has_symbols, has_counts, is_mangled;
  bool has_times; /* times of functions are compared */
};

/* A stream of a trace, for the pairing. */
struct diff_thread {
  char *name; /* as the trace has it */
  uint64_t length;
  uint32_t partner; /* number of the other trace's stream, or LB_TRACE_ALL */
};

struct diff_reading;

struct diff_side {
  struct trace_input input;
  bool is_process, has_symbols;
  struct analysis_diff_files files;
  struct diff_thread *threads;
  size_t thread_count, thread_capacity;
  struct analysis_names *names;
  struct analysis_diff_keys *keys;
  /* the stream that is read: */
  struct diff_reading *reading;
  uint32_t space;
  struct analysis_filter *filter;     /* NULL: all branches are compared */
  bool is_region;                     /* the filter asks for regions of code: all branches in them are there */
  struct analysis_diff_branch *queue; /* branches that come before the batch: DIFF_WINDOW at most */
  size_t queue_at, queue_count;
  struct lb_trace_gap gap; /* branches are missing here; reason LB_TRACE_GAP_REASONS: none are */
};

/* Opens a trace and reads its description. Reports errors by message(). Returns 0 or negative; diff_side_close only
 * after 0. */
int diff_side_open(struct diff_side *side, const char *name);

/* Returns as trace_input_close. */
int diff_side_close(struct diff_side *side);

/* The branches that come next, as far as they were read ahead. */
static inline const struct analysis_diff_branch *diff_side_queue(const struct diff_side *side)
{
  return side->queue + side->queue_at;
}

static inline size_t diff_side_queued(const struct diff_side *side)
{
  return side->queue_count - side->queue_at;
}

/* ---- which thread belongs to which (diff_threads.c) ---- */

/* Sets the partners of all threads: the nth thread of a name belongs to the nth of that name; the threads that remain
 * are paired in their order. Returns 0, or -ENOMEM. */
int diff_threads_pair(struct diff_side sides[2]);

/* ---- two streams in step (diff_pair.c) ---- */

struct diff_pair {
  struct diff_side *sides;
  const struct diff_options *options;
  uint32_t streams[2];
  uint64_t same; /* branches that both took */
  uint64_t differences;
  uint64_t skipped; /* differences in string functions, which were skipped */
  /* The members below are private. */
  struct trace_progress progress;
  struct analysis_diff_branch *history; /* a ring of branches that both streams took, as the first stream has them */
  struct analysis_diff_branch *last;    /* buffer for branches on their way into the ring */
  uint32_t size, at, count;
};

/* Begins to compare two streams. Reports errors by message(). Returns 0 or negative; diff_pair_done in either case. */
int diff_pair_begin(struct diff_pair *pair, struct diff_side sides[2], const struct diff_options *options,
                    const uint32_t streams[2]);
void diff_pair_done(struct diff_pair *pair);

/* Continues to the next divergence: both queues then begin there. Returns 1; 0 when both are over, or where branches
 * are missing (diff_side_has_gap); or negative after a message. */
int diff_pair_next(struct diff_pair *pair);

/* Gets the branches that both took before they diverge, as the first stream has them, in their order: at most as many
 * as `before` of the options. The caller frees the array. Returns how many there are; 0 without memory. */
size_t diff_pair_history(const struct diff_pair *pair, struct analysis_diff_branch **ret_branches);

/* Finds the place where both take the same branches again, and continues there. Must be called before the next
 * diff_pair_next. Returns 1 with the branches that each took alone, 0 if there is no such place, or negative after a
 * message. */
int diff_pair_rejoin(struct diff_pair *pair, size_t *ret_one, size_t *ret_other);

/* Are branches missing where the stream stopped? */
bool diff_side_has_gap(const struct diff_side *side);

/* ---- counts (diff_counts.c) ---- */

/* A function of both traces. */
struct diff_count_row {
  char *symbol, *module; /* NULL: none */
  uint64_t instructions[2], branches[2], entered[2];
  /* from diff_times_make: */
  uint64_t calls[2];
  struct analysis_duration all[2], own[2]; /* with and without what it called; a row without symbol has no `all` */
};

struct diff_counts {
  struct analysis_count_totals totals[2];
  bool is_limited[2];          /* the trace names more code than was decoded */
  struct diff_count_row *rows; /* those that differ most first */
  size_t count, capacity;
  struct hash_index index; /* of rows by symbol and module; invalid once they are sorted */
};

/* Counts both traces, one after the other. Reports errors by message(). Returns 0 or negative; diff_counts_done in
 * either case. */
int diff_counts_make(struct diff_side sides[2], const struct diff_options *options, struct diff_counts *ret_counts);
void diff_counts_done(struct diff_counts *counts);

bool diff_count_row_differs(const struct diff_count_row *row);

/* ---- times (diff_times.c) ---- */

/* A system call of both traces. */
struct diff_call_row {
  uint32_t number;
  struct analysis_syscall_row sides[2];
};

struct diff_times {
  struct analysis_thread_time threads[2]; /* all threads, or the one that is compared; `start` is of no use */
  struct diff_counts functions;           /* those whose own times differ most first */
  struct diff_call_row *calls;            /* likewise */
  size_t call_count, call_capacity;
};

/* Reads both traces, one after the other. Reports errors by message(), for example if a trace has no times. Returns 0
 * or negative; diff_times_done in either case. */
int diff_times_make(struct diff_side sides[2], const struct diff_options *options, struct diff_times *ret_times);
void diff_times_done(struct diff_times *times);

#endif
