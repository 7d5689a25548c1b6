/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of a reading that somebody asked for, in the order that was asked for; and why there are none.
 */
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"

const char *report_by_name(enum report_by by)
{
  static const char *const names[] = {"", "function", "line", "edge", "branch", "indirect", "module", "thread"};

  return names[by];
}

/* ---- order ---- */

/* The table of a page; the dashboard is sorted by its functions. */
static enum report_hot_table by_table(enum report_by by)
{
  static const enum report_hot_table tables[] = {
    [REPORT_BY_ALL] = REPORT_HOT_FUNCTION,  [REPORT_BY_FUNCTION] = REPORT_HOT_FUNCTION,
    [REPORT_BY_LINE] = REPORT_HOT_LINE,     [REPORT_BY_EDGE] = REPORT_HOT_EDGE,
    [REPORT_BY_BRANCH] = REPORT_HOT_BRANCH, [REPORT_BY_INDIRECT] = REPORT_HOT_INDIRECT,
    [REPORT_BY_MODULE] = REPORT_HOT_MODULE, [REPORT_BY_THREAD] = REPORT_HOT_MODULE,
  };

  return tables[by];
}

bool report_by_can_sort(enum report_by by, enum report_hot_order order)
{
  if (by == REPORT_BY_THREAD && order == REPORT_HOT_BY_CALLS)
    return false;
  return report_hot_can_sort(by_table(by), order);
}

static uint64_t thread_key(const struct report_reading_thread *thread, int order)
{
  switch (order) {
  case REPORT_HOT_BY_NAME:
    return 0;
  case REPORT_HOT_BY_TAKEN:
    return thread->branches;
  case REPORT_HOT_BY_PASSED:
    return thread->totals.passed;
  default:
    return thread->totals.instructions;
  }
}

static int thread_compare(const void *one, const void *other, void *data)
{
  const struct report_reading_thread *a = one, *b = other;
  uint64_t key = thread_key(a, *(int *)data), other_key = thread_key(b, *(int *)data);

  if (key != other_key)
    return key < other_key ? 1 : -1;
  return a->number < b->number ? -1 : a->number > b->number;
}

/* ---- nothing there ---- */

/* What was asked for did not run. Returns LB_E_NO_ENTRY after a complaint, or -ENOMEM. */
static int nothing_show(const struct report_reading *reading, const struct report_hot_filter *filter)
{
  struct report_hot *hot;
  int r;

  if (!filter->function || (filter->module && !report_module_is_mapped(reading->names, filter->module)))
    return trace_input_tell_module(&reading->input, reading->names, filter->module);
  r = report_hot_new(reading->names, reading->code, reading->counts, &(struct report_hot_filter){0}, &hot);
  if (r < 0)
    return r;
  report_reading_near(reading, hot, filter->function);
  report_hot_free(hot);
  return LB_E_NO_ENTRY;
}

static bool hot_is_empty(enum report_by by, const struct report_hot *hot)
{
  size_t count, lines;

  (void)report_hot_functions(hot, &count);
  (void)report_hot_lines(hot, &lines);
  return !(by == REPORT_BY_LINE ? lines + report_hot_without_line(hot) : count);
}

/* ---- all of it ---- */

int report_reading_tables(struct report_reading *reading, enum report_by by, int order,
                          const struct report_hot_filter *filter, struct report_hot **ret_hot)
{
  int r = report_hot_new(reading->names, reading->code, reading->counts, filter, ret_hot);

  if (r >= 0 && by == REPORT_BY_LINE)
    r = report_hot_read_lines(*ret_hot);
  if (r >= 0 && (filter->function || filter->module) && hot_is_empty(by, *ret_hot))
    r = nothing_show(reading, filter);
  if (r < 0 && r != LB_E_NO_ENTRY)
    message("%s: %s", reading->input.name, lb_strerror(r));
  if (r < 0)
    return r;
  if (order >= 0 && by != REPORT_BY_THREAD)
    report_hot_sort(*ret_hot, by_table(by), (enum report_hot_order)order);
  if (by != REPORT_BY_THREAD)
    return 0;
  r = report_reading_threads(reading);
  if (r >= 0 && reading->thread_count)
    qsort_r(reading->threads, reading->thread_count, sizeof(*reading->threads), thread_compare, &order);
  return r;
}
