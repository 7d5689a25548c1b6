/* SPDX-License-Identifier: Apache-2.0
 *
 * Two streams in step: where they part, and, if that is wanted, where they come together again and part anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/diff_side.h"

#define HISTORY_LEAST 64u /* branches that are kept, also if fewer are shown */

/* Two streams while they are compared. */
struct pair {
  struct diff_side *sides;
  const struct diff_arguments *arguments;
  struct page *page;
  struct trace_progress progress;
  struct report_diff_branch *history; /* a ring of what the first of them did that the second did, too */
  struct report_diff_branch *last;    /* on their way there */
  uint32_t size, at, count;
  uint64_t same; /* branches that both took */
  uint64_t differences;
  uint64_t skipped; /* others, in string functions */
  const uint32_t *streams;
  struct diff_summary *summary;
};

static void history_add(struct pair *pair, const struct report_diff_branch *branch)
{
  pair->history[pair->at] = *branch;
  pair->at = pair->at + 1 == pair->size ? 0 : pair->at + 1;
  pair->count += pair->count < pair->size;
}

/* What both have ready, at once. */
static void pair_pass(struct pair *pair)
{
  size_t count, same = diff_sides_pass(pair->sides, pair->last, pair->size, &count);

  for (size_t i = 0; i < count; i++)
    history_add(pair, &pair->last[i]);
  pair->same += same;
  if (same)
    trace_progress_show(&pair->progress, pair->same);
}

