/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files diff_*.c share: a stream of a trace that is read branch by branch.
 */
#ifndef ANALYSIS_DIFF_INSIDE_H
#define ANALYSIS_DIFF_INSIDE_H

#include "analysis/diff_side.h"
#include "analysis/trace_stream.h"

#define DIFF_WINDOW 65536u /* branches of each run in which they must come together again */
#define DIFF_RUN 16u       /* consecutive branches that must be the same for that */

/* Where the reading of a stream is. */
struct diff_reading {
  struct trace_stream stream;
  bool has_learned; /* all that describes the trace was read once */
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

/* Begins with a stream. Complains. Returns 0 or negative. */
int diff_side_begin(struct diff_side *side, const struct diff_side *other, const struct diff_options *options,
                    uint32_t number);

/* The next branch of the stream. Returns 1; 0 when it is over (a gap ends it, too); or negative after a complaint. */
int diff_side_next(struct diff_side *side, struct analysis_diff_branch *ret_branch);

/* The branch that was given last comes again. */
void diff_side_put_back(struct diff_side *side);

/* Compares the branches that both sides have ready, from the first one on, and passes over those that are the same.
 * `ret_last` receives the last few of them, `most` at most, as the first side has them. Returns how many there were. */
size_t diff_sides_pass(struct diff_side sides[2], struct analysis_diff_branch *ret_last, size_t most,
                       size_t *ret_count);

/* Fills the queue with up to `count` branches, DIFF_WINDOW at most. Returns 0, or negative after a complaint. */
int diff_side_fill(struct diff_side *side, size_t count);

/* Takes up to `count` branches from the queue. */
void diff_side_drop(struct diff_side *side, size_t count);

/* ---- string functions (diff_strings.c) ---- */

/* Two streams part: if both are in a string function of the C library and return to the same place, passes over it.
 * `entry`: the last branch of both that was no conditional or direct jump: the call of a function that calls nothing;
 * NULL: not known. Returns 1, with the return as the first of them has it; 0 if not; or negative after a complaint. */
int diff_strings_pass(struct diff_side sides[2], const struct analysis_diff_branch *entry,
                      struct analysis_diff_branch *ret_return);

#endif
