/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a part of a trace: the index leads to the end of a stream, and from there a number of branches back.
 */
#include "analysis/trace_part.h"

#include "lastbranch/error.h"

#define STREAMS_MAX 4096u /* with more streams, finding the part of each takes longer than reading everything */

bool trace_part_is_all(const struct trace_part *part)
{
  return part->stream == LB_TRACE_ALL && !part->from && part->to == UINT64_MAX;
}

bool trace_part_trim(const struct trace_part *part, struct lb_trace_branches *branches)
{
  if (part->stream != LB_TRACE_ALL && part->stream != branches->stream)
    return false;
  if (branches->first < part->from) {
    uint64_t skipped = part->from - branches->first;

    if (skipped >= branches->count)
      return false;
    branches->first += skipped;
    branches->branches += skipped;
    branches->count -= (size_t)skipped;
    branches->start = 0;
  }
  if (branches->first >= part->to)
    return false;
  if (branches->count > part->to - branches->first)
    branches->count = (size_t)(part->to - branches->first);
  return branches->count > 0;
}

/* ---- one stream ---- */

/* Gives the number of the stream's last branch plus 1. Returns 1; 0 if it has no branch; or negative. */
static int stream_end(struct trace_input *input, uint32_t stream, uint64_t *ret_end)
{
  struct lb_trace_record record;
  int r = trace_input_tail(input, stream, 1), found = 0;

  if (r < 0)
    return r;
  lb_trace_reader_skip(input->reader);
  while ((r = trace_input_next(input, &record)) > 0)
    if (record.type == LB_TRACE_BRANCHES && record.branches.count) {
      *ret_end = record.branches.first + record.branches.count;
      found = 1;
    }
  return r < 0 ? r : found;
}

/* Gives the last `count` branches of the stream, up to the end of the part. */
static int stream_give(struct trace_input *input, const struct trace_part *part, uint32_t stream, uint64_t count,
                       trace_part_function *function, void *data)
{
  struct lb_trace_record record;
  int r = trace_input_tail(input, stream, count);

  if (r < 0)
    return r;
  lb_trace_reader_skip(input->reader);
  while ((r = trace_input_next(input, &record)) > 0) {
    r = function(data, &record);
    if (r < 0 || (record.type == LB_TRACE_BRANCHES && record.branches.first + record.branches.count > part->to))
      return r;
  }
  return r;
}

static int stream_read(struct trace_input *input, const struct trace_part *part, uint32_t stream,
                       trace_part_function *function, void *data)
{
  uint64_t end = 0, start = part->from > part->before ? part->from - part->before : 0;
  int r = stream_end(input, stream, &end);

  if (r <= 0)
    return r;
  if (end > start)
    r = stream_give(input, part, stream, end - start, function, data);
  if (r >= 0 && (end <= start || end > part->to))
    r = stream_give(input, &(struct trace_part){.to = UINT64_MAX}, stream, 1, function, data);
  return r < 0 ? r : 0;
}

/* ---- all of it ---- */

static int all_read(struct trace_input *input, trace_part_function *function, void *data)
{
  struct lb_trace_record record;
  int r;

  lb_trace_reader_rewind(input->reader);
  while ((r = trace_input_next(input, &record)) > 0) {
    r = function(data, &record);
    if (r < 0)
      return r;
  }
  return r;
}

/* Reads every record that is not a branch. */
static int rest_read(struct trace_input *input, trace_part_function *function, void *data)
{
  struct lb_trace_record record;
  int r = trace_input_tail(input, LB_TRACE_ALL, 0);

  while (r >= 0 && (r = trace_input_next(input, &record)) > 0)
    r = function(data, &record);
  return r;
}

/* Counts the streams that the trace describes. */
static int stream_count(void *data, const struct lb_trace_record *record)
{
  uint32_t *count = data;

  if (record->type == LB_TRACE_STREAM && record->stream.number >= *count)
    *count = record->stream.number + 1;
  return 0;
}

static int streams_read(struct trace_input *input, const struct trace_part *part, uint32_t count,
                        trace_part_function *function, void *data)
{
  int r = rest_read(input, function, data);

  for (uint32_t i = 0; r >= 0 && i < count; i++)
    if (lb_trace_reader_tail(input->reader, i, 0) != LB_E_NO_ENTRY)
      r = stream_read(input, part, i, function, data);
  return r;
}

int trace_part_read(struct trace_input *input, const struct trace_part *part, trace_part_function *function, void *data)
{
  uint32_t count = 1; /* a trace of one stream need not describe it */
  int r;

  if (trace_part_is_all(part))
    return all_read(input, function, data);
  if (part->stream != LB_TRACE_ALL) {
    r = rest_read(input, function, data);
    return r < 0 ? r : stream_read(input, part, part->stream, function, data);
  }
  r = rest_read(input, stream_count, &count);
  if (r < 0)
    return r;
  return count > STREAMS_MAX ? all_read(input, function, data) : streams_read(input, part, count, function, data);
}
