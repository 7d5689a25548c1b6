/* SPDX-License-Identifier: Apache-2.0
 *
 * The call graph and its costs, over the whole run. The cost of a recursive function is counted once, for its outermost
 * call.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/calls_graph.h"

#define EDGES_LEAST 4096u
#define EDGES_MAX (1u << 22) /* slots */
#define NOBODY UINT32_MAX

/* ---- functions and edges ---- */

static struct graph_function *function_get(struct calls_graph *graph, uint32_t number)
{
  while (number >= graph->count) {
    struct graph_function *function = array_append(&graph->functions, &graph->count, &graph->capacity);

    if (!function)
      return NULL;
    *function = (struct graph_function){.number = (uint32_t)graph->count - 1};
  }
  return &graph->functions[number];
}

/* Edges lie in a hash table of their own: one is looked up for each call, and the detour over a hash index
 * (base/hash.h) makes lbr calls --summary 2% slower. */
static struct graph_edge *edge_place(const struct calls_graph *graph, uint32_t caller, uint32_t callee)
{
  uint64_t hash = hash_start((uint64_t)caller << 32 | callee);
  size_t i = (size_t)(hash >> 32) & (graph->edge_capacity - 1);

  for (;; i = (i + 1) & (graph->edge_capacity - 1)) {
    struct graph_edge *edge = &graph->edges[i];

    if (!edge->is_used || (edge->caller == caller && edge->callee == callee))
      return edge;
  }
}

static int edges_grow(struct calls_graph *graph)
{
  struct calls_graph next = *graph;

  next.edge_capacity = graph->edge_capacity ? 2 * graph->edge_capacity : EDGES_LEAST;
  next.edges = calloc(next.edge_capacity, sizeof(*next.edges));
  if (!next.edges)
    return -ENOMEM;
  for (size_t i = 0; i < graph->edge_capacity; i++)
    if (graph->edges[i].is_used)
      *edge_place(&next, graph->edges[i].caller, graph->edges[i].callee) = graph->edges[i];
  free(graph->edges);
  *graph = next;
  return 0;
}

/* Gives NULL if there are too many edges: further ones are left out. Returns 0, or -ENOMEM. */
static int edge_get(struct calls_graph *graph, uint32_t caller, uint32_t callee, struct graph_edge **ret_edge)
{
  struct graph_edge *edge;

  if (2 * (graph->edge_count + 1) > graph->edge_capacity && graph->edge_capacity < EDGES_MAX && edges_grow(graph) < 0)
    return -ENOMEM;
  edge = edge_place(graph, caller, callee);
  *ret_edge = edge;
  if (edge->is_used)
    return 0;
  if (2 * (graph->edge_count + 1) > graph->edge_capacity) {
    graph->has_forgotten = true;
    *ret_edge = NULL;
    return 0;
  }
  *edge = (struct graph_edge){.caller = caller, .callee = callee, .is_used = true};
  graph->edge_count++;
  return 0;
}

/* ---- calls ---- */

/* The active functions are tracked for one stream at a time. */
static void graph_switch(struct calls_graph *graph, uint32_t stream, const struct calls_node *nodes, size_t count)
{
  const struct calls_stream *old = graph->stream < graph->walk->count ? &graph->walk->streams[graph->stream] : NULL;

  if (graph->stream == stream)
    return;
  for (size_t i = 0; old && i < old->count; i++)
    if (old->nodes[i].is_shown)
      graph->functions[old->nodes[i].function].active--;
  for (size_t i = 0; i < count; i++)
    if (nodes[i].is_shown)
      graph->functions[nodes[i].function].active++;
  graph->stream = stream;
}

static int graph_enter(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  struct calls_graph *graph = data;
  struct graph_function *function = function_get(graph, nodes[count - 1].function);

  if (!function)
    return -ENOMEM;
  graph_switch(graph, stream, nodes, count - 1);
  function->active++;
  return 0;
}

