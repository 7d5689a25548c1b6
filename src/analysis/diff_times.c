/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions and system calls whose times differ most between two traces. The traces are read one after the other.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/diff_inside.h"
#include "base/base.h"

/* ---- functions ---- */

static void duration_add(struct analysis_duration *sum, const struct analysis_duration *one)
{
  sum->all += one->all;
  sum->waited += one->waited;
}

/* Functions without a symbol share the row of their module. They may have called each other, so that their times with
 * what they called cannot be added up. */
static int rows_add(struct diff_counts *rows, const struct analysis_latency *latency, unsigned side)
{
  for (size_t i = 0; i < latency->count; i++) {
    const struct analysis_latency_row *found = &latency->rows[i];
    struct analysis_called called = {0};
    struct diff_count_row *row;
    int r;

    (void)analysis_calls_function(latency->calls, found->function, &called);
    r = diff_counts_row(rows, called.symbol, called.module, &row);
    if (r < 0)
      return r;
    if (!row)
      continue;
    row->calls[side] += found->calls;
    duration_add(&row->own[side], &found->own);
    if (called.symbol)
      duration_add(&row->all[side], &found->all);
  }
  return 0;
}

static int side_read(struct diff_side *side, const struct diff_options *options, unsigned number,
                     struct diff_times *times)
{
  struct analysis_latency latency = {0};
  struct analysis_names *names = NULL;
  struct analysis_code *code = NULL;
  int r = analysis_names_new(options->has_symbols ? &side->input.files : NULL, &names);

  if (r >= 0 && options->is_mangled)
    analysis_names_keep_mangled(names);
  if (r >= 0)
    r = analysis_code_new(names, &code);
  if (r >= 0) {
    r = analysis_latency_read(&side->input, names, code, options->streams[number], &latency);
    if (r < 0)
      goto out; /* it has told the user */
    (void)analysis_thread_times_sum(&latency.threads, options->streams[number], &times->threads[number]);
    r = rows_add(&times->functions, &latency, number);
  }
  if (r < 0)
    message("%s: %s", side->input.name, lb_strerror(r));
out:
  analysis_latency_done(&latency);
  analysis_code_free(code);
  analysis_names_free(names);
  return r;
}

static uint64_t row_difference(const struct diff_count_row *row)
{
  return diff_difference(row->own[0].all, row->own[1].all);
}

static int row_compare(const void *one, const void *other)
{
  const struct diff_count_row *a = one, *b = other;
  uint64_t mine = row_difference(a), yours = row_difference(b);

  if (mine == yours) {
    mine = diff_difference(a->all[0].all, a->all[1].all);
    yours = diff_difference(b->all[0].all, b->all[1].all);
  }
  if (mine != yours)
    return mine > yours ? -1 : 1;
  return diff_count_row_compare(a, b);
}

/* ---- system calls ---- */

/* A trace has at most a few thousand different ones (syscalls.h). Returns NULL without memory. */
static struct diff_call_row *call_get(struct diff_times *times, uint32_t number)
{
  struct diff_call_row *row;

  for (size_t i = 0; i < times->call_count; i++)
    if (times->calls[i].number == number)
      return &times->calls[i];
  row = array_append(&times->calls, &times->call_count, &times->call_capacity);
  if (row)
    *row = (struct diff_call_row){.number = number};
  return row;
}

static int side_read_calls(struct diff_side *side, const struct diff_options *options, unsigned number,
                           struct diff_times *times)
{
  struct analysis_syscalls syscalls = {0};
  int r = analysis_syscalls_read(&side->input, options->streams[number], &syscalls);

  for (size_t i = 0; r >= 0 && i < syscalls.count; i++) {
    struct diff_call_row *row = call_get(times, syscalls.rows[i].number);

    if (row)
      row->sides[number] = syscalls.rows[i];
    else
      r = -ENOMEM;
  }
  if (r == -ENOMEM)
    message("%s: %s", side->input.name, lb_strerror(r));
  analysis_syscalls_done(&syscalls);
  return r;
}

static int call_compare(const void *one, const void *other)
{
  const struct diff_call_row *a = one, *b = other;
  uint64_t mine = diff_difference(a->sides[0].time, a->sides[1].time);
  uint64_t yours = diff_difference(b->sides[0].time, b->sides[1].time);

  if (mine != yours)
    return mine > yours ? -1 : 1;
  return (a->number > b->number) - (a->number < b->number);
}

/* ---- all ---- */

int diff_times_make(struct diff_side sides[2], const struct diff_options *options, struct diff_times *ret_times)
{
  struct diff_counts *functions = &ret_times->functions;
  int r = 0;

  *ret_times = (struct diff_times){0};
  for (unsigned i = 0; i < 2 && r >= 0; i++)
    r = side_read(&sides[i], options, i, ret_times);
  for (unsigned i = 0; i < 2 && r >= 0; i++)
    r = side_read_calls(&sides[i], options, i, ret_times);
  if (r < 0)
    return r;
  if (functions->count)
    qsort(functions->rows, functions->count, sizeof(*functions->rows), row_compare);
  if (ret_times->call_count)
    qsort(ret_times->calls, ret_times->call_count, sizeof(*ret_times->calls), call_compare);
  return 0;
}

void diff_times_done(struct diff_times *times)
{
  diff_counts_done(&times->functions);
  free(times->calls);
  *times = (struct diff_times){0};
}
