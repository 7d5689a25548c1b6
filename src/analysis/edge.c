/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash table of edges. It grows up to a limit. After that the edges taken least are dropped, so that the ones taken
 * most remain at the end. Their counts may then be too low, by the count they had when they were dropped once.
 */
#include "analysis/edge.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define EDGES_LEAST 4096u

/* Moves the edges that were taken at least `least` times into a table of `capacity` slots. */
static int table_rebuild(struct edge_table *table, size_t capacity, uint64_t least)
{
  struct edge_table next = {
    .edges = calloc(capacity, sizeof(*next.edges)), .capacity = capacity, .has_forgotten = table->has_forgotten};

  if (!next.edges)
    return -ENOMEM;
  for (size_t i = 0; i < table->capacity; i++) {
    const struct edge *edge = &table->edges[i];

    if (!edge->count || edge->count < least)
      continue;
    *edge_table_place(&next, edge->from, edge->to, edge->space, edge->kind) = *edge;
    next.count++;
  }
  free(table->edges);
  *table = next;
  return 0;
}

static size_t edges_from(const struct edge_table *table, uint64_t least)
{
  size_t count = 0;

  for (size_t i = 0; i < table->capacity; i++)
    count += table->edges[i].count && table->edges[i].count >= least;
  return count;
}

int edge_table_make_room(struct edge_table *table, edge_function *before, void *data)
{
  uint64_t least = 2;

  assert(edge_table_is_full(table));
  if (table->capacity < EDGES_MAX)
    return table_rebuild(table, table->capacity ? table->capacity * 2 : EDGES_LEAST, 0);
  while (least && edges_from(table, least) > EDGES_MAX / 2)
    least *= 2;
  for (size_t i = 0; i < table->capacity; i++)
    if (table->edges[i].count && (!least || table->edges[i].count < least))
      before(data, &table->edges[i]);
  table->has_forgotten = true;
  return table_rebuild(table, table->capacity, least ? least : UINT64_MAX);
}

void edge_table_done(struct edge_table *table)
{
  free(table->edges);
  *table = (struct edge_table){0};
}
