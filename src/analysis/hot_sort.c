/* SPDX-License-Identifier: Apache-2.0
 *
 * The order of the tables. Each row has a number for each order, or none. Equal rows are sorted by name or address, so
 * that the same trace always gives the same page.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/hot_table.h"

const char *analysis_hot_order_name(unsigned order)
{
  static const char *const names[] = {"instructions", "taken", "passed", "calls", "count", "rate", "targets", "name"};

  return order < sizeof(names) / sizeof(*names) ? names[order] : NULL;
}

#define ORDER(name) (1u << ANALYSIS_HOT_BY_##name)

bool analysis_hot_can_sort(enum analysis_hot_table table, enum analysis_hot_order order)
{
  static const unsigned orders[] = {
    [ANALYSIS_HOT_FUNCTION] = ORDER(INSTRUCTIONS) | ORDER(TAKEN) | ORDER(PASSED) | ORDER(CALLS) | ORDER(NAME),
    [ANALYSIS_HOT_LINE] = ORDER(INSTRUCTIONS) | ORDER(COUNT) | ORDER(TAKEN) | ORDER(PASSED) | ORDER(NAME),
    [ANALYSIS_HOT_EDGE] = ORDER(COUNT) | ORDER(NAME),
    [ANALYSIS_HOT_BRANCH] = ORDER(COUNT) | ORDER(TAKEN) | ORDER(PASSED) | ORDER(RATE) | ORDER(NAME),
    [ANALYSIS_HOT_INDIRECT] = ORDER(COUNT) | ORDER(TARGETS) | ORDER(NAME),
    [ANALYSIS_HOT_MODULE] = ORDER(INSTRUCTIONS) | ORDER(TAKEN) | ORDER(PASSED) | ORDER(CALLS) | ORDER(NAME),
  };

  assert(table < sizeof(orders) / sizeof(*orders));
  return orders[table] >> order & 1;
}

/* ---- numbers ---- */

struct key {
  uint64_t number;
  double rate; /* for equal numbers, the greater rate comes first */
};

/* Of a function or a module. */
static struct key sum_key(uint64_t instructions, uint64_t taken, uint64_t passed, uint64_t calls,
                          enum analysis_hot_order order)
{
  switch (order) {
  case ANALYSIS_HOT_BY_INSTRUCTIONS:
    return (struct key){instructions, (double)taken};
  case ANALYSIS_HOT_BY_TAKEN:
    return (struct key){taken, 0};
  case ANALYSIS_HOT_BY_PASSED:
    return (struct key){passed, 0};
  case ANALYSIS_HOT_BY_CALLS:
    return (struct key){calls, 0};
  default:
    return (struct key){0, 0};
  }
}

static struct key function_key(const struct analysis_hot_function *row, enum analysis_hot_order order)
{
  return sum_key(row->instructions, row->taken, row->passed, row->calls, order);
}

static struct key module_key(const struct analysis_hot_module *row, enum analysis_hot_order order)
{
  return sum_key(row->instructions, row->taken, row->passed, row->entries, order);
}

static struct key line_key(const struct analysis_hot_line *row, enum analysis_hot_order order)
{
  switch (order) {
  case ANALYSIS_HOT_BY_INSTRUCTIONS:
    return (struct key){row->instructions, 0};
  case ANALYSIS_HOT_BY_COUNT:
    return (struct key){row->executed, (double)row->instructions};
  case ANALYSIS_HOT_BY_TAKEN:
    return (struct key){row->taken, 0};
  case ANALYSIS_HOT_BY_PASSED:
    return (struct key){row->passed, 0};
  default:
    return (struct key){0, 0};
  }
}

static struct key branch_key(const struct analysis_hot_branch *row, enum analysis_hot_order order)
{
  double count = (double)row->taken + (double)row->passed;

  switch (order) {
  case ANALYSIS_HOT_BY_COUNT:
    return (struct key){row->taken + row->passed, 0};
  case ANALYSIS_HOT_BY_TAKEN:
    return (struct key){row->taken, 0};
  case ANALYSIS_HOT_BY_PASSED:
    return (struct key){row->passed, 0};
  case ANALYSIS_HOT_BY_RATE:
    return (struct key){(uint64_t)(count > 0 ? 1e15 * (double)row->taken / count : 0), count};
  default:
    return (struct key){0, 0};
  }
}

static struct key indirect_key(const struct analysis_hot_indirect *row, enum analysis_hot_order order)
{
  switch (order) {
  case ANALYSIS_HOT_BY_COUNT:
    return (struct key){row->count, 0};
  case ANALYSIS_HOT_BY_TARGETS:
    return (struct key){row->target_count, (double)row->count};
  default:
    return (struct key){0, 0};
  }
}

