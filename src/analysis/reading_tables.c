/* SPDX-License-Identifier: Apache-2.0
 *
 * The requested tables of a reading, in the requested order; and the reason if there are none.
 */
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"

const char *analysis_by_name(enum analysis_by by)
{
  static const char *const names[] = {"", "function", "line", "edge", "branch", "indirect", "module", "thread"};

  return names[by];
}

/* ---- order ---- */

/* The table of a page; the dashboard is sorted by its functions. */
static enum analysis_hot_table by_table(enum analysis_by by)
{
  static const enum analysis_hot_table tables[] = {
    [ANALYSIS_BY_ALL] = ANALYSIS_HOT_FUNCTION,  [ANALYSIS_BY_FUNCTION] = ANALYSIS_HOT_FUNCTION,
    [ANALYSIS_BY_LINE] = ANALYSIS_HOT_LINE,     [ANALYSIS_BY_EDGE] = ANALYSIS_HOT_EDGE,
    [ANALYSIS_BY_BRANCH] = ANALYSIS_HOT_BRANCH, [ANALYSIS_BY_INDIRECT] = ANALYSIS_HOT_INDIRECT,
    [ANALYSIS_BY_MODULE] = ANALYSIS_HOT_MODULE, [ANALYSIS_BY_THREAD] = ANALYSIS_HOT_MODULE,
  };

  return tables[by];
}

bool analysis_by_can_sort(enum analysis_by by, enum analysis_hot_order order)
{
  if (by == ANALYSIS_BY_THREAD && order == ANALYSIS_HOT_BY_CALLS)
    return false;
  return analysis_hot_can_sort(by_table(by), order);
}

static uint64_t thread_key(const struct analysis_reading_thread *thread, int order)
{
  switch (order) {
  case ANALYSIS_HOT_BY_NAME:
    return 0;
  case ANALYSIS_HOT_BY_TAKEN:
    return thread->branches;
  case ANALYSIS_HOT_BY_PASSED:
    return thread->totals.passed;
  default:
    return thread->totals.instructions;
  }
}

static int thread_compare(const void *one, const void *other, void *data)
{
  const struct analysis_reading_thread *a = one, *b = other;
  uint64_t key = thread_key(a, *(int *)data), other_key = thread_key(b, *(int *)data);

  if (key != other_key)
    return key < other_key ? 1 : -1;
  return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- no result ---- */

/* The requested part did not run. Returns LB_E_NO_ENTRY after a message, or -ENOMEM. */
static int nothing_show(const struct analysis_reading *reading, const struct analysis_hot_filter *filter)
{
  struct analysis_hot *hot;
  int r;

  if (!filter->function || (filter->module && !analysis_module_is_mapped(reading->names, filter->module)))
    return trace_input_tell_module(&reading->input, reading->names, filter->module);
  r = analysis_hot_new(reading->names, reading->code, reading->counts, &(struct analysis_hot_filter){0}, &hot);
  if (r < 0)
    return r;
  analysis_reading_near(reading, hot, filter->function);
  analysis_hot_free(hot);
  return LB_E_NO_ENTRY;
}

static bool hot_is_empty(enum analysis_by by, const struct analysis_hot *hot)
{
  size_t count, lines;

  (void)analysis_hot_functions(hot, &count);
  (void)analysis_hot_lines(hot, &lines);
  return !(by == ANALYSIS_BY_LINE ? lines + analysis_hot_without_line(hot) : count);
}

/* ---- all of it ---- */

int analysis_reading_tables(struct analysis_reading *reading, enum analysis_by by, int order,
                            const struct analysis_hot_filter *filter, struct analysis_hot **ret_hot)
{
  int r = analysis_hot_new(reading->names, reading->code, reading->counts, filter, ret_hot);

  if (r >= 0 && by == ANALYSIS_BY_LINE)
    r = analysis_hot_read_lines(*ret_hot);
  if (r >= 0 && (filter->function || filter->module) && hot_is_empty(by, *ret_hot))
    r = nothing_show(reading, filter);
  if (r < 0 && r != LB_E_NO_ENTRY)
    message("%s: %s", reading->input.name, lb_strerror(r));
  if (r < 0)
    return r;
  if (order >= 0 && by != ANALYSIS_BY_THREAD)
    analysis_hot_sort(*ret_hot, by_table(by), (enum analysis_hot_order)order);
  if (by != ANALYSIS_BY_THREAD)
    return 0;
  r = analysis_reading_threads(reading);
  if (r >= 0 && reading->thread_count)
    qsort_r(reading->threads, reading->thread_count, sizeof(*reading->threads), thread_compare, &order);
  return r;
}
