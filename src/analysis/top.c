/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions and edges of a trace with the most branches: the best ones are kept in a sorted list while the others
 * are scanned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/summary_inside.h"

/* A sorted list of the greatest items, which are identified by number. */
struct top {
  size_t *items;
  unsigned count, room;
};

typedef bool top_function(const struct analysis_summary *summary, size_t one, size_t other); /* is `one` greater? */

static void top_offer(struct top *top, const struct analysis_summary *summary, top_function *is_greater, size_t item)
{
  unsigned at;

  if (top->count == top->room && !is_greater(summary, item, top->items[top->count - 1]))
    return;
  top->count += top->count < top->room;
  for (at = top->count - 1; at > 0 && is_greater(summary, item, top->items[at - 1]); at--)
    top->items[at] = top->items[at - 1];
  top->items[at] = item;
}

/* ---- functions ---- */

/* The order must not depend on the hash: of equal functions, the one seen first comes first. */
static bool function_is_greater(const struct analysis_summary *summary, size_t one, size_t other)
{
  const struct function *a = &summary->functions.functions[one], *b = &summary->functions.functions[other];

  return a->branches != b->branches ? a->branches > b->branches : one < other;
}

/* Whether the function is asked for. Edges of one module lead to functions of others as well. */
static bool function_is_wanted(const struct analysis_summary *summary, const struct function *function)
{
  return function->branches &&
         (!summary->module || analysis_module_is(summary->names, function->file, summary->module));
}

static void edges_fold(struct analysis_summary *summary)
{
  for (size_t i = 0; i < summary->edges.capacity; i++)
    if (summary->edges.edges[i].count)
      edge_fold(summary, &summary->edges.edges[i]);
}

int analysis_summary_functions(struct analysis_summary *summary, struct analysis_function *ret_functions,
                               unsigned count)
{
  struct top top = {.items = calloc(count ? count : 1, sizeof(*top.items)), .room = count};

  if (!top.items)
    return -ENOMEM;
  edges_fold(summary);
  if (function_list_join(summary) < 0) {
    free(top.items);
    return -ENOMEM;
  }
  for (size_t i = 0; i < summary->functions.count && count; i++)
    if (function_is_wanted(summary, &summary->functions.functions[i]))
      top_offer(&top, summary, function_is_greater, i);
  for (unsigned i = 0; i < top.count; i++) {
    const struct function *function = &summary->functions.functions[top.items[i]];

    ret_functions[i] = (struct analysis_function){
      .symbol = function->symbol,
      .module = function->module,
      .start = function->start,
      .source = function->source,
      .branches = function->branches,
      .entries = function->entries,
    };
  }
  free(top.items);
  return (int)top.count;
}

/* ---- edges ---- */

static bool edge_is_greater(const struct analysis_summary *summary, size_t one, size_t other)
{
  const struct edge *a = &summary->edges.edges[one], *b = &summary->edges.edges[other];

  if (a->count != b->count)
    return a->count > b->count;
  if (a->from != b->from)
    return a->from < b->from;
  if (a->to != b->to)
    return a->to < b->to;
  return a->space != b->space ? a->space < b->space : a->kind < b->kind;
}

/* The function as it was when the edge was taken. The offset in it is given only while it is still mapped there. */
static struct analysis_end end_get(struct analysis_summary *summary, uint32_t space, uint64_t address, uint32_t number)
{
  const struct function *function = &summary->functions.functions[number];
  struct analysis_end end = {.address = address, .symbol = function->symbol, .module = function->module};
  struct analysis_name name;

  if (summary->names && analysis_names_find(summary->names, space, address, &name) && name.file == function->file &&
      name.symbol == function->symbol) {
    end.has_offset = true;
    end.offset = name.offset;
  }
  return end;
}

int analysis_summary_edges(struct analysis_summary *summary, struct analysis_edge *ret_edges, unsigned count)
{
  struct top top = {.items = calloc(count ? count : 1, sizeof(*top.items)), .room = count};

  if (!top.items)
    return -ENOMEM;
  for (size_t i = 0; i < summary->edges.capacity && count; i++)
    if (summary->edges.edges[i].count)
      top_offer(&top, summary, edge_is_greater, i);
  for (unsigned i = 0; i < top.count; i++) {
    const struct edge *edge = &summary->edges.edges[top.items[i]];

    ret_edges[i] = (struct analysis_edge){
      .from = end_get(summary, edge->space, edge->from, edge->from_function),
      .to = end_get(summary, edge->space, edge->to, edge->to_function),
      .kind = (uint8_t)edge->kind,
      .count = edge->count,
    };
  }
  free(top.items);
  return (int)top.count;
}
