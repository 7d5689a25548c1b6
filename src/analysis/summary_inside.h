/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a trace while they are counted (summary.c) and when they are asked for (top.c).
 */
#ifndef ANALYSIS_SUMMARY_INSIDE_H
#define ANALYSIS_SUMMARY_INSIDE_H

#include "analysis/analysis.h"
#include "analysis/edge.h"
#include "analysis/streams.h"
#include "base/base.h"

#define FUNCTIONS_MAX (1u << 18)
#define METAS 11

/* A function as extent.h has it. The starts of guessed functions are not known while the trace is read. Each address of
 * such code that a branch leads to or from gets its own entry (`is_place`), and the entries are merged into functions
 * when the caller asks for functions. */
#define NO_FILE UINT32_MAX

struct function {
  uint64_t start;
  uint32_t file, space;
  const char *symbol, *module;
  uint64_t branches, entries;
  uint8_t source; /* enum analysis_extent_source */
  bool is_place;
};

struct function_list {
  struct function *functions; /* the first stands for all functions for which there was no room */
  size_t count, capacity;
  struct hash_index index; /* of functions by file, space and start */
};

struct analysis_summary {
  struct analysis_names *names;
  struct analysis_totals totals;
  struct stream_list streams;
  struct analysis_thread_times times;
  struct edge_table edges;
  struct function_list functions;
  uint32_t generation;            /* of the modules; 24 bits */
  struct lb_trace_reader *reader; /* the reader that counts, or NULL */
  bool has_counted;               /* the reader has counts that were not fetched yet */
  char *metas[METAS];
  const char *module;             /* the only module that is counted, or NULL; */
  struct analysis_filter *filter; /* with a module: tells which addresses lie in it */
};

/* The number of the function that an address belongs to now. Returns >= 0, or -ENOMEM. */
int function_list_find(struct analysis_summary *summary, uint32_t space, uint64_t address);
void function_list_done(struct function_list *list);

/* Do two numbers stand for one function, with the starts of functions that are known now? */
bool function_list_is_same(struct analysis_summary *summary, uint32_t one, uint32_t other);

/* Merges the places into functions. Returns 0, or -ENOMEM. */
int function_list_join(struct analysis_summary *summary);

/* Adds the counts of an edge that are not yet added to its functions. */
void edge_fold(void *summary, struct edge *edge);

#endif
