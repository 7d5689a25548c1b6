/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace into exact counts, for the commands that show them.
 */
#ifndef ANALYSIS_READING_H
#define ANALYSIS_READING_H

#include "analysis/code.h"
#include "analysis/counts.h"
#include "analysis/hot.h"
#include "analysis/predict.h"
#include "analysis/trace_input.h"

/* A thread of the trace. */
struct report_reading_thread {
  uint32_t number;          /* of its stream */
  uint32_t process, thread; /* the system's numbers */
  uint64_t branches;        /* taken */
  bool is_counted;          /* what follows is known */
  struct report_count_totals totals;
};

struct report_reading {
  struct trace_input input;
  struct report_names *names;
  struct report_code *code;
  struct report_counts *counts;
  struct report_reading_thread *threads;
  size_t thread_count, thread_capacity;
};

/* Opens the trace and counts all of it, or one stream (LB_TRACE_ALL: all). Returns 0, also if the trace could not be
 * read to its end; or negative after a complaint: nothing is open then. */
int report_reading_open(struct report_reading *reading, const char *file, uint32_t stream, bool has_symbols);

/* Counts each thread alone. Returns 0, or negative after a complaint. */
int report_reading_threads(struct report_reading *reading);

/* Reads the trace once more, in its order, for the predictability of its branches; one stream, or LB_TRACE_ALL. Returns
 * 0, or negative after a complaint. */
int report_predict_read(const struct report_reading *reading, uint32_t stream, const struct report_predictor *predictor,
                        struct report_predict **ret_predict);

/* ---- tables (reading_tables.c) ---- */

enum report_by {
  REPORT_BY_ALL, /* the dashboard */
  REPORT_BY_FUNCTION,
  REPORT_BY_LINE,
  REPORT_BY_EDGE,
  REPORT_BY_BRANCH,
  REPORT_BY_INDIRECT,
  REPORT_BY_MODULE,
  REPORT_BY_THREAD,
  REPORT_BYS,
};

/* "function", "line", ...; "" for the dashboard. */
const char *report_by_name(enum report_by by);

bool report_by_can_sort(enum report_by by, enum report_hot_order order);

/* The tables that are asked for, sorted; `order` -1: as each table has it. Returns 0, or negative after a complaint:
 * what the filter asks for did not run, for one. */
int report_reading_tables(struct report_reading *reading, enum report_by by, int order,
                          const struct report_hot_filter *filter, struct report_hot **ret_hot);

/* Says that no function of this name ran, and what it may have meant; `hot` has all functions. */
void report_reading_near(const struct report_reading *reading, const struct report_hot *hot, const char *word);

/* Closes all. Returns 0, or 1 if the trace is damaged. */
int report_reading_close(struct report_reading *reading);

#endif