/* ---- comparing ---- */

static int key_compare(struct key one, struct key other)
{
  if (one.number != other.number)
    return one.number < other.number ? 1 : -1;
  return one.rate < other.rate ? 1 : one.rate > other.rate ? -1 : 0;
}

static int word_compare(const char *one, const char *other)
{
  return one && other ? strcmp(one, other) : !one - !other; /* rows without a name come last */
}

static int number_compare(uint64_t one, uint64_t other)
{
  return one < other ? -1 : one > other;
}

static int function_compare(const void *one, const void *other, void *data)
{
  const struct analysis_hot_function *a = one, *b = other;
  enum analysis_hot_order order = *(enum analysis_hot_order *)data;
  int r = key_compare(function_key(a, order), function_key(b, order));

  if (!r)
    r = word_compare(a->symbol, b->symbol);
  if (!r)
    r = word_compare(a->module, b->module);
  if (!r)
    r = number_compare(a->file, b->file);
  return r ? r : number_compare(a->start, b->start);
}

static int module_compare(const void *one, const void *other, void *data)
{
  const struct analysis_hot_module *a = one, *b = other;
  enum analysis_hot_order order = *(enum analysis_hot_order *)data;
  int r = key_compare(module_key(a, order), module_key(b, order));

  if (!r)
    r = word_compare(a->module, b->module);
  return r ? r : number_compare(a->file, b->file);
}

static int line_compare(const void *one, const void *other, void *data)
{
  const struct analysis_hot_line *a = one, *b = other;
  enum analysis_hot_order order = *(enum analysis_hot_order *)data;
  int r = key_compare(line_key(a, order), line_key(b, order));

  if (!r)
    r = word_compare(a->file, b->file);
  if (!r)
    r = number_compare(a->line, b->line);
  return r ? r : word_compare(a->function, b->function);
}

static int edge_compare(const void *one, const void *other, void *data)
{
  const struct analysis_jump *a = *(const struct analysis_jump *const *)one,
                             *b = *(const struct analysis_jump *const *)other;
  enum analysis_hot_order order = *(enum analysis_hot_order *)data;
  int r = order == ANALYSIS_HOT_BY_COUNT ? number_compare(b->count, a->count) : 0;

  if (!r)
    r = analysis_location_compare(&a->from, &b->from);
  return r ? r : analysis_location_compare(&a->to, &b->to);
}

static int branch_compare(const void *one, const void *other, void *data)
{
  const struct analysis_hot_branch *a = one, *b = other;
  enum analysis_hot_order order = *(enum analysis_hot_order *)data;
  int r = key_compare(branch_key(a, order), branch_key(b, order));

  return r ? r : analysis_location_compare(&a->from, &b->from);
}

static int indirect_compare(const void *one, const void *other, void *data)
{
  const struct analysis_hot_indirect *a = one, *b = other;
  enum analysis_hot_order order = *(enum analysis_hot_order *)data;
  int r = key_compare(indirect_key(a, order), indirect_key(b, order));

  return r ? r : analysis_location_compare(&a->from, &b->from);
}

void analysis_hot_sort(struct analysis_hot *hot, enum analysis_hot_table table, enum analysis_hot_order order)
{
  const struct {
    void *rows;
    size_t count, size;
    int (*compare)(const void *one, const void *other, void *data);
  } tables[] = {
    [ANALYSIS_HOT_FUNCTION] = {hot->functions, hot->function_count, sizeof(*hot->functions), function_compare},
    [ANALYSIS_HOT_LINE] = {hot->lines, hot->line_count, sizeof(*hot->lines), line_compare},
    [ANALYSIS_HOT_EDGE] = {hot->edges, hot->edge_count, sizeof(*hot->edges), edge_compare},
    [ANALYSIS_HOT_BRANCH] = {hot->branches, hot->branch_count, sizeof(*hot->branches), branch_compare},
    [ANALYSIS_HOT_INDIRECT] = {hot->indirects, hot->indirect_count, sizeof(*hot->indirects), indirect_compare},
    [ANALYSIS_HOT_MODULE] = {hot->modules, hot->module_count, sizeof(*hot->modules), module_compare},
  };

  assert(analysis_hot_can_sort(table, order));
  if (tables[table].count)
    qsort_r(tables[table].rows, tables[table].count, tables[table].size, tables[table].compare, &order);
}
