/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace, or a part of it, into the page of `lbr view`: once for the counts, once for the calls.
 */
#include <errno.h>

#include "base/base.h"
#include "report/view_page.h"

#define CONTEXT 1000000u /* branches before a part, which are searched for the calls that are open at its start */

/* The state of making a page from a trace. */
struct reading {
  struct report_view *view;
  const struct report_view_options *options;
  struct trace_input *input;
  struct analysis_counts *counts;
  struct trace_part part;
  struct trace_progress progress;
  uint64_t branches; /* read so far */
};

static int reading_fail(struct reading *reading, int error)
{
  trace_progress_end(&reading->progress);
  message("%s: %s", reading->input->name, lb_strerror(error));
  return error;
}

static void reading_progress(struct reading *reading, const struct lb_trace_record *record)
{
  if (record->type == LB_TRACE_BRANCHES)
    reading->branches += record->branches.count;
  else if (record->type == LB_TRACE_COUNTED)
    reading->branches += record->counted.count;
  trace_progress_show(&reading->progress, reading->branches);
}

static int counts_take(struct reading *reading, const struct lb_trace_record *record)
{
  int r = analysis_counts_record(reading->counts, reading->input->reader, record);

  reading_progress(reading, record);
  return r < 0 ? reading_fail(reading, r) : 0;
}

static bool has_times(const struct reading *reading)
{
  return reading->options->time_from || reading->options->time_to != UINT64_MAX;
}

/* Reduces a record of branches to those of a span of time. Returns false if none is left. */
static bool times_trim(const struct reading *reading, struct lb_trace_branches *branches)
{
  const struct lb_trace_reader *reader = reading->input->reader;
  size_t first, end;

  if (!has_times(reading))
    return true;
  first = timeline_first_at(reader, branches, reading->options->time_from);
  end = timeline_first_at(reader, branches, reading->options->time_to);
  branches->start = first ? 0 : branches->start;
  branches->first += first;
  branches->branches += first;
  branches->count = end > first ? end - first : 0;
  return branches->count > 0;
}

static int counts_take_part(void *data, const struct lb_trace_record *record)
{
  struct reading *reading = data;
  struct lb_trace_record taken = *record;

  if (record->type == LB_TRACE_BRANCHES && !trace_part_trim(&reading->part, &taken.branches))
    return 0;
  if (record->type == LB_TRACE_BRANCHES && !times_trim(reading, &taken.branches))
    return 0;
  return counts_take(reading, &taken);
}

static int counts_read(struct reading *reading)
{
  struct lb_trace_record record;
  int r = 0;

  if (!trace_part_is_all(&reading->part) || has_times(reading))
    return trace_part_read(reading->input, &reading->part, counts_take_part, reading);
  lb_trace_reader_count(reading->input->reader, LB_TRACE_ALL);
  while (r >= 0 && (r = trace_input_next(reading->input, &record)) > 0)
    r = counts_take(reading, &record);
  return r;
}

/* The counts are freed before the calls are read, because those need memory, too. */
static int reading_counts(struct reading *reading)
{
  int r = analysis_counts_new(reading->options->names, reading->options->code, &reading->counts);

  if (r < 0)
    return reading_fail(reading, r);
  trace_progress_begin(&reading->progress, reading->input->reader);
  r = counts_read(reading);
  trace_progress_end(&reading->progress);
  if (r >= 0) {
    r = analysis_counts_end(reading->counts, reading->input->reader);
    if (r >= 0)
      r = report_view_counts(reading->view, reading->counts);
    r = r == -ENOMEM ? reading_fail(reading, r) : r;
  }
  analysis_counts_free(reading->counts);
  return r;
}

static int calls_take(void *data, const struct lb_trace_record *record)
{
  struct reading *reading = data;
  int r = report_view_record(reading->view, record);

  reading_progress(reading, record);
  return r < 0 ? reading_fail(reading, r) : 0;
}

static int reading_calls(struct reading *reading)
{
  int r;

  reading->branches = 0;
  reading->part.before = CONTEXT;
  trace_progress_begin(&reading->progress, reading->input->reader);
  r = trace_part_read(reading->input, &reading->part, calls_take, reading);
  trace_progress_end(&reading->progress);
  if (r < 0)
    return r;
  r = report_view_end(reading->view);
  if (r < 0)
    return reading_fail(reading, r);
  if (!has_times(reading) || reading->view->timeline.has_times)
    return 0;
  message("%s: the trace has no times; record it again with this version of lbr", reading->input->name);
  return LB_E_NO_ENTRY;
}

int report_view_read(struct report_view *view, const struct report_view_options *options, struct trace_input *input)
{
  struct reading reading = {
    .view = view,
    .options = options,
    .input = input,
    .part = {.stream = options->stream, .from = options->from, .to = options->to},
  };
  int r = reading_counts(&reading);

  if (r >= 0 && options->module && !report_view_ran(view))
    r = trace_input_tell_module(input, options->names, options->module);
  return r < 0 ? r : reading_calls(&reading);
}
