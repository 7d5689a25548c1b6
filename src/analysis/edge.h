/* SPDX-License-Identifier: Apache-2.0
 *
 * How often each edge of a trace was taken: a hash in bounded memory.
 */
#ifndef ANALYSIS_EDGE_H
#define ANALYSIS_EDGE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define EDGES_MAX (1u << 20) /* slots; three quarters of them are filled */

struct edge {
  uint64_t from, to; /* linear addresses */
  uint64_t count;    /* 0: the slot is empty */
  uint64_t counted;  /* of these, how many are already added to its functions */
  uint32_t space;
  uint32_t from_function, to_function; /* numbers of summary.c */
  uint32_t generation : 24;            /* of the modules, when the functions were looked up */
  uint32_t kind : 8;
};

struct edge_table {
  struct edge *edges;
  size_t count, capacity; /* a power of two, or 0 */
  bool has_forgotten;     /* edges were removed */
};

/* Called with each edge before it is removed. */
typedef void edge_function(void *data, struct edge *edge);

/* Makes room. The table grows until it has its greatest size; after that, the edges that were taken least are removed
 * until at most half of it is filled. To be called when edge_table_is_full. Returns 0, or -ENOMEM. */
int edge_table_make_room(struct edge_table *table, edge_function *before, void *data);

static inline bool edge_table_is_full(const struct edge_table *table)
{
  return table->count >= table->capacity / 4 * 3;
}

/* The slot of an edge: its own, or an empty one. The table must not be full. */
static inline struct edge *edge_table_place(const struct edge_table *table, uint64_t from, uint64_t to, uint32_t space,
                                            unsigned kind)
{
  uint64_t hash = hash_mix(hash_start(from), to ^ (uint64_t)space << 32 ^ (uint64_t)kind << 56);
  size_t i = (size_t)(hash >> 32) & (table->capacity - 1);

  assert(table->count < table->capacity);
  for (;; i = (i + 1) & (table->capacity - 1)) {
    struct edge *edge = &table->edges[i];

    if (!edge->count || (edge->from == from && edge->to == to && edge->space == space && edge->kind == kind))
      return edge;
  }
}

void edge_table_done(struct edge_table *table);

#endif
