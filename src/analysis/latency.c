/* SPDX-License-Identifier: Apache-2.0
 *
 * See latency.h. The open calls of each stream are on a stack of their own, with the time that their callees took.
 */
#include "analysis/latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "trace/trace.h"

#define BUCKETS_MAX (1u << 23) /* of all functions: 64 MiB */

struct latency_call {
  uint32_t function;
  bool is_whole, has_moment;
  uint64_t branch;
  struct analysis_moment moment;
  struct analysis_duration inner; /* of the calls that it made */
};

struct latency_stream {
  struct latency_call *calls;
  size_t count, capacity;
};

/* ---- calls ---- */

/* The active functions are tracked for one stream at a time. */
static void stream_switch(struct analysis_latency *latency, uint32_t stream)
{
  const struct latency_stream *old = &latency->streams[latency->stream], *next = &latency->streams[stream];

  if (latency->stream == stream)
    return;
  for (size_t i = 0; i < old->count; i++)
    latency->rows[old->calls[i].function].active--;
  for (size_t i = 0; i < next->count; i++)
    latency->rows[next->calls[i].function].active++;
  latency->stream = stream;
}

static int call_enter(struct analysis_latency *latency, struct latency_stream *stream, const struct analysis_call *call)
{
  struct analysis_latency_row *row = array_at(&latency->rows, call->function, &latency->count, &latency->capacity);
  struct latency_call *added = row ? array_append(&stream->calls, &stream->count, &stream->capacity) : NULL;

  if (!added)
    return -ENOMEM;
  row->active++;
  *added = (struct latency_call){
    .function = call->function,
    .is_whole = call->how != ANALYSIS_CALL_START,
    .has_moment = call->has_moment,
    .branch = call->branch,
    .moment = call->moment,
  };
  return 0;
}

static void duration_add(struct analysis_duration *sum, const struct analysis_duration *one)
{
  sum->all += one->all;
  sum->waited += one->waited;
}

/* The time of a call without that of the calls that it made. A stamp may attribute waiting to the caller that took
 * place in short callees: more than there is time is not counted. */
static struct analysis_duration own_time(const struct analysis_duration *all, const struct analysis_duration *inner)
{
  uint64_t own = all->all > inner->all ? all->all - inner->all : 0;
  uint64_t waited = all->waited > inner->waited ? all->waited - inner->waited : 0;

  return (struct analysis_duration){own, waited < own ? waited : own};
}

/* A call that has its beginning and end. */
static int whole_take(struct analysis_latency *latency, struct analysis_latency_row *row,
                      const struct latency_call *open, const struct analysis_call *call,
                      const struct analysis_duration *passed)
{
  bool is_first = row->calls == row->cut;
  int r = analysis_histogram_add(&row->histogram, passed->all, &latency->room);

  latency->has_forgotten |= !r;
  if (is_first || passed->all < row->shortest)
    row->shortest = passed->all;
  if (is_first || passed->all > row->longest) {
    row->longest = passed->all;
    row->where.stream = call->stream;
    row->where.waited = passed->waited;
    row->where.start = open->moment.time;
    row->where.first_branch = open->branch;
    row->where.last_branch = call->branch;
  }
  return r < 0 ? r : 0;
}

/* `outer` is the call that made this one, or NULL. */
static int call_end(struct analysis_latency *latency, const struct latency_call *open, struct latency_call *outer,
                    const struct analysis_call *call)
{
  struct analysis_latency_row *row = &latency->rows[open->function];
  bool is_cut = !open->is_whole || call->how == ANALYSIS_CALL_END || call->how == ANALYSIS_CALL_LOST;
  bool is_known = open->has_moment && call->has_moment;
  struct analysis_duration passed = {0}, own;
  int r = 0;

  row->active--;
  if (!is_known) {
    row->calls++;
    row->cut++;
    return 0;
  }
  passed = analysis_moment_since(&open->moment, &call->moment);
  own = own_time(&passed, &open->inner);
  duration_add(&row->own, &own);
  if (!row->active)
    duration_add(&row->all, &passed);
  if (outer)
    duration_add(&outer->inner, &passed);
  if (!is_cut)
    r = whole_take(latency, row, open, call, &passed);
  row->cut += is_cut;
  row->calls++;
  return r;
}

/* The memory of a stack is given back when it is empty: that of all streams then is bounded as that of analysis_calls.
 */
