/* SPDX-License-Identifier: Apache-2.0
 *
 * The range of --between and --time. Branches are cut exactly where it begins and ends, so that the counts are those of
 * that part, and so are times. A thread can be in a system call when a span of time begins or ends, or all the time:
 * then there is no branch to cut at, and the stamp after the call tells.
 */
#include <errno.h>

#include "analysis/calls_walk_inside.h"

/* ---- where the range begins and ends ---- */

/* Calls that are open where the range begins are shown from there on. A time is known if `moment` is not NULL. */
static int stream_begin(struct calls_walk *walk, uint32_t number, struct calls_stream *stream,
                        const struct analysis_moment *moment)
{
  struct analysis_call now = {0};
  int r = 0;

  analysis_calls_position(walk->calls, number, &now);
  stream->is_within = true;
  for (size_t i = 0; i < stream->count && !r; i++) {
    struct calls_node *node = &stream->nodes[i];

    node->branch = now.branch;
    node->instructions_before = now.instructions;
    node->unknown_before = now.unknown;
    node->has_start = moment != NULL;
    if (moment)
      node->start = calls_moment(stream, moment);
    r = calls_node_show(walk, number, stream, i + 1);
  }
  return r;
}

static int stream_end(struct calls_walk *walk, uint32_t number, struct calls_stream *stream,
                      const struct analysis_moment *moment)
{
  struct analysis_call call = {.stream = number, .how = ANALYSIS_CALL_END, .has_moment = moment != NULL};
  int r = 0;

  if (moment)
    call.moment = *moment;
  analysis_calls_position(walk->calls, number, &call);
  while (stream->count && !r)
    r = calls_node_leave(walk, stream, &call);
  stream->is_past = true;
  return r;
}

/* ---- branches ---- */

/* Passes on the branches before number `end`. */
static int branches_before(struct calls_walk *walk, struct lb_trace_record *record, uint64_t end)
{
  struct lb_trace_record part = *record;
  struct lb_trace_branches *rest = &record->branches;
  size_t count = end <= rest->first ? 0 : rest->count;
  int r;

  if (end - rest->first < count)
    count = (size_t)(end - rest->first);
  if (!count)
    return 0;
  part.branches.count = count;
  r = analysis_calls_record(walk->calls, &part);
  rest->first += count;
  rest->branches += count;
  rest->count -= count;
  return r;
}

/* The number of the first branch of the record that is not before the time; or that after the last. */
static uint64_t branch_at(const struct calls_walk *walk, const struct lb_trace_branches *branches, uint64_t time)
{
  size_t low = 0, high = branches->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    uint64_t at = trace_reader_time(walk->reader, branches->first + middle);

    if (at == TRACE_NO_TIME || at < time)
      low = middle + 1;
    else
      high = middle;
  }
  return branches->first + low;
}

/* An end of the range among the branches of a record. */
struct cut {
  uint64_t number; /* of the first branch after it; UINT64_MAX: it is not in the record */
  uint64_t time;   /* 0: that of the branch */
};

static struct cut cut_begin(const struct calls_walk *walk, const struct lb_trace_branches *branches)
{
  struct cut cut = {walk->options->first, 0};
  uint64_t at = walk->options->from ? branch_at(walk, branches, walk->options->from) : 0;

  return at > cut.number ? (struct cut){at, walk->options->from} : cut;
}

static struct cut cut_end(const struct calls_walk *walk, const struct lb_trace_branches *branches)
{
  struct cut cut = {walk->options->last == UINT64_MAX ? UINT64_MAX : walk->options->last + 1, 0};
  uint64_t at = walk->options->to ? branch_at(walk, branches, walk->options->to) : UINT64_MAX;

  return at < cut.number ? (struct cut){at, walk->options->to} : cut;
}

/* The moment of a cut. Returns NULL if it is not known. */
static const struct analysis_moment *cut_moment(const struct calls_walk *walk, uint32_t number, const struct cut *cut,
                                                struct analysis_moment *moment)
{
  if (!analysis_clock_at(walk->clock, walk->reader, number, cut->number, moment))
    return NULL;
  if (cut->time)
    moment->time = cut->time;
  return moment;
}

static int branches_cut(struct calls_walk *walk, const struct lb_trace_record *record, struct calls_stream *stream)
{
  struct cut begin = cut_begin(walk, &record->branches), end = cut_end(walk, &record->branches);
  uint32_t number = record->branches.stream;
  struct lb_trace_record rest = *record;
  struct analysis_moment moment;
  int r = 0;

  if (!stream->is_within) {
    r = branches_before(walk, &rest, begin.number);
    stream = &walk->streams[number];
    if (r >= 0 && rest.branches.count)
      r = stream_begin(walk, number, stream, cut_moment(walk, number, &begin, &moment));
  }
  if (!r && rest.branches.count)
    r = branches_before(walk, &rest, end.number);
  stream = &walk->streams[number];
  if (!r && rest.branches.count)
    r = stream_end(walk, number, stream, cut_moment(walk, number, &end, &moment));
  return r;
}

