/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a trace into exact counts: once for all threads, and once more for each thread if threads are listed
 * separately.
 */
#include "analysis/reading.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "trace/trace.h"

#define NEAR_SHOWN 5

/* ---- threads ---- */

static struct analysis_reading_thread *thread_get(struct analysis_reading *reading, uint32_t number)
{
  while (reading->thread_count <= number) {
    struct analysis_reading_thread *thread =
      array_append(&reading->threads, &reading->thread_count, &reading->thread_capacity);

    if (!thread)
      return NULL;
    *thread = (struct analysis_reading_thread){.number = (uint32_t)reading->thread_count - 1};
  }
  return &reading->threads[number];
}

static int thread_describe(struct analysis_reading *reading, const struct lb_trace_stream *stream)
{
  struct analysis_reading_thread *thread = thread_get(reading, stream->number);

  if (!thread)
    return -ENOMEM;
  thread->process = stream->process;
  thread->thread = stream->thread;
  return 0;
}

/* The number of branches of a record, and their stream. */
static uint64_t record_branches(const struct lb_trace_record *record, uint32_t *ret_stream)
{
  if (record->type == LB_TRACE_BRANCHES) {
    *ret_stream = record->branches.stream;
    return record->branches.count;
  }
  if (record->type == LB_TRACE_COUNTED) {
    *ret_stream = record->counted.stream;
    return record->counted.count;
  }
  return 0;
}

static int record_note(struct analysis_reading *reading, const struct lb_trace_record *record)
{
  struct analysis_reading_thread *thread;
  uint32_t stream = 0;
  uint64_t count = record_branches(record, &stream);

  if (record->type == LB_TRACE_STREAM)
    return thread_describe(reading, &record->stream);
  if (!count)
    return analysis_thread_times_record(&reading->times, record);
  thread = thread_get(reading, stream);
  if (!thread)
    return -ENOMEM;
  thread->branches += count;
  return 0;
}

/* ---- counting ---- */

/* Reads the whole trace. If it cannot be read to its end, gives what came before. */
static int counts_read(struct analysis_reading *reading, struct analysis_counts *counts, uint32_t stream,
                       bool wants_notes)
{
  struct lb_trace_reader *reader = reading->input.reader;
  struct trace_progress progress;
  struct lb_trace_record record;
  uint64_t branches = 0;
  uint32_t number;
  int r = 0;

  trace_progress_begin(&progress, reader);
  lb_trace_reader_count(reader, stream);
  while (r >= 0 && trace_input_next(&reading->input, &record) > 0) {
    r = analysis_counts_record(counts, reader, &record);
    if (r >= 0 && wants_notes)
      r = record_note(reading, &record);
    branches += record_branches(&record, &number);
    trace_progress_show(&progress, branches);
  }
  if (r >= 0)
    r = analysis_counts_end(counts, reader);
  trace_progress_end(&progress);
  return r;
}

static int reading_count(struct analysis_reading *reading, uint32_t stream)
{
  int r = analysis_counts_new(reading->names, reading->code, &reading->counts);

  if (r < 0)
    return r;
  analysis_counts_stream(reading->counts, stream);
  trace_reader_want_stamps(reading->input.reader);
  return counts_read(reading, reading->counts, stream, true);
}

int analysis_reading_open(struct analysis_reading *reading, const char *file, uint32_t stream, bool has_symbols)
{
  int r;

  *reading = (struct analysis_reading){0};
  if (trace_input_open(&reading->input, file) < 0)
    return -ENOENT;
  r = trace_input_check_stream(&reading->input, stream);
  if (r < 0)
    goto out;
  r = analysis_names_new(has_symbols ? &reading->input.files : NULL, &reading->names);
  if (r >= 0)
    r = analysis_code_new(reading->names, &reading->code);
  if (r >= 0)
    r = trace_input_read_starts(&reading->input, reading->names,
                                &(struct analysis_use){.is_part = stream != LB_TRACE_ALL});
  if (r >= 0)
    r = reading_count(reading, stream);
  if (r < 0)
    message("%s: %s", reading->input.name, lb_strerror(r));
out:
  if (r < 0)
    (void)analysis_reading_close(reading);
  return r < 0 ? r : 0;
}

static int thread_count(struct analysis_reading *reading, uint32_t number)
{
  struct analysis_counts *counts = NULL;
  int r = analysis_counts_new(reading->names, reading->code, &counts);

  if (r < 0)
    return r;
  analysis_counts_stream(counts, number);
  r = counts_read(reading, counts, number, false);
  if (r >= 0) {
    reading->threads[number].totals = *analysis_counts_totals(counts);
    reading->threads[number].is_counted = true;
  }
  analysis_counts_free(counts);
  return r;
}

int analysis_reading_threads(struct analysis_reading *reading)
{
  int r = 0;

  if (reading->thread_count == 1) { /* all counts belong to this thread */
    reading->threads[0].totals = *analysis_counts_totals(reading->counts);
    reading->threads[0].is_counted = true;
    return 0;
  }
  for (size_t i = 0; i < reading->thread_count && r >= 0; i++)
    if (reading->threads[i].branches)
      r = thread_count(reading, (uint32_t)i);
  if (r < 0)
    message("%s: %s", reading->input.name, lb_strerror(r));
  return r;
}

/* ---- no such function ---- */

void analysis_reading_near(const struct analysis_reading *reading, const struct analysis_hot *hot, const char *word)
{
  const char *near[NEAR_SHOWN], *module = analysis_functions_idle(reading->names, word);
  size_t count = analysis_functions_near(hot, word, near, NEAR_SHOWN);
  struct text names = {0};

  for (size_t i = 0; i < count; i++)
    text_addf(&names, "%s%s", i ? ", " : "", near[i]);
  if (module)
    message("%s: '%s' is in %s, but never ran", reading->input.name, word, module);
  else if (count)
    message("%s: no function '%s' ran; near it: %s", reading->input.name, word, text_string(&names));
  else
    message("%s: no function '%s' ran; 'lbr report --by function --top all' lists those that did", reading->input.name,
            word);
  text_done(&names);
}

int analysis_reading_close(struct analysis_reading *reading)
{
  trace_input_tell_limit(&reading->input, reading->code);
  analysis_counts_free(reading->counts);
  analysis_code_free(reading->code);
  analysis_names_free(reading->names);
  free(reading->threads);
  analysis_thread_times_done(&reading->times);
  return trace_input_close(&reading->input);
}
