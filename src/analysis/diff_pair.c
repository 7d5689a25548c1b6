/* SPDX-License-Identifier: Apache-2.0
 *
 * Compares two streams branch by branch and finds where they diverge. With --resync it also finds where they are the
 * same again, and the next place where they diverge.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/diff_inside.h"
#include "base/base.h"

#define HISTORY_LEAST 64u /* branches that are kept, even if fewer are shown */

static void history_add(struct diff_pair *pair, const struct analysis_diff_branch *branch)
{
  pair->history[pair->at] = *branch;
  pair->at = pair->at + 1 == pair->size ? 0 : pair->at + 1;
  pair->count += pair->count < pair->size;
}

/* Compares all branches that both have ready in one call. */
static void pair_pass(struct diff_pair *pair)
{
  size_t count, same = diff_sides_pass(pair->sides, pair->last, pair->size, &count);

  for (size_t i = 0; i < count; i++)
    history_add(pair, &pair->last[i]);
  pair->same += same;
  if (same)
    trace_progress_show(&pair->progress, pair->same);
}

/* Continues while both are the same. Returns 1 when they diverge, 0 when both have ended, or negative. */
static int pair_walk(struct diff_pair *pair)
{
  struct analysis_diff_branch one, other;
  struct diff_side *a = &pair->sides[0], *b = &pair->sides[1];

  for (;;) {
    int r_one, r_other;

    pair_pass(pair);
    r_one = diff_side_next(a, &one);
    r_other = diff_side_next(b, &other);
    if (r_one < 0 || r_other < 0)
      return r_one < 0 ? r_one : r_other;
    if (!r_one && !r_other)
      return 0;
    if (!r_one || !r_other || !analysis_diff_is_same(&one, &other)) {
      if (r_one)
        diff_side_put_back(a);
      if (r_other)
        diff_side_put_back(b);
      return 1;
    }
    history_add(pair, &one);
    pair->same++;
  }
}

/* ---- where they diverge ---- */

/* The last common branch, or the one `before` branches earlier. */
static const struct analysis_diff_branch *history_get(const struct diff_pair *pair, uint32_t before)
{
  return &pair->history[(pair->at + pair->size - 1 - before) % pair->size];
}

size_t diff_pair_history(const struct diff_pair *pair, struct analysis_diff_branch **ret_branches)
{
  uint32_t count = pair->count < pair->options->before ? pair->count : pair->options->before;
  struct analysis_diff_branch *sorted = calloc(count + 1, sizeof(*sorted));

  for (uint32_t i = 0; sorted && i < count; i++)
    sorted[i] = *history_get(pair, count - 1 - i);
  *ret_branches = sorted;
  return sorted ? count : 0;
}

/* How many branches in a row must be equal for the streams to count as the same again: DIFF_RUN, or fewer if one of the
 * streams has fewer left. */
static size_t pair_run_length(const struct diff_pair *pair)
{
  size_t run = DIFF_RUN;

  for (unsigned i = 0; i < 2; i++)
    if (pair->sides[i].reading->is_over && diff_side_queued(&pair->sides[i]) < run)
      run = diff_side_queued(&pair->sides[i]);
  return run;
}

int diff_pair_rejoin(struct diff_pair *pair, size_t *ret_one, size_t *ret_other)
{
  struct diff_side *a = &pair->sides[0], *b = &pair->sides[1];
  size_t run = pair_run_length(pair);
  int r = run ? analysis_diff_rejoin(diff_side_queue(a), diff_side_queued(a), diff_side_queue(b), diff_side_queued(b),
                                     run, ret_one, ret_other)
              : 0;

  if (r < 0)
    message("%s: %s", a->input.name, lb_strerror(r));
  if (r <= 0)
    return r;
  diff_side_drop(a, *ret_one);
  diff_side_drop(b, *ret_other);
  return 1;
}

/* ---- two streams ---- */

bool diff_side_has_gap(const struct diff_side *side)
{
  return side->reading->is_over && side->gap.reason != LB_TRACE_GAP_REASONS;
}

/* Streams have not diverged if one of them lacks branches here. Both queues are filled. */
static bool pair_is_at_gap(const struct diff_pair *pair)
{
  for (unsigned i = 0; i < 2; i++)
    if (!diff_side_queued(&pair->sides[i]) && diff_side_has_gap(&pair->sides[i]))
      return true;
  return false;
}

/* The last common branch that was neither a conditional nor a direct jump. NULL if the history has none. */
static const struct analysis_diff_branch *history_entry(const struct diff_pair *pair)
{
  for (uint32_t i = 0; i < pair->count; i++) {
    const struct analysis_diff_branch *branch = history_get(pair, i);

    if (branch->branch.kind != LB_BRANCH_JCC && branch->branch.kind != LB_BRANCH_NEAR_REL_JMP)
      return branch;
  }
  return NULL;
}

/* Continues while both are the same, and past code that is not compared. Returns the same values as pair_walk. */
static int pair_walk_on(struct diff_pair *pair)
{
  struct analysis_diff_branch last;
  int r;

  if (pair->differences) /* the history before the last difference is not that of the next */
    pair->count = pair->at = 0;
  while ((r = pair_walk(pair)) > 0 && !pair->options->is_strict) {
    r = diff_strings_pass(pair->sides, history_entry(pair), &last);
    if (r <= 0)
      return r < 0 ? r : 1;
    history_add(pair, &last);
    pair->skipped++;
  }
  return r;
}

int diff_pair_next(struct diff_pair *pair)
{
  int r = pair_walk_on(pair);

  if (r <= 0)
    return r;
  r = diff_side_fill(&pair->sides[0], DIFF_WINDOW);
  if (r >= 0)
    r = diff_side_fill(&pair->sides[1], DIFF_WINDOW);
  if (r < 0 || pair_is_at_gap(pair))
    return r;
  trace_progress_end(&pair->progress);
  pair->differences++;
  return 1;
}

int diff_pair_begin(struct diff_pair *pair, struct diff_side sides[2], const struct diff_options *options,
                    const uint32_t streams[2])
{
  int r;

  *pair = (struct diff_pair){.sides = sides, .options = options, .streams = {streams[0], streams[1]}};
  pair->size = options->before > HISTORY_LEAST ? options->before : HISTORY_LEAST;
  pair->history = calloc(2 * (size_t)pair->size, sizeof(*pair->history));
  if (!pair->history) {
    message("no memory");
    return -ENOMEM;
  }
  pair->last = pair->history + pair->size;
  trace_progress_begin(&pair->progress, sides[0].input.reader);
  pair->progress.total = 0;
  r = diff_side_begin(&sides[0], &sides[1], options, streams[0]);
  return r < 0 ? r : diff_side_begin(&sides[1], &sides[0], options, streams[1]);
}

void diff_pair_done(struct diff_pair *pair)
{
  trace_progress_end(&pair->progress);
  free(pair->history);
}
