/* SPDX-License-Identifier: Apache-2.0
 *
 * Takes the records of a trace for its timeline: the streams, the wanted part of them, gaps, and how they ended.
 */
#include "analysis/timeline.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/timeline_inside.h"

struct timeline_stream *timeline_stream_get(struct timeline *timeline, uint32_t number)
{
  while (number >= timeline->count) {
    struct timeline_stream *stream = array_append(&timeline->streams, &timeline->count, &timeline->capacity);

    if (!stream)
      return NULL;
    *stream = (struct timeline_stream){.last = {.kind = LB_BRANCH_KINDS},
                                       .is_within = !timeline->options.from && !timeline->options.time_from};
  }
  return stream_list_get(&timeline->list, number) ? &timeline->streams[number] : NULL;
}

/* ---- records ---- */

static int branches_note(struct timeline *timeline, const struct lb_trace_branches *branches)
{
  struct timeline_stream *stream = timeline_stream_get(timeline, branches->stream);

  if (!stream)
    return -ENOMEM;
  if (!branches->count)
    return 0;
  stream->last = branches->branches[branches->count - 1];
  stream->branches = branches->first + branches->count;
  stream->seen += branches->count;
  stream->is_cut = false;
  return 0;
}

static int gap_note(struct timeline *timeline, const struct lb_trace_gap *gap)
{
  struct timeline_gap *added;

  timeline->has_loss = true;
  timeline->is_unfinished |= gap->reason == LB_TRACE_CUT;
  if (gap->stream != LB_TRACE_ALL) {
    struct timeline_stream *stream = timeline_stream_get(timeline, gap->stream);

    if (!stream)
      return -ENOMEM;
    stream->is_cut = true;
  }
  if (timeline->gap_count >= TIMELINE_GAPS_MAX) {
    timeline->gaps_left_out++;
    return 0;
  }
  added = array_append(&timeline->gaps, &timeline->gap_count, &timeline->gap_capacity);
  if (!added)
    return -ENOMEM;
  *added = (struct timeline_gap){gap->stream, gap->reason, gap->first, gap->count};
  return 0;
}

/* "PROCESS signal NUMBER" or "PROCESS exit STATUS". */
static void end_note(struct timeline *timeline, const char *value)
{
  char *rest;
  unsigned long process = strtoul(value, &rest, 10);

  if (strncmp(rest, " signal ", 8) != 0 || process == 0 || process > UINT32_MAX)
    return;
  timeline->dead = (uint32_t)process;
  timeline->signal = (uint32_t)strtoul(rest + 8, NULL, 10) & 0x7F;
}

static int meta_note(struct timeline *timeline, const struct lb_trace_meta *meta)
{
  if (!strcmp(meta->key, "end"))
    end_note(timeline, meta->value);
  if (!strcmp(meta->key, "remark"))
    timeline->is_unfinished = true;
  if (!strcmp(meta->key, "source") && !timeline->source && !(timeline->source = strdup(meta->value)))
    return -ENOMEM;
  return stream_list_meta(&timeline->list, meta);
}

static int record_note(struct timeline *timeline, const struct lb_trace_record *record)
{
  switch (record->type) {
  case LB_TRACE_META:
    return meta_note(timeline, &record->meta);
  case LB_TRACE_STREAM:
    return timeline_stream_get(timeline, record->stream.number) ? stream_list_describe(&timeline->list, &record->stream)
                                                                : -ENOMEM;
  case LB_TRACE_BRANCHES:
    return branches_note(timeline, &record->branches);
  case LB_TRACE_GAP:
    return gap_note(timeline, &record->gap);
  default:
    return 0;
  }
}

/* ---- a part of the branches ---- */

int timeline_part_begin(struct timeline *timeline, uint32_t number, const struct analysis_moment *moment)
{
  struct timeline_stream *stream = &timeline->streams[number];
  struct analysis_call call = {.stream = number, .is_enter = true, .how = ANALYSIS_CALL_START};
  int r = 0;

  analysis_calls_position(timeline->calls, number, &call);
  stream->is_within = true;
  if (moment)
    timeline_moment_reach(timeline, stream, moment);
  timeline_moment_settle(timeline, stream, &call);
  for (size_t i = 0; i < stream->count && r >= 0; i++) {
    struct timeline_frame *frame = &stream->frames[i];

    *frame = (struct timeline_frame){.branch = call.branch,
                                     .instructions = call.instructions,
                                     .taken = call.branch,
                                     .has_moment = call.has_moment,
                                     .moment = call.moment,
                                     .function = frame->function,
                                     .is_cut = true,
                                     .is_shown = frame->is_shown};
    if (!frame->is_shown)
      continue;
    call.function = frame->function;
    call.depth = (uint32_t)i;
    r = timeline_call_count(timeline, &call);
  }
  return r;
}

/* Passes on the branches before number `end`. */
static int part_take(struct timeline *timeline, struct lb_trace_record *record, uint64_t end)
{
  struct lb_trace_record taken = *record;
  struct lb_trace_branches *rest = &record->branches;
  size_t count = end <= rest->first ? 0 : rest->count;

  if (count && end - rest->first < count)
    count = (size_t)(end - rest->first);
  if (!count)
    return 0;
  taken.branches.count = count;
  rest->first += count;
  rest->branches += count;
  rest->count -= count;
  timeline->is_in_branches = true;
  int r = analysis_calls_record(timeline->calls, &taken);
  timeline->is_in_branches = false;
  return r;
}

