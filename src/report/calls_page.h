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
  bool has_threads; /* a column names the thread */
  unsigned indent_max;
  uint64_t lines;   /* printed */
  bool is_cut;      /* there were more than the limit allows */
  bool has_pending; /* the newest call was entered, and not printed yet */
  uint32_t stream;  /* whose */
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

/* The deepest level that is shown by indentation; deeper ones are shown as numbers. Smaller in a narrow terminal. */
unsigned calls_indent_max(const struct report_output *output);

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

/* Prints a string of JSON with its quotes. */
void calls_json_string(FILE *file, const char *string);

#endif
