/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr diff`: the verdict, then the threads, then the functions whose counts changed.
 */
#include "report/diff_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/base.h"
#include "report/diff_words.h"

static void put_alone(struct page *page, const struct diff_side *side, uint32_t number, bool is_first,
                      struct diff_summary *summary)
{
  char text[300], title[400];

  if (!*summary->first)
    snprintf(summary->first, sizeof(summary->first), "thread %u is only in %c", number, is_first ? 'A' : 'B');
  summary->different++;

  diff_thread_text(text, sizeof(text), side, number);
  snprintf(title, sizeof(title), "%s of %c alone", text, is_first ? 'A' : 'B');
  page_section(page, NULL, title);
  if (is_first)
    page_put_number(page, "thread_a", number);
  else
    page_put_number(page, "thread_b", number);
  page_put_count(page, "branches", side->threads[number].length);
  page_put(page, "result", is_first ? "only in A" : "only in B");
  page_section_end(page);
}

static int pair_compare(const struct diff_page *diff, const uint32_t streams[2], struct diff_summary *summary,
                        struct page *page)
{
  const struct diff_side *sides = diff->sides;
  char title[300];
  int r;

  snprintf(title, sizeof(title), "Thread %u of A, thread %u of B", streams[0], streams[1]);
  page_section(page, NULL, title);
  if (page->is_json) {
    page_put_number(page, "thread_a", streams[0]);
    page_put_number(page, "thread_b", streams[1]);
  }
  page_put_count(page, "branches_a", sides[0].threads[streams[0]].length);
  page_put_count(page, "branches_b", sides[1].threads[streams[1]].length);
  r = diff_put_pair(diff, streams, summary, page);
  page_section_end(page);
  return r;
}

/* Compares all pairs; then lists the threads without a partner. Returns the same values as diff_page_print. */
static int threads_compare(const struct diff_page *diff, struct diff_summary *summary, struct page *page)
{
  const struct diff_side *sides = diff->sides;
  int result = 0;

  for (uint32_t i = 0; i < sides[0].thread_count; i++) {
    uint32_t streams[2] = {i, sides[0].threads[i].partner};
    int r = 1;

    if (streams[1] == LB_TRACE_ALL)
      put_alone(page, &sides[0], i, true, summary);
    else
      r = pair_compare(diff, streams, summary, page);
    if (r < 0)
      return r;
    result = r == 1 || result == 1 ? 1 : r > result ? r : result;
  }
  for (uint32_t i = 0; i < sides[1].thread_count; i++)
    if (sides[1].threads[i].partner == LB_TRACE_ALL) {
      put_alone(page, &sides[1], i, false, summary);
      result = 1;
    }
  return result;
}

/* A file that was rebuilt cannot be compared by its addresses. */
static void put_by_symbol(struct page *page, const struct diff_side sides[2])
{
  for (unsigned i = 0; i < 2; i++) {
    const char *name = sides[i].keys ? analysis_diff_keys_by_symbol(sides[i].keys) : NULL;

    if (name && !page->is_json)
      page_remark(page,
                  "%s of %c has another version in the other trace: such files were compared by symbol and offset",
                  name, i ? 'B' : 'A');
    else if (page->is_json)
      page_put(page, i ? "by_symbol_b" : "by_symbol_a", name);
  }
}

static const char *verdict_word(int result)
{
  return result == 0 ? "equal" : result == 1 ? "different" : "unknown";
}

/* One line that sums up the result. */
static void summary_text(char *text, size_t size, const struct diff_summary *summary, int result)
{
  char more[120] = "";

  if (result == 0)
    snprintf(more, sizeof(more), ": %" PRIu64 " branches%s", summary->same,
             summary->skipped ? ", but for string functions that depend on alignment" : "");
  else if (result == 1 && summary->different > 1)
    snprintf(more, sizeof(more), "; %" PRIu32 " more thread%s differ%s", summary->different - 1,
             summary->different > 2 ? "s" : "", summary->different > 2 ? "" : "s");
  snprintf(text, size, "%s%s%s%s", verdict_word(result), result == 1 ? ": " : "", result == 1 ? summary->first : "",
           result == 0 || result == 1 ? more : ": branches are missing");
}

static void put_skipped(struct page *page, const struct diff_summary *summary)
{
  if (!summary->skipped)
    return;
  page_blank(page);
  page_remark(page,
              "%" PRIu64 " difference%s in string functions of the C library, whose branches depend on how strings are "
              "aligned, skipped; --strict shows them",
              summary->skipped, summary->skipped == 1 ? "" : "s");
}

static void put_verdict(struct page *page, const struct diff_summary *summary, int result)
{
  char text[900];

  summary_text(text, sizeof(text), summary, result);
  page_release(page, page->is_json ? "summary" : "verdict", text);
  if (page->is_json)
    page_put(page, "verdict", verdict_word(result));
}

/* Compares the pair that was asked for, or all threads. */
static int streams_compare(const struct diff_page *diff, struct diff_summary *summary, struct page *page)
{
  if (diff->options->streams[0] != LB_TRACE_ALL)
    return pair_compare(diff, diff->options->streams, summary, page);
  if (diff_threads_pair(diff->sides) < 0) {
    message("no memory");
    return -ENOMEM;
  }
  return threads_compare(diff, summary, page);
}

int diff_page_print(const struct diff_page *diff, const struct report_output *output, bool is_json)
{
  struct diff_summary summary = {0};
  struct page page;
  int result, r = 0;

  page_open(&page, output, is_json);
  page_hold(&page);
  page_put(&page, "A", diff->files[0]);
  page_put(&page, "B", diff->files[1]);
  page_array(&page, "threads");
  result = streams_compare(diff, &summary, &page);
  page_array_end(&page);
  put_by_symbol(&page, diff->sides);
  put_skipped(&page, &summary);
  put_verdict(&page, &summary, result);
  if (result >= 0 && diff->options->has_times) /* runs with the same branches may take different times */
    r = diff_put_times(diff, &page);
  else if (result == 1 && diff->options->has_counts)
    r = diff_put_counts(diff, &page);
  page_close(&page);
  return r < 0 ? r : result;
}
