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
#include "analysis/thread_times.h"
#include "analysis/trace_input.h"

/* A thread of the trace. */
struct analysis_reading_thread {
  uint32_t number;          /* of its stream */
  uint32_t process, thread; /* the system's numbers */
  uint64_t branches;        /* taken */
  bool is_counted;          /* the members below are set */
  struct analysis_count_totals totals;
};

struct analysis_reading {
  struct trace_input input;
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_counts *counts;
  struct analysis_reading_thread *threads;
  size_t thread_count, thread_capacity;
  struct analysis_thread_times times; /* of all streams */
};

/* Opens the trace and counts all of it, or one stream (LB_TRACE_ALL: all). Returns 0, also if the trace could not be
 * read to its end; or negative after a message: nothing is open then. */
int analysis_reading_open(struct analysis_reading *reading, const char *file, uint32_t stream, bool has_symbols);

/* Counts each thread alone. Returns 0, or negative after a message. */
int analysis_reading_threads(struct analysis_reading *reading);

/* Reads the trace again, in its order, to compute how predictable its branches are; one stream, or LB_TRACE_ALL.
 * Returns 0, or negative after a message. */
int analysis_predict_read(const struct analysis_reading *reading, uint32_t stream,
                          const struct analysis_predictor *predictor, struct analysis_predict **ret_predict);

/* ---- tables (reading_tables.c) ---- */

enum analysis_by {
  ANALYSIS_BY_ALL, /* the dashboard */
  ANALYSIS_BY_FUNCTION,
  ANALYSIS_BY_LINE,
  ANALYSIS_BY_EDGE,
  ANALYSIS_BY_BRANCH,
  ANALYSIS_BY_INDIRECT,
  ANALYSIS_BY_MODULE,
  ANALYSIS_BY_THREAD,
  ANALYSIS_BYS,
};

/* "function", "line", ...; "" for the dashboard. */
const char *analysis_by_name(enum analysis_by by);

bool analysis_by_can_sort(enum analysis_by by, enum analysis_hot_order order);

/* Makes the requested tables, sorted; `order` -1: each table in its own order. Returns 0, or negative after a message,
 * for example if nothing that the filter asks for ran. */
int analysis_reading_tables(struct analysis_reading *reading, enum analysis_by by, int order,
                            const struct analysis_hot_filter *filter, struct analysis_hot **ret_hot);

/* Says that no function of this name ran, and suggests similar names; `hot` has all functions. */
void analysis_reading_near(const struct analysis_reading *reading, const struct analysis_hot *hot, const char *word);

/* Closes all. Returns 0, or 1 if the trace is damaged. */
int analysis_reading_close(struct analysis_reading *reading);

#endif