static int call_leave(struct analysis_latency *latency, struct latency_stream *stream, const struct analysis_call *call)
{
  int r;

  if (!stream->count)
    return 0;
  stream->count--;
  r = call_end(latency, &stream->calls[stream->count], stream->count ? &stream->calls[stream->count - 1] : NULL, call);
  if (!stream->count) {
    free(stream->calls);
    *stream = (struct latency_stream){0};
  }
  return r;
}

static int call_take(void *data, const struct analysis_call *call)
{
  struct analysis_latency *latency = data;
  struct latency_stream *stream =
    array_at(&latency->streams, call->stream, &latency->stream_count, &latency->stream_capacity);

  if (!stream)
    return -ENOMEM;
  stream_switch(latency, call->stream);
  return call->is_enter ? call_enter(latency, stream, call) : call_leave(latency, stream, call);
}

/* ---- reading ---- */

static int record_take(struct analysis_latency *latency, struct analysis_clock *clock,
                       const struct lb_trace_record *record, uint32_t stream)
{
  int r = analysis_clock_record(clock, record);

  if (r >= 0)
    r = analysis_thread_times_record(&latency->threads, record);
  if (record->type == LB_TRACE_BRANCHES && stream != LB_TRACE_ALL && record->branches.stream != stream)
    return r;
  return r < 0 ? r : analysis_calls_record(latency->calls, record);
}

static int input_read(struct trace_input *input, struct analysis_latency *latency, struct analysis_clock *clock,
                      uint32_t stream)
{
  struct trace_progress progress;
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r = 0;

  trace_reader_want_stamps(input->reader);
  trace_progress_begin(&progress, input->reader);
  while (r >= 0 && trace_input_next(input, &record) > 0) {
    r = record_take(latency, clock, &record, stream);
    branches += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    trace_progress_show(&progress, branches);
  }
  trace_progress_end(&progress);
  return r < 0 ? r : analysis_calls_end(latency->calls);
}

/* A duration that this share of the calls does not exceed. The longest one is known exactly. */
static uint64_t row_at(const struct analysis_latency_row *row, double share)
{
  const struct analysis_histogram *histogram = &row->histogram;
  uint64_t value = analysis_histogram_at(histogram, share);

  if (share * (double)histogram->total > (double)histogram->total - 1)
    return row->longest;
  return value < row->shortest ? row->shortest : value > row->longest ? row->longest : value;
}

/* Computes the rest of the rows, and drops functions that were never called: entries of the PLT. */
static void rows_finish(struct analysis_latency *latency)
{
  size_t count = 0;

  for (size_t i = 0; i < latency->count; i++) {
    struct analysis_latency_row row = latency->rows[i];

    if (!row.calls)
      continue;
    row.function = (uint32_t)i;
    row.median = row_at(&row, 0.5);
    row.p90 = row_at(&row, 0.9);
    row.p99 = row_at(&row, 0.99);
    latency->rows[count++] = row;
  }
  latency->count = count;
}

int analysis_latency_read(struct trace_input *input, struct analysis_names *names, struct analysis_code *code,
                          uint32_t stream, struct analysis_latency *ret_latency)
{
  struct analysis_clock *clock = NULL;
  int r;

  *ret_latency = (struct analysis_latency){.room = BUCKETS_MAX};
  r = trace_input_read_starts(input, names, &(struct analysis_use){.has_calls = true});
  if (r >= 0)
    r = analysis_clock_new(NULL, &clock);
  if (r >= 0)
    r = analysis_calls_new(names, code, call_take, ret_latency, &ret_latency->calls);
  if (r >= 0) {
    analysis_calls_use_clock(ret_latency->calls, clock, input->reader);
    r = input_read(input, ret_latency, clock, stream);
  }
  if (r < 0) {
    message("%s: %s", input->name, lb_strerror(r));
  } else if (!analysis_clock_has_times(clock)) {
    message("%s: the trace has no times; record it again with this version of lbr", input->name);
    r = LB_E_NO_ENTRY;
  }
  if (r >= 0)
    rows_finish(ret_latency);
  analysis_clock_free(clock);
  return r;
}

void analysis_latency_done(struct analysis_latency *latency)
{
  for (size_t i = 0; i < latency->count; i++)
    free(latency->rows[i].histogram.counts);
  for (size_t i = 0; i < latency->stream_count; i++)
    free(latency->streams[i].calls);
  free(latency->rows);
  free(latency->streams);
  analysis_thread_times_done(&latency->threads);
  analysis_calls_free(latency->calls);
  *latency = (struct analysis_latency){0};
}
