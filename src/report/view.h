/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace as one page for a browser: a timeline of its calls, functions and edges with exact counts, hot code with its
 * source, and where it died. The page is self-contained. No input is trusted: text from the trace or from a file
 * becomes data of the page, never a part of its program.
 */
#ifndef REPORT_VIEW_H
#define REPORT_VIEW_H

#include "analysis/analysis.h"

#define REPORT_VIEW_SIZE (UINT64_C(20) << 20)     /* default size of a page in bytes, */
#define REPORT_VIEW_SIZE_MIN (UINT64_C(1) << 20)  /* at least, */
#define REPORT_VIEW_SIZE_MAX (UINT64_C(64) << 20) /* and at most */

struct analysis_files;
struct report_view;

struct report_view_options {
  struct analysis_names *names;
  struct analysis_code *code;           /* NULL: instructions are not counted, and no code is shown */
  const struct analysis_files *files;   /* for source; NULL: no source is shown */
  const struct lb_trace_reader *reader; /* for times, if it was asked for stamps; NULL: no times are shown */
  const char *file;                     /* name of the trace, for the title and for commands that the page proposes */
  const char *module; /* functions of this one only (analysis_module_is), and edges from and to them; or NULL */
  uint32_t stream;    /* this one only, or LB_TRACE_ALL, */
  uint64_t from, to;  /* and its branches from `from` up to, but not including, `to`; 0 and UINT64_MAX for all */
  uint64_t time_from, time_to; /* likewise for nanoseconds since the start of the recording; with `reader` only */
  uint64_t merge;              /* merge calls of fewer branches even if there is room */
  uint64_t size;               /* bytes of the page; the timeline is made to fit */
};

/* The options are copied; what they point to must stay valid. Returns 0, or -ENOMEM. */
int report_view_new(const struct report_view_options *options, struct report_view **ret_view);
void report_view_free(struct report_view *view); /* takes NULL */

/* Takes the counts, which are not needed afterwards. Must be called first, if tables and code are wanted. Returns 0, or
 * -ENOMEM. */
int report_view_counts(struct report_view *view, const struct analysis_counts *counts);

/* The number of functions that ran, according to the counts; with options.module, only functions of that module. */
size_t report_view_ran(const struct report_view *view);

/* Takes the records of the trace, after the counts. For a part of a trace, the branches before the part tell which
 * calls are open when it begins. Memory stays below about 300 MiB, symbols not counted. Returns 0, or -ENOMEM. */
int report_view_record(struct report_view *view, const struct lb_trace_record *record);

/* To be called after the last record. Returns 0, or -ENOMEM. */
int report_view_end(struct report_view *view);

/* Does all of the above from a trace; the options are those of report_view_new. Returns 0, or negative after a message,
 * for example if nothing of the module ran, or if a part is chosen by time and the trace has no times. */
int report_view_read(struct report_view *view, const struct report_view_options *options, struct trace_input *input);

typedef int report_view_write_function(void *data, const char *bytes, size_t size); /* 0, or negative to stop */

/* Writes the page. Returns 0, what the function returned, or -ENOMEM. */
int report_view_write(struct report_view *view, report_view_write_function *function, void *data);

/* The limits of the page: calls that it shows merged. */
struct report_view_limits {
  uint64_t blocks; /* of the timeline */
  uint64_t merge;  /* calls of fewer branches are merged; 0: none are */
  uint64_t merged; /* number of calls that are merged */
  uint64_t calls;  /* of all */
};

void report_view_limits(const struct report_view *view, struct report_view_limits *ret_limits);

#endif