/* Goes on while both do the same. Returns 1 when they part, 0 when both are over, or negative. */
static int pair_walk(struct pair *pair)
{
  struct report_diff_branch one, other;
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
    if (!r_one || !r_other || !report_diff_is_same(&one, &other)) {
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

/* ---- where they part ---- */

/* The last branch that both took, or the one so many before it. */
static const struct report_diff_branch *history_get(const struct pair *pair, uint32_t before)
{
  return &pair->history[(pair->at + pair->size - 1 - before) % pair->size];
}

static void put_history(struct pair *pair)
{
  uint32_t count = pair->count < pair->arguments->before ? pair->count : pair->arguments->before;
  struct report_diff_branch *sorted = calloc(count + 1, sizeof(*sorted));

  for (uint32_t i = 0; sorted && i < count; i++)
    sorted[i] = *history_get(pair, count - 1 - i);
  diff_put_branches(pair->page, &pair->sides[0], "before", "Both, before that", sorted, sorted ? count : 0);
  free(sorted);
}

static void put_after(struct pair *pair, unsigned number, const char *key, const char *title)
{
  const struct diff_side *side = &pair->sides[number];
  size_t count = diff_side_queued(side), most = pair->arguments->after;

  diff_put_branches(pair->page, side, key, title, diff_side_queue(side), count < most ? count : most);
}

static void summary_take(struct pair *pair, const struct report_diff_branch *one,
                         const struct report_diff_branch *other)
{
  char brief[500], thread[40] = "";

  diff_parting_brief(brief, sizeof(brief), pair->sides, one, other);
  if (pair->streams[0] != pair->streams[1])
    snprintf(thread, sizeof(thread), " of A and %" PRIu32 " of B", pair->streams[1]);
  snprintf(pair->summary->first, sizeof(pair->summary->first), "thread %" PRIu32 "%s: %s", pair->streams[0], thread,
           brief);
}

/* Both queues begin where they part. */
static void put_parting(struct pair *pair)
{
  struct page *page = pair->page;
  const struct diff_side *a = &pair->sides[0], *b = &pair->sides[1];
  const struct report_diff_branch *one = diff_side_queued(a) ? diff_side_queue(a) : NULL;
  const struct report_diff_branch *other = diff_side_queued(b) ? diff_side_queue(b) : NULL;

  if (one)
    page_put_number(page, "number_a", one->number);
  else
    page_absent(page, "number_a");
  if (other)
    page_put_number(page, "number_b", other->number);
  else
    page_absent(page, "number_b");
  diff_put_parting(page, pair->sides, one, other);
  if (!*pair->summary->first)
    summary_take(pair, one, other);
  put_history(pair);
  put_after(pair, 0, "a", "A then");
  put_after(pair, 1, "b", "B then");
}

/* So many branches must be the same. Of a stream that is at its end there may be fewer left. */
static size_t pair_run_length(const struct pair *pair)
{
  size_t run = DIFF_RUN;

  for (unsigned i = 0; i < 2; i++)
    if (pair->sides[i].is_over && diff_side_queued(&pair->sides[i]) < run)
      run = diff_side_queued(&pair->sides[i]);
  return run;
}

/* Looks for the place where both do the same again, and goes there. Returns 1, 0 without one, or negative. */
static int pair_rejoin(struct pair *pair)
{
  struct diff_side *a = &pair->sides[0], *b = &pair->sides[1];
  size_t one = 0, other = 0, run = pair_run_length(pair);
  int r = run ? report_diff_rejoin(diff_side_queue(a), diff_side_queued(a), diff_side_queue(b), diff_side_queued(b),
                                   run, &one, &other)
              : 0;

  if (r < 0)
    cli_error("%s: %s", a->input.name, lb_strerror(r));
  if (r > 0) {
    page_put_count(pair->page, "branches_of_a_alone", one);
    page_put_count(pair->page, "branches_of_b_alone", other);
    diff_side_drop(a, one);
    diff_side_drop(b, other);
  } else {
    page_put(pair->page, "together_again", pair->page->is_json ? NULL : "not within 65536 branches");
  }
  return r;
}

/* One difference. Returns 1 to go on behind it, 0 when that is all, or negative. */
static int pair_part(struct pair *pair)
{
  int r;

  pair->differences++;
  trace_progress_end(&pair->progress);
  page_section(pair->page, NULL, pair->differences == 1 ? "They part" : "They part again");
  put_parting(pair);
  r = pair->arguments->is_resync ? pair_rejoin(pair) : 0;
  page_section_end(pair->page);
  pair->count = pair->at = 0;
  return r > 0 && pair->differences < pair->arguments->limit;
}

/* ---- two streams ---- */

static bool side_has_gap(const struct diff_side *side)
{
  return side->is_over && side->gap.reason != LB_TRACE_GAP_REASONS;
}

static const char *result_word(const struct pair *pair)
{
  if (pair->differences)
    return "different";
  return side_has_gap(&pair->sides[0]) || side_has_gap(&pair->sides[1]) ? "unknown" : "equal";
}

static void put_gap(struct page *page, const struct diff_side *side, const char *key)
{
  if (side_has_gap(side))
    page_putf(page, key, "%s: branches are missing from number %llu on (%s); what comes behind was not compared",
              page->is_json ? side->input.name : key, (unsigned long long)side->gap.first,
              lb_trace_gap_name(side->gap.reason));
  else
    page_absent(page, key);
}

/* Where one of them lacks branches they have not parted. Both queues are filled. */
static bool pair_is_at_gap(const struct pair *pair)
{
  for (unsigned i = 0; i < 2; i++)
    if (!diff_side_queued(&pair->sides[i]) && side_has_gap(&pair->sides[i]))
      return true;
  return false;
}

static void put_name(struct page *page, const struct diff_side *side, const char *key, uint32_t number)
{
  struct report_stream stream;

  if (report_names_stream(side->names, number, &stream) && *stream.name)
    page_put(page, key, stream.name);
  else
    page_absent(page, key);
}

/* The last branch of both that was no conditional or direct jump; NULL: none is in the history. */
static const struct report_diff_branch *history_entry(const struct pair *pair)
{
  for (uint32_t i = 0; i < pair->count; i++) {
    const struct report_diff_branch *branch = history_get(pair, i);

    if (branch->branch.kind != LB_BRANCH_JCC && branch->branch.kind != LB_BRANCH_NEAR_REL_JMP)
      return branch;
  }
  return NULL;
}

/* Goes on while both do the same, and past what is not compared. Returns as pair_walk. */
static int pair_walk_on(struct pair *pair)
{
  struct report_diff_branch last;
  int r;

  while ((r = pair_walk(pair)) > 0 && !pair->arguments->is_strict) {
    r = diff_strings_pass(pair->sides, history_entry(pair), &last);
    if (r <= 0)
      return r < 0 ? r : 1;
    history_add(pair, &last);
    pair->skipped++;
  }
  return r;
}

static int pair_run(struct pair *pair)
{
  int r;

  page_array(pair->page, "differences");
  while ((r = pair_walk_on(pair)) > 0) {
    r = diff_side_fill(&pair->sides[0], DIFF_WINDOW);
    if (r >= 0)
      r = diff_side_fill(&pair->sides[1], DIFF_WINDOW);
    if (r < 0 || pair_is_at_gap(pair))
      break;
    r = pair_part(pair);
    if (r <= 0)
      break;
  }
  page_array_end(pair->page);
  return r;
}

int diff_compare(struct diff_side sides[2], const struct diff_arguments *arguments, const uint32_t streams[2],
                 struct diff_summary *summary, struct page *page)
{
  struct pair pair = {.sides = sides, .arguments = arguments, .page = page, .streams = streams, .summary = summary};
  int r;

  pair.size = arguments->before > HISTORY_LEAST ? arguments->before : HISTORY_LEAST;
  pair.history = calloc(2 * (size_t)pair.size, sizeof(*pair.history));
  if (!pair.history) {
    cli_error("no memory");
    return -ENOMEM;
  }
  pair.last = pair.history + pair.size;
  trace_progress_begin(&pair.progress, sides[0].input.reader);
  pair.progress.total = 0;
  r = diff_side_begin(&sides[0], &sides[1], arguments, streams[0]);
  if (r >= 0)
    r = diff_side_begin(&sides[1], &sides[0], arguments, streams[1]);
  if (r >= 0)
    r = pair_run(&pair);
  trace_progress_end(&pair.progress);
  free(pair.history);
  if (r < 0)
    return r;
  if (pair.differences)
    page_blank(page);
  put_name(page, &sides[0], "name_a", streams[0]);
  put_name(page, &sides[1], "name_b", streams[1]);
  page_put(page, "result", result_word(&pair));
  page_put_count(page, "same_branches", pair.same);
  if (pair.skipped || page->is_json)
    page_put_count(page, "skipped", pair.skipped);
  summary->same += pair.same;
  summary->skipped += pair.skipped;
  summary->different += pair.differences > 0;
  put_gap(page, &sides[0], "gap_a");
  put_gap(page, &sides[1], "gap_b");
  if (pair.differences)
    return 1;
  return side_has_gap(&sides[0]) || side_has_gap(&sides[1]) ? 2 : 0;
}
