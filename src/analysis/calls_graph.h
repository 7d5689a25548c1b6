/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions and the calls between them, summed up.
 */
#ifndef ANALYSIS_CALLS_GRAPH_H
#define ANALYSIS_CALLS_GRAPH_H

#include "analysis/calls_walk.h"

/* A call that took long, if the trace has times. */
struct graph_call {
  struct analysis_cost cost;
  uint64_t start; /* nanoseconds since the recording began */
  uint32_t stream;
  uint64_t branch; /* number of the first branch in it */
};

struct graph_function {
  uint32_t number;
  uint32_t active; /* its open calls in the current stream */
  uint64_t calls;
  struct analysis_cost cost; /* with all that it called */
  struct analysis_cost own;  /* without */
  struct graph_call longest; /* its longest call, by --by running that which ran longest */
};

struct graph_edge {
  uint32_t caller, callee; /* caller UINT32_MAX: there is none */
  bool is_used;
  uint64_t calls;
  uint64_t instructions, unknown; /* of the callee and all that it called */
  uint64_t time, waited;
};

struct calls_graph {
  const struct calls_walk *walk;
  struct graph_function *functions; /* by number */
  size_t count, capacity;
  struct graph_edge *edges; /* a hash */
  size_t edge_count, edge_capacity;
  uint32_t stream; /* the stream whose functions are marked as active */
  bool has_forgotten;
};

void calls_graph_begin(struct calls_graph *graph, struct calls_walk *walk);
/* To be called after the last call: turns functions and edges into sorted lists. */
void calls_graph_end(struct calls_graph *graph);
void calls_graph_done(struct calls_graph *graph);

#endif