/* The number of the first branch that is not before an edge of the part. */
static uint64_t part_edge(const struct timeline *timeline, const struct lb_trace_branches *branches, uint64_t branch,
                          uint64_t time)
{
  bool has_time = time && time != UINT64_MAX && timeline->options.reader;

  return has_time ? branches->first + timeline_first_at(timeline->options.reader, branches, time) : branch;
}

/* Passes on the branches before the part, and begins it if there are others. */
static int part_lead(struct timeline *timeline, uint32_t number, struct lb_trace_record *rest)
{
  const struct timeline_options *options = &timeline->options;
  struct analysis_moment moment = {0};
  bool has_moment;
  int r = part_take(timeline, rest, part_edge(timeline, &rest->branches, options->from, options->time_from));

  if (r < 0 || !rest->branches.count)
    return r;
  has_moment = timeline_moment_at(timeline, number, rest->branches.first, &moment);
  if (options->time_from)
    moment.time = options->time_from; /* the thread was there already */
  return timeline_part_begin(timeline, number, has_moment ? &moment : NULL);
}

static int part_branches(struct timeline *timeline, const struct lb_trace_record *record)
{
  const struct timeline_options *options = &timeline->options;
  uint32_t number = record->branches.stream;
  struct lb_trace_record rest = *record;
  int r = 0;

  if (options->stream != LB_TRACE_ALL && options->stream != number)
    return 0;
  if (!timeline->streams[number].is_within)
    r = part_lead(timeline, number, &rest);
  if (r < 0 || timeline->streams[number].is_past || !timeline->streams[number].is_within)
    return r;
  r = part_take(timeline, &rest, part_edge(timeline, &rest.branches, options->to, options->time_to));
  if (r >= 0 && rest.branches.count)
    timeline_part_end(timeline, number, rest.branches.first);
  return r;
}

int timeline_record(struct timeline *timeline, const struct lb_trace_record *record)
{
  const struct trace_stamp *stamp = trace_record_stamp(record);
  int r = stamp ? 0 : record_note(timeline, record);

  if (stamp)
    return timeline->clock ? timeline_stamp_take(timeline, record, stamp) : 0;
  if (r >= 0 && timeline->filter)
    r = analysis_filter_record(timeline->filter, record);
  if (r < 0)
    return r;
  if (record->type == LB_TRACE_STOP &&
      (record->stop.stream >= timeline->count || timeline->streams[record->stop.stream].is_past))
    return 0; /* after the part that is shown */
  return record->type == LB_TRACE_BRANCHES ? part_branches(timeline, record)
                                           : analysis_calls_record(timeline->calls, record);
}

int timeline_end(struct timeline *timeline)
{
  int r = timeline->clock ? analysis_clock_end(timeline->clock) : 0;

  if (r >= 0)
    r = analysis_calls_end(timeline->calls);
  if (r >= 0)
    timeline_events_end(&timeline->events);
  return r < 0 ? r : timeline_store_end(&timeline->store);
}

/* ---- the whole page ---- */

static int filter_init(struct timeline *timeline)
{
  struct analysis_filter_options wanted = {.modules = &timeline->options.module, .module_count = 1};
  int r = analysis_filter_new(&wanted, timeline->options.names, &timeline->filter);

  return r < 0 ? r : analysis_calls_filter_new(timeline->filter, &timeline->calls_filter);
}

int timeline_init(struct timeline *timeline, const struct timeline_options *options)
{
  int r;

  assert(options->names);
  *timeline = (struct timeline){.options = *options, .active = calloc(1, sizeof(*timeline->active))};
  timeline_store_init(&timeline->store, options->blocks, options->merge);
  timeline_events_init(&timeline->events, options->events);
  r = timeline->active ? analysis_stacks_new(&timeline->stacks) : -ENOMEM;
  if (r >= 0 && options->module)
    r = filter_init(timeline);
  if (r >= 0)
    r = analysis_calls_new(options->names, options->code, timeline_call_take, timeline, &timeline->calls);
  if (r >= 0 && options->reader)
    r = timeline_time_init(timeline);
  return r;
}

void timeline_done(struct timeline *timeline)
{
  for (size_t i = 0; i < timeline->count; i++) {
    free(timeline->streams[i].frames);
    free(timeline->streams[i].stack);
  }
  free(timeline->streams);
  stream_list_done(&timeline->list);
  free(timeline->functions);
  if (timeline->active)
    timeline_active_done(timeline->active);
  free(timeline->active);
  analysis_stacks_free(timeline->stacks);
  timeline_store_done(&timeline->store);
  timeline_events_done(&timeline->events);
  free(timeline->gaps);
  free(timeline->source);
  analysis_calls_filter_free(timeline->calls_filter);
  analysis_filter_free(timeline->filter);
  analysis_calls_free(timeline->calls);
  analysis_clock_free(timeline->clock);
}
