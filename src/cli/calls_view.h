/* SPDX-License-Identifier: Apache-2.0
 *
 * The shapes in which `lbr calls` shows calls. Each takes calls as a view of calls_walk.h and prints, at once or at the
 * end.
 */
#ifndef CLI_CALLS_VIEW_H
#define CLI_CALLS_VIEW_H

#include "cli/calls_walk.h"
#include "cli/cli.h"

/* Levels that are indented, deeper ones being told by their number: fewer in a narrow terminal. */
unsigned calls_indent_max(void);

/* ---- each call, as it comes: --all and --json ---- */

struct calls_list {
  struct calls_walk *walk;
  bool has_threads; /* a column tells which thread it is */
  unsigned indent_max;
  uint64_t lines;   /* printed */
  bool is_cut;      /* there would have been more */
  bool has_pending; /* the newest call was entered, and not printed yet */
  uint32_t stream;  /* whose */
  struct text text;
};

void calls_list_begin(struct calls_list *list, struct calls_walk *walk, bool has_threads);
/* Returns 0, or negative: it could not be printed. */
int calls_list_end(struct calls_list *list);
void calls_list_done(struct calls_list *list);

/* ---- the tree of a whole run, in as many lines as are wanted ---- */

struct tree_stream;

struct calls_tree {
  const struct calls_walk *walk;
  struct tree_stream *streams;
  size_t count, capacity;
  size_t lines, lines_max; /* of all streams */
  uint64_t threshold;      /* calls with less in them are summed up */
  size_t left_out;         /* streams that have no lines any more, and what ran in them */
  uint64_t left_instructions, left_branches, left_unknown;
};

void calls_tree_begin(struct calls_tree *tree, struct calls_walk *walk);
/* Prints it. The summary knows the threads. Returns 0, or -ENOMEM. */
int calls_tree_end(struct calls_tree *tree, const struct report_summary *summary);
void calls_tree_done(struct calls_tree *tree);

/* What a call is weighed by: instructions, or branches if those are not known. */
static inline uint64_t calls_weight(const struct calls_walk *walk, uint64_t instructions, uint64_t branches)
{
  return walk->options->by_branches ? branches : instructions;
}

/* ---- who calls whom, summed up: --summary ---- */

struct graph_function;
struct graph_edge;

struct calls_graph {
  const struct calls_walk *walk;
  struct graph_function *functions; /* by number */
  size_t count, capacity;
  struct graph_edge *edges; /* a hash */
  size_t edge_count, edge_capacity;
  uint32_t stream; /* whose functions are marked as active */
  bool has_forgotten;
};

void calls_graph_begin(struct calls_graph *graph, struct calls_walk *walk);
int calls_graph_end(struct calls_graph *graph);
void calls_graph_done(struct calls_graph *graph);

/* ---- stacks in one line each, for flame graphs: --folded ---- */

struct calls_folded {
  const struct calls_walk *walk;
  struct report_stacks *stacks; /* NULL: there was no call yet */
};

void calls_folded_begin(struct calls_folded *folded, struct calls_walk *walk);
int calls_folded_end(struct calls_folded *folded);
void calls_folded_done(struct calls_folded *folded);

/* ---- who called a function: --callers, of the same stacks ---- */

/* Prints them. Returns 0, -ENOMEM, or -EIO. */
int calls_callers_end(struct calls_folded *folded, struct calls_walk *walk, bool *ret_is_found);

/* ---- for all ---- */

/* A number of instructions for a cell, "-" if some of the code that ran is not known. */
const char *calls_number(uint64_t instructions, bool is_known, char buffer[CLI_NUMBER_SIZE]);
/* The same for JSON: null. */
const char *calls_json_number(uint64_t instructions, bool is_known, char buffer[CLI_NUMBER_SIZE]);

/* The member `unknown` of an object whose instructions are null: why they are not known. "" if they are. */
const char *calls_json_unknown(const struct calls_walk *walk, bool is_known);
/* " 12.3%", or "-". */
const char *calls_share(uint64_t part, uint64_t whole, bool is_known, char buffer[CLI_NUMBER_SIZE]);

/* Prints a string of JSON with its quotes. */
void calls_json_string(const char *string);

#endif
