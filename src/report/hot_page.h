/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr report`.
 */
#ifndef REPORT_HOT_PAGE_H
#define REPORT_HOT_PAGE_H

#include "analysis/analysis.h"
#include "report/page.h"
#include "report/source_lines.h"

/* Orders of the table of conditional branches that need predictions. */
enum report_predict_order { REPORT_PREDICT_NO_ORDER, REPORT_PREDICT_BY_FLIPS, REPORT_PREDICT_BY_MISPREDICTED };

struct report_page {
  const struct analysis_reading *reading;
  struct analysis_hot *hot;
  struct source_files *sources;
  enum analysis_by by;
  uint64_t top;                           /* rows of a table */
  uint32_t stream;                        /* or LB_TRACE_ALL */
  bool wants_lines;                       /* source lines beside addresses */
  const struct analysis_predict *predict; /* of conditional branches; NULL: it was not asked for */
  const struct analysis_predictor *predictor;
  enum report_predict_order predict_order;
  const char *covers; /* a sentence about what the trace is from; NULL: there is none */
  bool has_bars;      /* it is for a terminal */
  bool has_utf8;
};

void report_page_print(const struct report_page *report, const struct report_output *output, bool is_json);

/* ---- tables (hot_tables.c) ---- */

void report_put_functions(const struct report_page *report, struct page *page);
void report_put_modules(const struct report_page *report, struct page *page);
void report_put_lines(const struct report_page *report, struct page *page);
void report_put_threads(const struct report_page *report, struct page *page);

/* ---- tables of branches (hot_branches.c), with so many rows ---- */

void report_put_edges(const struct report_page *report, struct page *page, uint64_t top);
void report_put_branches(const struct report_page *report, struct page *page, uint64_t top);
void report_put_indirects(const struct report_page *report, struct page *page, uint64_t top);

/* The name of a function, as the last cell of a row. */
void report_put_function(struct page *page, const struct analysis_hot_function *function);

/* Are only the taken branches known? */
bool report_has_only_taken(const struct report_page *report);

/* Prints how many rows of a table are not shown. */
void report_put_rest(struct page *page, uint64_t shown, uint64_t count);

/* How long the threads ran and waited, as values of JSON or a part of a sentence: "its threads ran for ... and waited
 * for ..."; `stream` as above. Returns false, printing nothing, if the trace has no times. */
bool report_put_times(struct page *page, const struct analysis_thread_times *times, uint32_t stream, const char *rest);

/* ---- durations of calls (hot_latency.c) ---- */

struct report_latency {
  const char *file;
  struct analysis_names *names;
  const struct analysis_latency *latency; /* sorted */
  uint64_t top;                           /* rows of the table */
  uint32_t stream;                        /* or LB_TRACE_ALL */
  bool has_histograms;                    /* one for each row; JSON always has them */
  bool has_utf8;
};

void report_latency_print(const struct report_latency *report, const struct report_output *output, bool is_json);

#endif
