/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr report`: what was counted, what is unknown, then one table or the dashboard of all.
 */
#include "report/hot_page.h"

#include "report/words.h"

#define WORDS_EXACT "exact counts, not samples"
#define WORDS_SAMPLES "these are samples of the run: compare them only with each other"

/* ---- the head ---- */

bool report_has_only_taken(const struct report_page *report)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(report->reading->counts);

  return totals->has_unknown_code && !totals->instructions && !totals->passed;
}

static void put_sum(const struct report_page *report, struct page *page)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(report->reading->counts);
  bool is_sampled = report->reading->input.is_sampled;
  char taken[WORDS_NUMBER_SIZE], passed[WORDS_NUMBER_SIZE], instructions[WORDS_NUMBER_SIZE], who[32] = "";

  if (report->stream != LB_TRACE_ALL)
    snprintf(who, sizeof(who), " of thread %u", report->stream);
  if (report_has_only_taken(report)) {
    page_remark(page, "every taken branch%s counted: %s; %s", who, words_number(taken, totals->taken),
                is_sampled ? WORDS_SAMPLES : WORDS_EXACT);
    return;
  }
  page_remark(page, "every branch%s counted: %s taken, %s not taken, %s instructions; %s", who,
              words_number(taken, totals->taken), words_number(passed, totals->passed),
              words_number(instructions, totals->instructions), is_sampled ? WORDS_SAMPLES : WORDS_EXACT);
}

static void put_unknown(const struct report_page *report, struct page *page)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(report->reading->counts);
  char gaps[WORDS_NUMBER_SIZE];

  if (analysis_code_is_exhausted(report->reading->code))
    page_remark(
      page,
      "not known: some of the code that ran, because the trace names more code than lbr decodes for a file; its taken branches are counted, its instructions and not-taken branches are not");
  else if (totals->has_unknown_code)
    page_remark(
      page,
      "not known: some of the code that ran, because its bytes are in no file or it is not 64-bit code; its taken branches are counted, its instructions and not-taken branches are not");
  if (totals->has_forgotten)
    page_remark(page, "not known: there were more different branches than lbr keeps; later ones are not in the tables");
  if (totals->gaps && !report->reading->input.is_sampled)
    page_remark(page, "not known: what ran in the gaps of the trace (%s of them)", words_number(gaps, totals->gaps));
  if (report->reading->input.has_failed)
    page_remark(page, "not known: the rest of the trace, which could not be read");
}

static void put_head(const struct report_page *report, struct page *page)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(report->reading->counts);
  bool is_exact =
    !totals->has_unknown_code && !totals->has_forgotten && !totals->gaps && !report->reading->input.has_failed;

  page_title(page, report->reading->input.name);
  if (page->is_json) {
    page_put_flag(page, "exact", is_exact);
    page_put_flag(page, "sampled", report->reading->input.is_sampled);
    if (report->stream != LB_TRACE_ALL)
      page_put_number(page, "thread", report->stream);
    else
      page_absent(page, "thread");
    page_put_number(page, "taken", totals->taken);
    if (report_has_only_taken(report)) {
      page_absent(page, "not_taken");
      page_absent(page, "instructions");
    } else {
      page_put_number(page, "not_taken", totals->passed);
      page_put_number(page, "instructions", totals->instructions);
    }
    page_put_flag(page, "has_unknown_code", totals->has_unknown_code);
    page_put_flag(page, "decode_limit_reached", analysis_code_is_exhausted(report->reading->code));
    page_put_flag(page, "has_forgotten", totals->has_forgotten);
    page_put_number(page, "gaps", totals->gaps);
  }
  if (page->is_json && report->covers) {
    page_put(page, "name", report->reading->input.name);
    page_put(page, "covers", report->covers);
  } else if (report->covers)
    page_remark(page, "%s", report->covers);
  put_sum(report, page);
  report_put_times(page, &report->reading->times, report->stream, "; --by latency shows the times of functions");
  put_unknown(report, page);
}

bool report_put_times(struct page *page, const struct analysis_thread_times *times, uint32_t stream, const char *rest)
{
  char ran[WORDS_NUMBER_SIZE], waited[WORDS_NUMBER_SIZE];
  struct analysis_thread_time time;

  if (!analysis_thread_times_sum(times, stream, &time)) {
    page_absent(page, "running");
    page_absent(page, "waiting");
    return false;
  }
  if (page->is_json) {
    words_put_duration(page, "running", time.all - time.waited, 0);
    words_put_duration(page, "waiting", time.waited, 0);
  }
  page_remark(page, "%s ran for %s and waited for %s%s", stream == LB_TRACE_ALL ? "its threads" : "the thread",
              words_duration(ran, time.all - time.waited), words_duration(waited, time.waited), rest);
  return true;
}

void report_put_rest(struct page *page, uint64_t shown, uint64_t count)
{
  char more[WORDS_NUMBER_SIZE];

  if (shown < count)
    page_remark(page, "and %s more", words_number(more, count - shown));
}

/* ---- the page ---- */

static void put_all(const struct report_page *report, struct page *page)
{
  uint64_t few = report->top / 2 + report->top % 2;

  report_put_functions(report, page);
  report_put_edges(report, page, few);
  report_put_branches(report, page, few);
  report_put_indirects(report, page, few);
}

static void put_table(const struct report_page *report, struct page *page)
{
  switch (report->by) {
  case ANALYSIS_BY_FUNCTION:
    report_put_functions(report, page);
    break;
  case ANALYSIS_BY_LINE:
    report_put_lines(report, page);
    break;
  case ANALYSIS_BY_EDGE:
    report_put_edges(report, page, report->top);
    break;
  case ANALYSIS_BY_BRANCH:
    report_put_branches(report, page, report->top);
    break;
  case ANALYSIS_BY_INDIRECT:
    report_put_indirects(report, page, report->top);
    break;
  case ANALYSIS_BY_MODULE:
    report_put_modules(report, page);
    break;
  case ANALYSIS_BY_THREAD:
    report_put_threads(report, page);
    break;
  default:
    put_all(report, page);
  }
}

void report_page_print(const struct report_page *report, const struct report_output *output, bool is_json)
{
  struct page page;

  page_open(&page, output, is_json);
  put_head(report, &page);
  put_table(report, &page);
  page_close(&page);
}
