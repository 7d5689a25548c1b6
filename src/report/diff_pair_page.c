/* SPDX-License-Identifier: Apache-2.0
 *
 * Two streams: where they diverge, the branches of both before that and of each after it, and facts about them as a
 * whole.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/diff_page.h"
#include "report/diff_words.h"

/* ---- where they diverge ---- */

static void put_history(const struct diff_pair *pair, struct page *page)
{
  struct analysis_diff_branch *branches;
  size_t count = diff_pair_history(pair, &branches);

  diff_put_branches(page, &pair->sides[0], "before", "Both, before that", branches, count);
  free(branches);
}

static void put_after(const struct diff_pair *pair, struct page *page, unsigned number, const char *key,
                      const char *title)
{
  const struct diff_side *side = &pair->sides[number];
  size_t count = diff_side_queued(side), most = pair->options->after;

  diff_put_branches(page, side, key, title, diff_side_queue(side), count < most ? count : most);
}

static void summary_take(const struct diff_pair *pair, struct diff_summary *summary,
                         const struct analysis_diff_branch *one, const struct analysis_diff_branch *other)
{
  char brief[500], thread[40] = "";

  diff_parting_brief(brief, sizeof(brief), pair->sides, one, other);
  if (pair->streams[0] != pair->streams[1])
    snprintf(thread, sizeof(thread), " of A and %" PRIu32 " of B", pair->streams[1]);
  snprintf(summary->first, sizeof(summary->first), "thread %" PRIu32 "%s: %s", pair->streams[0], thread, brief);
}

/* Both queues begin at the divergence. */
static void put_parting(const struct diff_pair *pair, struct diff_summary *summary, struct page *page)
{
  const struct diff_side *a = &pair->sides[0], *b = &pair->sides[1];
  const struct analysis_diff_branch *one = diff_side_queued(a) ? diff_side_queue(a) : NULL;
  const struct analysis_diff_branch *other = diff_side_queued(b) ? diff_side_queue(b) : NULL;

  if (one)
    page_put_number(page, "number_a", one->number);
  else
    page_absent(page, "number_a");
  if (other)
    page_put_number(page, "number_b", other->number);
  else
    page_absent(page, "number_b");
  diff_put_parting(page, pair->sides, one, other);
  if (!*summary->first)
    summary_take(pair, summary, one, other);
  put_history(pair, page);
  put_after(pair, page, 0, "a", "A then");
  put_after(pair, page, 1, "b", "B then");
}

/* Returns the same values as diff_pair_rejoin. */
static int put_rejoin(struct diff_pair *pair, struct page *page)
{
  size_t one = 0, other = 0;
  int r = diff_pair_rejoin(pair, &one, &other);

  if (r > 0) {
    page_put_count(page, "branches_of_a_alone", one);
    page_put_count(page, "branches_of_b_alone", other);
  } else {
    page_put(page, "together_again", page->is_json ? NULL : "not within 65536 branches");
  }
  return r;
}

/* Prints one difference. Returns 1 to continue after it, 0 at the end. */
static int put_difference(struct diff_pair *pair, struct diff_summary *summary, struct page *page)
{
  int r;

  page_section(page, NULL, pair->differences == 1 ? "They part" : "They part again");
  put_parting(pair, summary, page);
  r = pair->options->is_resync ? put_rejoin(pair, page) : 0;
  page_section_end(page);
  return r > 0 && pair->differences < pair->options->limit;
}

static int put_differences(struct diff_pair *pair, struct diff_summary *summary, struct page *page)
{
  int r;

  page_array(page, "differences");
  while ((r = diff_pair_next(pair)) > 0 && put_difference(pair, summary, page))
    ;
  page_array_end(page);
  return r < 0 ? r : 0;
}

/* ---- the pair ---- */

static const char *result_word(const struct diff_pair *pair)
{
  if (pair->differences)
    return "different";
  return diff_side_has_gap(&pair->sides[0]) || diff_side_has_gap(&pair->sides[1]) ? "unknown" : "equal";
}

static void put_gap(struct page *page, const struct diff_side *side, const char *key)
{
  if (diff_side_has_gap(side))
    page_putf(page, key, "%s: branches are missing from number %llu on (%s); the rest was not compared",
              page->is_json ? side->input.name : key, (unsigned long long)side->gap.first,
              lb_trace_gap_name(side->gap.reason));
  else
    page_absent(page, key);
}

static void put_name(struct page *page, const struct diff_side *side, const char *key, uint32_t number)
{
  struct analysis_stream stream;

  if (analysis_names_stream(side->names, number, &stream) && *stream.name)
    page_put(page, key, stream.name);
  else
    page_absent(page, key);
}

static void put_sum(const struct diff_pair *pair, struct page *page)
{
  const struct diff_side *sides = pair->sides;

  if (pair->differences)
    page_blank(page);
  put_name(page, &sides[0], "name_a", pair->streams[0]);
  put_name(page, &sides[1], "name_b", pair->streams[1]);
  page_put(page, "result", result_word(pair));
  page_put_count(page, "same_branches", pair->same);
  if (pair->skipped || page->is_json)
    page_put_count(page, "skipped", pair->skipped);
  put_gap(page, &sides[0], "gap_a");
  put_gap(page, &sides[1], "gap_b");
}

int diff_put_pair(const struct diff_page *diff, const uint32_t streams[2], struct diff_summary *summary,
                  struct page *page)
{
  struct diff_pair pair;
  int r = diff_pair_begin(&pair, diff->sides, diff->options, streams);

  if (r >= 0)
    r = put_differences(&pair, summary, page);
  diff_pair_done(&pair);
  if (r < 0)
    return r;
  put_sum(&pair, page);
  summary->same += pair.same;
  summary->skipped += pair.skipped;
  summary->different += pair.differences > 0;
  if (pair.differences)
    return 1;
  return diff_side_has_gap(&diff->sides[0]) || diff_side_has_gap(&diff->sides[1]) ? 2 : 0;
}