static void longest_update(const struct calls_graph *graph, struct graph_call *longest, uint32_t stream,
                           const struct calls_node *node)
{
  bool is_running = graph->walk->options->by == CALLS_BY_RUNNING;
  uint64_t time = node->cost.time - (is_running ? node->cost.waited : 0);
  uint64_t most = longest->cost.time - (is_running ? longest->cost.waited : 0);

  if (time > most)
    *longest = (struct graph_call){node->cost, node->start.time, stream, node->branch};
}

static void edge_add(struct graph_edge *edge, const struct analysis_cost *cost)
{
  edge->instructions += cost->instructions;
  edge->unknown += cost->unknown;
  edge->time += cost->time;
  edge->waited += cost->waited;
}

static int graph_leave(void *data, uint32_t stream, struct calls_node *nodes, size_t count)
{
  const struct calls_node *node = &nodes[count - 1];
  struct analysis_cost own = calls_cost_own(node);
  struct calls_graph *graph = data;
  struct graph_function *function = &graph->functions[node->function];
  struct graph_edge *edge;
  /* With --function, the caller is named although nothing else of it is shown. */
  int r = edge_get(graph, count > 1 ? nodes[count - 2].function : NOBODY, node->function, &edge);

  if (r < 0)
    return r;
  graph_switch(graph, stream, nodes, count);
  function->active--;
  function->calls++;
  calls_cost_add(&function->own, &own);
  if (!function->active)
    calls_cost_add(&function->cost, &node->cost);
  longest_update(graph, &function->longest, stream, node);
  if (!edge)
    return 0;
  edge->calls++;
  if (!function->active)
    edge_add(edge, &node->cost);
  return 0;
}

/* ---- all of it ---- */

void calls_graph_begin(struct calls_graph *graph, struct calls_walk *walk)
{
  *graph = (struct calls_graph){.walk = walk};
  walk->view = (struct calls_view){graph_enter, graph_leave, graph, NULL};
}

static int function_compare(const void *one, const void *other, void *walk)
{
  const struct graph_function *a = one, *b = other;
  uint64_t weight = calls_weight(walk, &a->own), others = calls_weight(walk, &b->own);

  if (weight != others)
    return weight < others ? 1 : -1;
  if (a->calls != b->calls)
    return a->calls < b->calls ? 1 : -1;
  return a->number < b->number ? -1 : a->number > b->number;
}

static uint64_t edge_time(const struct calls_walk *walk, const struct graph_edge *edge)
{
  if (walk->options->by == CALLS_BY_RUNNING)
    return edge->time - edge->waited;
  return walk->options->by == CALLS_BY_TIME ? edge->time : 0;
}

static int edge_compare(const void *one, const void *other, void *walk)
{
  const struct graph_edge *a = one, *b = other;
  uint64_t time = edge_time(walk, a), others = edge_time(walk, b);

  if (time != others)
    return time < others ? 1 : -1;
  if (a->calls != b->calls)
    return a->calls < b->calls ? 1 : -1;
  if (a->callee != b->callee)
    return a->callee < b->callee ? -1 : 1;
  return a->caller < b->caller ? -1 : a->caller > b->caller;
}

void calls_graph_end(struct calls_graph *graph)
{
  size_t count = 0;

  for (size_t i = 0; i < graph->edge_capacity; i++)
    if (graph->edges[i].is_used)
      graph->edges[count++] = graph->edges[i];
  graph->edge_count = count;
  graph->edge_capacity = 0; /* from here on the edges are a plain list */
  if (graph->count)
    qsort_r(graph->functions, graph->count, sizeof(*graph->functions), function_compare, (void *)graph->walk);
  if (count)
    qsort_r(graph->edges, count, sizeof(*graph->edges), edge_compare, (void *)graph->walk);
}

void calls_graph_done(struct calls_graph *graph)
{
  free(graph->functions);
  free(graph->edges);
}
