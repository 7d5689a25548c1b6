/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes in which `lbr calls` shows calls: each call as it comes, the tree, functions with their callers and
 * callees, stacks, the callers of a function.
 */
#ifndef REPORT_CALLS_PAGE_H
#define REPORT_CALLS_PAGE_H

#include "analysis/analysis.h"
#include "report/output.h"

enum calls_shape {
  CALLS_TREE,    /* the tree of a whole run, in as many lines as are wanted */
  CALLS_LIST,    /* each call in its order: --all and --json */
  CALLS_SUMMARY, /* callers and callees, summed up: --summary */
  CALLS_FOLDED,  /* one line per stack, for flame graphs: --folded */
  CALLS_CALLERS, /* the callers of a function: --callers */
};

struct calls_page {
  struct report_output output;
  enum calls_shape shape;
  bool is_json;
  struct trace_input *input;
  struct analysis_names *names;
  struct analysis_summary *summary; /* receives the records that describe threads */
  struct calls_walk *walk;
};

/* Reads the trace and prints its calls. Returns 0, or negative after a message, for example if there is nothing to
 * show. */
int calls_page_print(const struct calls_page *page);

/* ---- each call (calls_list.c) ---- */

struct calls_list {
  const struct calls_page *page;
  struct calls_walk *walk;
  bool has_threads;    /* a column names the thread */
  unsigned indent_max; /* known with the heading */
  uint64_t lines;      /* printed */
  bool is_cut;         /* there were more than the limit allows */
  bool has_heading;    /* the titles of the columns were printed: they depend on whether the trace has times */
  bool has_pending;    /* the newest call was entered, and not printed yet */
  uint32_t stream;     /* whose */
  struct text text;
};

void calls_list_begin(struct calls_list *list, const struct calls_page *page, bool has_threads);
/* Returns 0, or negative: it could not be printed. */
int calls_list_end(struct calls_list *list);
void calls_list_done(struct calls_list *list);

/* ---- the others, at the end ---- */

/* Each returns 0, -ENOMEM or -EIO. */
int calls_tree_print(const struct calls_page *page, const struct calls_tree *tree);
int calls_graph_print(const struct calls_page *page, const struct calls_graph *graph);
int calls_folded_print(const struct calls_page *page, const struct calls_folded *folded);
int calls_callers_print(const struct calls_page *page, const struct calls_folded *folded, bool *ret_is_found);

/* ---- for all ---- */

/* The deepest level that is shown by indentation; deeper ones are shown as numbers. Smaller in a narrow terminal, and
 * with columns for times. */
unsigned calls_indent_max(const struct report_output *output, bool has_times);

/* A number of instructions for a cell, "-" if some of the code that ran is not known. */
const char *calls_number(const struct report_output *output, uint64_t instructions, bool is_known,
                         char buffer[REPORT_NUMBER_SIZE]);
/* The same for JSON: null. */
const char *calls_json_number(uint64_t instructions, bool is_known, char buffer[REPORT_NUMBER_SIZE]);

/* The member `unknown` of an object whose instructions are null: the reason why they are unknown. "" if they are
 * known. */
const char *calls_json_unknown(const struct calls_walk *walk, bool is_known);
/* " 12.3%", or "-". */
const char *calls_share(uint64_t part, uint64_t whole, bool is_known, char buffer[REPORT_NUMBER_SIZE]);

/* ---- times and system calls (calls_time.c) ---- */

#define CALLS_TIMES_SIZE 96

/* The columns `time` and `waited`, and their titles, with a blank before each. 0 is blank: no time has passed as
 * far as stamps can tell. "" if the trace has no times. */
const char *calls_times_heading(const struct calls_walk *walk);
const char *calls_times(const struct calls_walk *walk, const struct analysis_cost *cost, char buffer[CALLS_TIMES_SIZE]);

/* The members `duration` and `waited` of a JSON object, with a comma before each and `prefix` before their names. ""
 * if the trace has no times. */
const char *calls_json_times(const struct calls_walk *walk, const char *prefix, const struct analysis_cost *cost,
                             char buffer[CALLS_TIMES_SIZE]);

/* Prints what the columns are, if there are any. */
void calls_times_remark(const struct calls_page *page);

/* Append a system call with its result: `read(5, ptr, 4096) = 4096`. Return 0, or -ENOMEM. */
int calls_syscall_text(const struct analysis_syscall *call, struct text *text);
int calls_tree_syscall_text(const struct calls_tree *tree, const struct tree_line *line, struct text *text);

/* Prints a string of JSON with its quotes. */
void calls_json_string(FILE *file, const char *string);

#endif
