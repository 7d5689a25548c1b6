/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of latency.h: which of them are wanted, and in which order.
 */
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/latency.h"

const char *analysis_latency_order_name(unsigned order)
{
  static const char *const names[ANALYSIS_LATENCY_ORDERS] = {
    [ANALYSIS_LATENCY_BY_LONGEST] = "longest", [ANALYSIS_LATENCY_BY_TOTAL] = "total",
    [ANALYSIS_LATENCY_BY_OWN] = "own",         [ANALYSIS_LATENCY_BY_WAITING] = "waiting",
    [ANALYSIS_LATENCY_BY_MEDIAN] = "median",   [ANALYSIS_LATENCY_BY_P99] = "p99",
    [ANALYSIS_LATENCY_BY_CALLS] = "calls",     [ANALYSIS_LATENCY_BY_NAME] = "name",
  };

  return order < ANALYSIS_LATENCY_ORDERS ? names[order] : NULL;
}

void analysis_latency_keep(struct analysis_latency *latency, const struct analysis_names *names, const char *function,
                           const char *module)
{
  size_t count = 0;

  for (size_t i = 0; i < latency->count; i++) {
    struct analysis_latency_row *row = &latency->rows[i];
    struct analysis_called called = {0};

    if (analysis_calls_function(latency->calls, row->function, &called) &&
        (!function || analysis_called_is(latency->calls, &called, function)) &&
        (!module ||
         (called.location.file != ANALYSIS_NO_FILE && analysis_module_is(names, called.location.file, module))))
      latency->rows[count++] = *row;
    else
      free(row->histogram.counts);
  }
  latency->count = count;
}

/* ---- order ---- */

struct latency_sort {
  const struct analysis_latency *latency;
  enum analysis_latency_order order;
};

static uint64_t row_key(const struct analysis_latency_row *row, enum analysis_latency_order order)
{
  switch (order) {
  case ANALYSIS_LATENCY_BY_LONGEST:
    return row->longest;
  case ANALYSIS_LATENCY_BY_TOTAL:
    return row->all.all;
  case ANALYSIS_LATENCY_BY_OWN:
    return row->own.all;
  case ANALYSIS_LATENCY_BY_WAITING:
    return row->own.waited;
  case ANALYSIS_LATENCY_BY_MEDIAN:
    return row->median;
  case ANALYSIS_LATENCY_BY_P99:
    return row->p99;
  case ANALYSIS_LATENCY_BY_CALLS:
    return row->calls;
  default:
    return 0;
  }
}

/* Functions without a name come last. */
static int string_compare(const char *one, const char *other)
{
  return one && other ? strcmp(one, other) : (one == NULL) - (other == NULL);
}

static int name_compare(const struct analysis_latency *latency, uint32_t one, uint32_t other)
{
  struct analysis_called a = {0}, b = {0};
  int r;

  (void)analysis_calls_function(latency->calls, one, &a);
  (void)analysis_calls_function(latency->calls, other, &b);
  r = string_compare(a.symbol, b.symbol);
  if (!r)
    r = string_compare(a.module, b.module);
  if (!r)
    r = (a.location.address > b.location.address) - (a.location.address < b.location.address);
  return r ? r : (one > other) - (one < other);
}

static int row_compare(const void *one, const void *other, void *data)
{
  const struct analysis_latency_row *a = one, *b = other;
  const struct latency_sort *sort = data;
  uint64_t key = row_key(a, sort->order), other_key = row_key(b, sort->order);

  if (key != other_key)
    return key < other_key ? 1 : -1;
  return name_compare(sort->latency, a->function, b->function);
}

void analysis_latency_sort(struct analysis_latency *latency, enum analysis_latency_order order)
{
  struct latency_sort sort = {latency, order};

  if (latency->count)
    qsort_r(latency->rows, latency->count, sizeof(*latency->rows), row_compare, &sort);
}
