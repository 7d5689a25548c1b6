/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace into exact counts, for the commands that show them.
 */
#ifndef CLI_REPORT_READ_H
#define CLI_REPORT_READ_H

#include "analysis/analysis.h"
#include "report/report.h"

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

/* Says that no function of this name ran, and what it may have meant; `hot` has all functions. */
void report_reading_near(const struct report_reading *reading, const struct report_hot *hot, const char *word);

/* Closes all. Returns CLI_OK, or CLI_FAILURE if the trace is damaged. */
int report_reading_close(struct report_reading *reading);

#endif
