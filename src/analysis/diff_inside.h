/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files diff_*.c share: a stream of a trace that is read branch by branch.
 */
#ifndef ANALYSIS_DIFF_INSIDE_H
#define ANALYSIS_DIFF_INSIDE_H

#include "analysis/diff_side.h"
#include "analysis/trace_stream.h"

#define DIFF_WINDOW 65536u /* branches of each run within which they must converge again */
#define DIFF_RUN 16u       /* consecutive branches that must be the same for that */

/* The read position in a stream. */
struct diff_reading {
  struct trace_stream stream;
  bool has_learned; /* all records that describe the trace were read once */
  struct {
    const struct lb_branch *branches;
    const uint64_t *numbers; /* of each; NULL: they are consecutive, from `first` on */
    uint64_t first;
    size_t count;
  } batch;                                     /* of branches that are not used up */
  struct lb_branch picked[LB_TRACE_BATCH_MAX]; /* branches that passed the filter */
  uint64_t numbers[LB_TRACE_BATCH_MAX];
  bool is_from_queue; /* the branch that was given last */
  bool is_over;       /* the stream has no more branches, or a gap follows (diff_side_has_gap) */
};

/* Begins to read a stream. Reports errors by message(). Returns 0 or negative. */
int diff_side_begin(struct diff_side *side, const struct diff_side *other, const struct diff_options *options,
                    uint32_t number);

/* The next branch of the stream. Returns 1; 0 when it is over (a gap ends it, too); or negative after a message. */
int diff_side_next(struct diff_side *side, struct analysis_diff_branch *ret_branch);

/* Puts back the branch that was given last: it is given again. */
void diff_side_put_back(struct diff_side *side);

/* Compares the branches that both sides have ready, from the first one on, and skips those that are the same.
 * `ret_last` receives the last few of them, `most` at most, as the first side has them. Returns how many there were. */
size_t diff_sides_pass(struct diff_side sides[2], struct analysis_diff_branch *ret_last, size_t most,
                       size_t *ret_count);

/* Fills the queue with up to `count` branches, DIFF_WINDOW at most. Returns 0, or negative after a message. */
int diff_side_fill(struct diff_side *side, size_t count);

/* Removes up to `count` branches from the queue. */
void diff_side_drop(struct diff_side *side, size_t count);

/* ---- functions (diff_counts.c) ---- */

/* The row of a function, which is added if there is none. Returns 0 with NULL if there are too many, or -ENOMEM. */
int diff_counts_row(struct diff_counts *rows, const char *symbol, const char *module, struct diff_count_row **ret_row);

/* How much two numbers differ. */
static inline uint64_t diff_difference(uint64_t one, uint64_t other)
{
  return one > other ? one - other : other - one;
}

/* Orders rows by their names. */
int diff_count_row_compare(const struct diff_count_row *one, const struct diff_count_row *other);

/* ---- string functions (diff_strings.c) ---- */

/* To be called where two streams diverge. If both are in a string function of the C library and return to the same
 * place, skips the function. `entry` is the last common branch that was neither a conditional nor a direct jump: the
 * call of a function that calls nothing. It is NULL if unknown. Returns 1, with the return as the first stream has it;
 * 0 if nothing was skipped; or negative after a message. */
int diff_strings_pass(struct diff_side sides[2], const struct analysis_diff_branch *entry,
                      struct analysis_diff_branch *ret_return);

#endif
