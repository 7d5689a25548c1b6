/* SPDX-License-Identifier: Apache-2.0
 *
 * `lbr diff`: one of the two traces, and a stream of it that is read branch by branch (diff_side.c); two streams that
 * are compared (diff_compare.c); string functions, which are passed over (diff_strings.c); functions whose counts
 * differ (diff_counts.c); what is printed of it (diff_page.c).
 */
#ifndef CLI_DIFF_SIDE_H
#define CLI_DIFF_SIDE_H

#include "analysis/analysis.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "report/report.h"

#define DIFF_WINDOW 65536u /* branches of each run in which they must come together again */
#define DIFF_RUN 16u       /* that are the same, one behind the other, when they have */
#define DIFF_SHOWN_MAX 4096u

struct diff_arguments {
  struct shared_options shared; /* what it says is below, too, once it is parsed */
  const char *files[2];
  uint32_t streams[2];          /* LB_TRACE_ALL: all */
  struct filter_options filter; /* only such branches are compared */
  uint32_t before, after;
  uint32_t top;
  uint64_t limit; /* differences of a pair of threads that are shown */
  bool is_strict; /* string functions of the C library are compared, too */
  bool is_resync, has_symbols, has_counts, is_mangled, is_json;
};

/* A stream of a trace, for the pairing. */
struct diff_thread {
  char *name; /* as the trace has it */
  uint64_t length;
  uint32_t partner; /* number of the other trace's stream, or LB_TRACE_ALL */
};

struct diff_side {
  struct trace_input input;
  bool is_process, has_symbols;
  struct report_diff_files files;
  struct diff_thread *threads;
  size_t thread_count, thread_capacity;
  struct report_names *names;
  struct report_diff_keys *keys;
  bool has_learned; /* all that describes the trace was read once */
  /* the stream that is read: */
  struct trace_stream stream;
  uint32_t space;
  struct {
    const struct lb_branch *branches;
    const uint64_t *numbers; /* of each; NULL: they are one behind the other from `first` on */
    uint64_t first;
    size_t count;
  } batch;                                     /* that is not used up */
  struct report_filter *filter;                /* NULL: all branches are compared */
  bool is_region;                              /* it asks for pieces of code: all branches in them are there */
  struct lb_branch picked[LB_TRACE_BATCH_MAX]; /* that passed it */
  uint64_t numbers[LB_TRACE_BATCH_MAX];
  struct report_diff_branch *queue; /* branches that come before the batch: DIFF_WINDOW at most */
  size_t queue_at, queue_count;
  bool is_from_queue;      /* the branch that was given last */
  bool is_over;            /* there is no more, or none that would follow: */
  struct lb_trace_gap gap; /* branches are missing here; reason LB_TRACE_GAP_REASONS: none are */
};

/* Opens a trace and learns what is in it. Complains. Returns 0 or negative; diff_side_close only after 0. */
int diff_side_open(struct diff_side *side, const char *name);

/* Returns as trace_input_close. */
int diff_side_close(struct diff_side *side);

/* Begins with a stream. Complains. Returns 0 or negative. */
int diff_side_begin(struct diff_side *side, const struct diff_side *other, const struct diff_arguments *arguments,
                    uint32_t number);

/* The next branch of the stream. Returns 1; 0 when it is over (a gap ends it, too); or negative after a complaint. */
int diff_side_next(struct diff_side *side, struct report_diff_branch *ret_branch);

/* The branch that was given last comes again. */
void diff_side_put_back(struct diff_side *side);

/* How many of the branches that both have ready are the same, from the first one on; passes over these. `ret_last`
 * receives the last few of them, `most` at most, as the first side has them. Returns how many there were. */
size_t diff_sides_pass(struct diff_side sides[2], struct report_diff_branch *ret_last, size_t most, size_t *ret_count);

/* Fills the queue up to so many branches, DIFF_WINDOW at most. Returns 0, or negative after a complaint. */
int diff_side_fill(struct diff_side *side, size_t count);

/* Takes up to `count` branches from the queue. */
void diff_side_drop(struct diff_side *side, size_t count);

static inline const struct report_diff_branch *diff_side_queue(const struct diff_side *side)
{
  return side->queue + side->queue_at;
}

static inline size_t diff_side_queued(const struct diff_side *side)
{
  return side->queue_count - side->queue_at;
}

/* ---- comparing (diff_compare.c) ---- */

/* What all pairs of threads have in common to say. */
struct diff_summary {
  uint64_t same;      /* branches that both took */
  uint64_t skipped;   /* differences in string functions */
  uint32_t different; /* pairs that differ, threads without partner */
  char first[700];    /* where the first of them does; "": none */
};

/* Compares two streams, prints what there is to say of them, and adds it to the summary. Complains. Returns 1 if they
 * differ, 0 if not, 2 if branches are missing, so that nobody can tell; or negative. */
int diff_compare(struct diff_side sides[2], const struct diff_arguments *arguments, const uint32_t streams[2],
                 struct diff_summary *summary, struct page *page);

/* ---- string functions (diff_strings.c) ---- */

/* Two streams part: if both are in a string function of the C library and return to the same place, passes over it.
 * `entry`: the last branch of both that was no conditional or direct jump: the call of a function that calls nothing;
 * NULL: not known. Returns 1, with the return as the first of them has it; 0 if not; or negative after a complaint. */
int diff_strings_pass(struct diff_side sides[2], const struct report_diff_branch *entry,
                      struct report_diff_branch *ret_return);

/* ---- what is printed (diff_page.c) ---- */

/* A table of branches. */
void diff_put_branches(struct page *page, const struct diff_side *side, const char *key, const char *title,
                       const struct report_diff_branch *branches, size_t count);

/* What the two did where they parted; `one` or `other` is NULL if that one has ended. */
void diff_put_parting(struct page *page, const struct diff_side sides[2], const struct report_diff_branch *one,
                      const struct report_diff_branch *other);

/* The same in a few words, without why. */
void diff_parting_brief(char *text, size_t size, const struct diff_side sides[2], const struct report_diff_branch *one,
                        const struct report_diff_branch *other);

/* "thread 3 (worker)" */
void diff_thread_text(char *text, size_t size, const struct diff_side *side, uint32_t number);

/* ---- counts (diff_counts.c) ---- */

/* Prints the functions whose counts differ most. Complains. Returns 0 or negative. */
int diff_counts(struct diff_side sides[2], const struct diff_arguments *arguments, struct page *page);

#endif
