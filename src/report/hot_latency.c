/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr report --by latency`: how long the calls of functions took, and how their durations are distributed.
 */
#include <stdio.h>

#include "report/hot_page.h"
#include "report/words.h"

#define OCTAVES 65u /* rows of a histogram: 0 ns, and one for each power of two */

static struct analysis_hot_function function_of(const struct report_latency *report,
                                                const struct analysis_latency_row *row)
{
  struct analysis_called called = {0};
  struct analysis_extent extent;

  (void)analysis_calls_function(report->latency->calls, row->function, &called);
  analysis_extent_find(report->names, &called.location, &extent);
  return (struct analysis_hot_function){
    .symbol = extent.symbol,
    .mangled = extent.mangled,
    .module = extent.module,
    .start = extent.start,
    .size = extent.end > extent.start ? extent.end - extent.start : 0,
    .source = extent.source,
  };
}

static bool has_whole(const struct analysis_latency_row *row)
{
  return row->calls > row->cut;
}

/* ---- the table ---- */

/* A duration of whole calls, if there are any. */
static void put_whole(struct page *page, const struct analysis_latency_row *row, const char *key, uint64_t duration)
{
  if (has_whole(row))
    words_put_duration(page, key, duration, 8);
  else
    page_put(page, key, page->is_json ? NULL : "       -");
}

static void put_where(struct page *page, const struct analysis_latency_row *row)
{
  if (!has_whole(row)) {
    page_put(page, NULL, "     -");
    page_put(page, NULL, "          -");
    page_put(page, NULL, "          -");
    return;
  }
  words_put_number(page, NULL, row->where.stream, 6);
  page_putf(page, NULL, "%11.6f", (double)row->where.start / 1e9);
  words_put_number(page, NULL, row->where.first_branch, 11);
}

static void put_row(const struct report_latency *report, struct page *page, const struct analysis_latency_row *row)
{
  const struct analysis_hot_function function = function_of(report, row);

  page_row(page, false);
  words_put_number(page, "calls", row->calls, 11);
  words_put_duration(page, "total", row->all.all, 8);
  words_put_duration(page, "own", row->own.all, 8);
  words_put_duration(page, "waiting", row->own.waited, 8);
  put_whole(page, row, "median", row->median);
  put_whole(page, row, "p99", row->p99);
  put_whole(page, row, "longest", row->longest);
  put_where(page, row);
  report_put_function(page, &function);
  page_row_end(page);
}

static void put_rows(const struct report_latency *report, struct page *page)
{
  static const struct page_column columns[] = {
    {"      calls", 11}, {"   total", 8}, {"     own", 8},     {" waiting", 8},     {"  median", 8}, {"     99%", 8},
    {" longest", 8},     {"thread", 6},   {"    started", 11}, {"  at branch", 11}, {"function", 0}, {NULL, 0},
  };
  size_t i;

  page_heading(page, "Functions, by the time of their calls");
  page_table(page, "functions", columns);
  for (i = 0; i < report->latency->count && i < report->top; i++)
    put_row(report, page, &report->latency->rows[i]);
  page_table_end(page);
  report_put_rest(page, i, report->latency->count);
}

/* ---- the same in JSON ---- */

static void put_buckets_json(struct page *page, const struct analysis_histogram *histogram)
{
  page_array(page, "buckets");
  for (uint32_t i = 0; i < histogram->count; i++) {
    uint32_t bucket = histogram->first + i;

    if (!histogram->counts[i])
      continue;
    page_section(page, NULL, NULL);
    words_put_duration(page, "from", analysis_bucket_least(bucket), 0);
    words_put_duration(page, "to", analysis_bucket_least(bucket + 1), 0);
    page_put_number(page, "calls", histogram->counts[i]);
    page_section_end(page);
  }
  page_array_end(page);
}

static void put_where_json(struct page *page, const struct analysis_latency_row *row)
{
  if (!has_whole(row)) {
    page_absent(page, "longest_call");
    return;
  }
  page_section(page, "longest_call", NULL);
  words_put_duration(page, "duration", row->longest, 0);
  words_put_duration(page, "waiting", row->where.waited, 0);
  page_put_number(page, "thread", row->where.stream);
  words_put_duration(page, "start", row->where.start, 0);
  page_put_number(page, "first_branch", row->where.first_branch);
  page_put_number(page, "last_branch", row->where.last_branch);
  page_section_end(page);
}

static void put_row_json(const struct report_latency *report, struct page *page, const struct analysis_latency_row *row)
{
  const struct analysis_hot_function function = function_of(report, row);

  page_row(page, false);
  page_put_number(page, "calls", row->calls);
  page_put_number(page, "cut", row->cut);
  words_put_duration(page, "total", row->all.all, 0);
  words_put_duration(page, "total_waiting", row->all.waited, 0);
  words_put_duration(page, "own", row->own.all, 0);
  words_put_duration(page, "own_waiting", row->own.waited, 0);
  put_whole(page, row, "shortest", row->shortest);
  put_whole(page, row, "median", row->median);
  put_whole(page, row, "p90", row->p90);
  put_whole(page, row, "p99", row->p99);
  put_whole(page, row, "longest", row->longest);
  put_where_json(page, row);
  put_buckets_json(page, &row->histogram);
  report_put_function(page, &function);
  page_row_end(page);
}

static void put_rows_json(const struct report_latency *report, struct page *page)
{
  page_array(page, "functions");
  for (size_t i = 0; i < report->latency->count && i < report->top; i++)
    put_row_json(report, page, &report->latency->rows[i]);
  page_array_end(page);
}

/* ---- histograms ---- */

/* The row of a histogram that a bucket is in. */
static unsigned octave_of(uint32_t bucket)
{
  uint64_t least = analysis_bucket_least(bucket);

  return least ? 64u - (unsigned)__builtin_clzll(least) : 0;
}

static uint64_t octave_least(unsigned octave)
{
  return octave ? UINT64_C(1) << (octave - 1) : 0;
}

static void put_octave(const struct report_latency *report, struct page *page, unsigned octave, uint64_t calls,
                       uint64_t total, uint64_t most)
{
  page_row(page, false);
  words_put_duration(page, NULL, octave_least(octave), 8);
  words_put_duration(page, NULL, octave < 64 ? octave_least(octave + 1) : UINT64_MAX, 8);
  words_put_number(page, NULL, calls, 14);
  words_put_share(page, NULL, calls, total);
  words_put_bar(page, calls, most, report->has_utf8);
  page_row_end(page);
}

static void put_histogram(const struct report_latency *report, struct page *page,
                          const struct analysis_latency_row *row)
{
  static const struct page_column columns[] = {{"    from", 8}, {"  before", 8}, {"         calls", 14},
                                               {"  share", 7},  {"", 0},         {NULL, 0}};
  const struct analysis_hot_function function = function_of(report, row);
  const struct analysis_histogram *histogram = &row->histogram;
  uint64_t calls[OCTAVES] = {0}, most = 0;
  char name[1400], title[1450];

  if (!histogram->total)
    return;
  for (uint32_t i = 0; i < histogram->count; i++) {
    unsigned octave = octave_of(histogram->first + i);

    calls[octave] += histogram->counts[i];
    most = calls[octave] > most ? calls[octave] : most;
  }
  words_function(&function, name, sizeof(name));
  snprintf(title, sizeof(title), "Durations of %s", name);
  page_heading(page, title);
  page_table(page, NULL, columns);
  for (unsigned i = octave_of(histogram->first); i <= octave_of(histogram->first + histogram->count - 1); i++)
    put_octave(report, page, i, calls[i], histogram->total, most);
  page_table_end(page);
}

/* ---- the page ---- */

static void put_head_json(const struct report_latency *report, struct page *page, uint64_t calls, uint64_t cut)
{
  if (report->stream != LB_TRACE_ALL)
    page_put_number(page, "thread", report->stream);
  else
    page_absent(page, "thread");
  page_put_number(page, "calls", calls);
  page_put_number(page, "cut", cut);
  page_put_number(page, "buckets_per_power_of_two", ANALYSIS_LATENCY_PARTS);
  page_put_flag(page, "has_forgotten", report->latency->has_forgotten);
}

static void put_head(const struct report_latency *report, struct page *page)
{
  const struct analysis_latency *latency = report->latency;
  char number[WORDS_NUMBER_SIZE], more[160] = "";
  uint64_t calls = 0, cut = 0;

  for (size_t i = 0; i < latency->count; i++) {
    calls += latency->rows[i].calls;
    cut += latency->rows[i].cut;
  }
  page_title(page, report->file);
  if (page->is_json)
    put_head_json(report, page, calls, cut);
  report_put_times(page, &latency->threads, report->stream, "");
  if (cut)
    snprintf(more, sizeof(more),
             "; %s of them began before the recording, or were cut by its end or a gap: these have no duration",
             words_number(number, cut));
  page_remark(page, "%s calls%s", words_number(number, calls), more);
  page_remark(page, "waiting: part of own, in which the thread did not run; median and 99%% are exact within 1/%u",
              2 * ANALYSIS_LATENCY_PARTS);
  if (latency->has_forgotten)
    page_remark(page, "there were more functions than lbr keeps histograms for: medians may be wrong");
}

void report_latency_print(const struct report_latency *report, const struct report_output *output, bool is_json)
{
  struct page page;

  page_open(&page, output, is_json);
  put_head(report, &page);
  if (is_json)
    put_rows_json(report, &page);
  else
    put_rows(report, &page);
  for (size_t i = 0; !is_json && report->has_histograms && i < report->latency->count && i < report->top; i++)
    put_histogram(report, &page, &report->latency->rows[i]);
  page_close(&page);
}
