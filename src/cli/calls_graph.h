/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions and the calls between them, summed up.
 */
#ifndef CLI_CALLS_GRAPH_H
#define CLI_CALLS_GRAPH_H

#include "cli/calls_view.h"

struct graph_function {
  uint32_t number;
  uint32_t active; /* calls of it that are open in the stream at hand */
  uint64_t calls;
  uint64_t instructions, branches;         /* with all that it called */
  uint64_t own_instructions, own_branches; /* without */
  uint64_t unknown, own_unknown;           /* pieces of code whose instructions are not known, likewise */
};

struct graph_edge {
  uint32_t caller, callee; /* UINT32_MAX: nobody */
  bool is_used;
  uint64_t calls;
  uint64_t instructions, unknown; /* of the callee and all that it called */
};

/* Prints both lists, which are sorted. Returns 0, or -ENOMEM. */
int calls_graph_print(const struct calls_graph *graph);

#endif
