/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of a trace while they are counted (summary.c) and when they are asked for (top.c).
 */
#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include "report/edge.h"
#include "report/report.h"
#include "report/streams.h"

#define FUNCTIONS_MAX (1u << 18)
#define METAS 10

/* A symbol of a file (file and start), what of a file has no symbol (NO_START), or what lies in no file (NO_FILE). */
#define NO_FILE UINT32_MAX
#define NO_START UINT64_MAX

struct function {
  uint64_t start;
  uint32_t file;
  const char *symbol, *module;
  uint64_t branches, entries;
};

struct function_list {
  struct function *functions; /* the first is what lies in no file, and what there was no room for */
  size_t count, capacity;
  uint32_t *places; /* a hash: numbers + 1 */
  size_t place_count;
};

struct report_summary {
  struct report_names *names;
  struct report_totals totals;
  struct stream_list streams;
  struct edge_table edges;
  struct function_list functions;
  uint32_t generation;            /* of the modules; 24 bits */
  struct lb_trace_reader *reader; /* that counts, or NULL */
  bool has_counted;               /* it has counts that were not fetched yet */
  char *metas[METAS];
};

/* The number of the function that an address belongs to now. Returns >= 0, or -ENOMEM. */
int function_list_find(struct report_summary *summary, uint32_t space, uint64_t address);
void function_list_done(struct function_list *list);

/* Gives an edge's functions what they do not know of yet. */
void edge_fold(void *summary, struct edge *edge);

#endif