int calls_range_branches(struct calls_walk *walk, const struct lb_trace_record *record)
{
  const struct calls_options *options = walk->options;
  struct calls_stream *stream;

  if (!options->first && options->last == UINT64_MAX && !options->from && !options->to)
    return analysis_calls_record(walk->calls, record);
  stream = calls_stream_get(walk, record->branches.stream);
  if (!stream)
    return -ENOMEM;
  return stream->is_past ? 0 : branches_cut(walk, record, stream);
}

/* ---- stamps ---- */

/* Functions that were open before the first stamp of their thread count from there. */
static void starts_set(struct calls_stream *stream, const struct analysis_moment *moment)
{
  for (size_t i = 0; i < stream->count; i++)
    if (!stream->nodes[i].has_start) {
      stream->nodes[i].has_start = true;
      stream->nodes[i].start = *moment;
    }
}

/* Before the stamp: a span of time has begun since the last stamp, if no branch of the span came before this one. */
static int stamp_begin(struct calls_walk *walk, struct calls_stream *stream, const struct trace_stamp *stamp,
                       const struct analysis_moment *before)
{
  const struct calls_options *options = walk->options;
  struct analysis_moment moment = *before;

  if (stream->is_within || !options->from || stamp->time < options->from ||
      (options->first && stamp->number <= options->first))
    return 0;
  moment.time = moment.time > options->from ? moment.time : options->from;
  return stream_begin(walk, stamp->stream, stream, &moment);
}

static uint64_t least(uint64_t one, uint64_t other)
{
  return one < other ? one : other;
}

/* Of the waiting between two stamps, as much is counted as fits into the span of time between them. */
static void stamp_clip(const struct calls_options *options, struct calls_stream *stream,
                       const struct analysis_moment *before, const struct analysis_moment *after)
{
  uint64_t from = before->time > options->from ? before->time : options->from;
  uint64_t to = options->to ? least(after->time, options->to) : after->time;
  uint64_t within = to > from ? to - from : 0;
  uint64_t waited = after->waited - before->waited, held = after->held - before->held;

  stream->waited_outside += waited - least(waited, within);
  stream->held_outside += held - least(held, within);
}

/* After the stamp: the span of time has ended since the last stamp. A system call that is under way is shown first. */
static int span_end(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_moment *after,
                    uint32_t number)
{
  struct analysis_moment moment = *after;

  if (!stream->is_within || !walk->options->to || after->time < walk->options->to)
    return 0;
  moment.time = walk->options->to;
  return stream_end(walk, number, stream, &moment);
}

int calls_range_stamp(struct calls_walk *walk, const struct lb_trace_record *record, const struct trace_stamp *stamp)
{
  struct calls_stream *stream = calls_stream_get(walk, stamp->stream);
  struct analysis_moment before = {.time = stamp->time}, after = before;
  int r;

  if (!stream)
    return -ENOMEM;
  if (stream->is_past)
    return 0;
  if (!analysis_clock_last(walk->clock, stamp->stream, &before))
    starts_set(stream, &before);
  r = stamp_begin(walk, stream, stamp, &before);
  if (!r)
    r = analysis_clock_record(walk->clock, record);
  if (r)
    return r;
  stream = &walk->streams[stamp->stream];
  analysis_clock_last(walk->clock, stamp->stream, &after);
  if (walk->options->from || walk->options->to)
    stamp_clip(walk->options, stream, &before, &after);
  if (analysis_clock_call(walk->clock, stamp->stream))
    return 0;
  return span_end(walk, stream, &after, stamp->stream);
}

int calls_range_end(struct calls_walk *walk)
{
  struct analysis_moment last;
  int r = 0;

  for (size_t i = 0; i < walk->count && !r; i++)
    if (!walk->streams[i].is_past && analysis_clock_last(walk->clock, (uint32_t)i, &last))
      r = span_end(walk, &walk->streams[i], &last, (uint32_t)i);
  return r;
}

/* ---- system calls ---- */

/* The part of a system call within the span of time. */
static struct analysis_syscall call_clip(const struct calls_options *options, const struct analysis_syscall *call)
{
  struct analysis_syscall part = *call;
  uint64_t end = call->start + call->duration;

  part.start = call->start > options->from ? call->start : options->from;
  end = options->to ? least(end, options->to) : end;
  part.duration = end > part.start ? end - part.start : 0;
  part.waited = least(call->waited, part.duration);
  return part;
}

int calls_syscall_show(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_syscall *call)
{
  struct calls_node *caller = stream->count ? &stream->nodes[stream->count - 1] : NULL;
  struct analysis_syscall part = call_clip(walk->options, call);
  uint32_t level = caller ? caller->level + 1 : 0;

  if (!stream->is_within || stream->is_past)
    return 0;
  if (caller)
    caller->cost.kernel += part.duration;
  if (caller ? !caller->is_shown : walk->options->function || walk->filter)
    return 0;
  if (!walk->view.syscall || walk->options->has_no_syscalls || level >= walk->options->depth)
    return 0;
  return walk->view.syscall(walk->view.data, level, &part);
}
