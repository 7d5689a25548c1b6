/* SPDX-License-Identifier: Apache-2.0
 *
 * See thread_times.h.
 */
#include "analysis/thread_times.h"

#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "trace/trace.h"

int analysis_thread_times_record(struct analysis_thread_times *times, const struct lb_trace_record *record)
{
  const struct trace_stamp *stamp = trace_record_stamp(record);
  struct thread_span *span;
  int r = 0;

  if (!stamp)
    return 0;
  if (!times->clock)
    r = analysis_clock_new(NULL, &times->clock);
  if (r >= 0)
    r = analysis_clock_record(times->clock, record);
  if (r < 0)
    return r;
  span = array_at(&times->spans, stamp->stream, &times->count, &times->capacity);
  if (!span)
    return -ENOMEM;
  if (!analysis_clock_last(times->clock, stamp->stream, &span->last))
    return 0;
  if (!span->is_known)
    span->first = span->last;
  span->is_known = true;
  return 0;
}

void analysis_thread_times_done(struct analysis_thread_times *times)
{
  analysis_clock_free(times->clock);
  free(times->spans);
  *times = (struct analysis_thread_times){0};
}

bool analysis_thread_times_of(const struct analysis_thread_times *times, uint32_t stream,
                              struct analysis_thread_time *ret_time)
{
  const struct thread_span *span = stream < times->count ? &times->spans[stream] : NULL;
  struct analysis_duration passed;

  if (!span || !span->is_known)
    return false;
  passed = analysis_moment_since(&span->first, &span->last);
  *ret_time = (struct analysis_thread_time){span->first.time, passed.all, passed.waited};
  return true;
}

bool analysis_thread_times_sum(const struct analysis_thread_times *times, uint32_t stream,
                               struct analysis_thread_time *ret_time)
{
  struct analysis_thread_time sum = {.start = UINT64_MAX}, one;
  bool is_known = false;

  if (stream != LB_TRACE_ALL)
    return analysis_thread_times_of(times, stream, ret_time);
  for (size_t i = 0; i < times->count; i++) {
    if (!analysis_thread_times_of(times, (uint32_t)i, &one))
      continue;
    is_known = true;
    sum.start = one.start < sum.start ? one.start : sum.start;
    sum.all += one.all;
    sum.waited += one.waited;
  }
  if (is_known)
    *ret_time = sum;
  return is_known;
}
