/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds a timeline from calls: takes functions as they are entered and left, keeps the stacks, adds up what each
 * function ran, and passes each completed call to timeline_store.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/timeline_inside.h"

static struct timeline_function *function_get(struct timeline *timeline, uint32_t number)
{
  return array_at(&timeline->functions, number, &timeline->function_count, &timeline->function_capacity);
}

/* ---- entering ---- */

/* A branch that enters a function belongs to the caller; one that leaves it belongs to the function. There may be no
 * branch. */
static uint64_t branches_before(const struct analysis_call *call)
{
  return call->branch + (call->from || call->to);
}

/* Counts a call in the part that is shown. */
int timeline_call_count(struct timeline *timeline, const struct analysis_call *call)
{
  struct timeline_function *function = function_get(timeline, call->function);
  int r = function ? analysis_stacks_call(timeline->stacks, call) : -ENOMEM;

  if (r < 0)
    return r;
  timeline->all_calls++;
  function->calls++;
  return timeline_active_add(timeline->active, call->stream, call->function, 1);
}

static int call_enter(struct timeline *timeline, struct timeline_stream *stream, const struct analysis_call *call,
                      bool is_shown)
{
  struct timeline_frame *frame;

  timeline->has_skipped |= call->depth + 1 >= ANALYSIS_CALLS_DEPTH_MAX; /* deeper calls would not be given */
  if (timeline->frames >= TIMELINE_FRAMES_MAX || stream->skipped) {
    stream->skipped++;
    timeline->has_skipped = true;
    return 0;
  }
  frame = array_append(&stream->frames, &stream->count, &stream->capacity);
  if (!frame)
    return -ENOMEM;
  *frame = (struct timeline_frame){
    .branch = call->branch,
    .instructions = call->instructions,
    .taken = branches_before(call),
    .has_moment = call->has_moment,
    .moment = call->moment,
    .function = call->function,
    .is_shown = is_shown,
  };
  timeline->frames++;
  stream->shown += is_shown;
  return stream->is_within && is_shown ? timeline_call_count(timeline, call) : 0;
}

/* ---- leaving ---- */

/* What a call ran, with what it called. */
struct frame_cost {
  uint64_t branches, instructions;
  struct analysis_duration time;
};

static void duration_add(struct analysis_duration *sum, const struct analysis_duration *added)
{
  sum->all += added->all;
  sum->waited += added->waited;
}

/* Adds a call's time without that of its callees. The moment at which a thread lost the processor is known only
 * roughly, so that a call may have more waiting than it has time beside its callees. */
static void duration_add_own(struct analysis_duration *sum, const struct analysis_duration *whole,
                             const struct analysis_duration *inner)
{
  uint64_t all = whole->all > inner->all ? whole->all - inner->all : 0;
  uint64_t waited = whole->waited > inner->waited ? whole->waited - inner->waited : 0;

  sum->all += all;
  sum->waited += waited < all ? waited : all;
}

/* Adds the frame's counts to its function. */
static int function_count(struct timeline *timeline, const struct timeline_frame *frame, uint32_t stream,
                          const struct frame_cost *cost)
{
  struct timeline_function *function = &timeline->functions[frame->function];
  int depth = timeline_active_add(timeline->active, stream, frame->function, -1);

  if (depth < 0)
    return depth;
  function->branches += cost->branches > frame->inner_branches ? cost->branches - frame->inner_branches : 0;
  function->instructions +=
    cost->instructions > frame->inner_instructions ? cost->instructions - frame->inner_instructions : 0;
  duration_add_own(&function->time, &cost->time, &frame->inner_time);
  if (depth == 1) {
    function->all_branches += cost->branches;
    function->all_instructions += cost->instructions;
    duration_add(&function->all_time, &cost->time);
  }
  return 0;
}

/* Adds the frame's counts to its function, if that is shown, and to its caller's calls. */
static int frame_count(struct timeline *timeline, struct timeline_stream *stream, const struct timeline_frame *frame,
                       const struct analysis_call *call)
{
  uint64_t taken = branches_before(call);
  const struct frame_cost cost = {taken > frame->taken ? taken - frame->taken : 0,
                                  call->instructions - frame->instructions,
                                  analysis_moment_since(&frame->moment, &call->moment)};
  int r = frame->is_shown ? function_count(timeline, frame, call->stream, &cost) : 0;

  if (r >= 0 && stream->count) {
    struct timeline_frame *caller = &stream->frames[stream->count - 1];

    caller->inner_branches += cost.branches;
    caller->inner_instructions += cost.instructions;
    duration_add(&caller->inner_time, &cost.time);
  }
  return r;
}

static int frame_show(struct timeline *timeline, const struct timeline_stream *stream,
                      const struct timeline_frame *frame, const struct analysis_call *call)
{
  struct timeline_block block = {
    .start = frame->branch,
    .end = call->branch,
    .start_count = frame->instructions,
    .end_count = call->instructions,
    .start_time = frame->moment.time,
    .end_time = call->moment.time,
    .waited = analysis_moment_since(&frame->moment, &call->moment).waited,
    .held = call->moment.held - frame->moment.held,
    .busy = call->branch - frame->branch,
    .weight = call->branch - frame->branch,
    .calls = 1,
    .stream = call->stream,
    .function = frame->function,
    .how = call->how,
    .flags = (frame->is_cut ? TIMELINE_BEGINS_BEFORE : 0) | (stream->is_past ? TIMELINE_ENDS_BEHIND : 0),
  };

  if (!frame->is_shown)
    return 0;
  if (stream->shown > TIMELINE_DEPTH_MAX) {
    timeline->store.has_deeper = true;
    return 0;
  }
  block.depth = (uint16_t)stream->shown;
  return timeline_store_add(&timeline->store, &block);
}

/* Notes the whole stack at the end, whatever else is shown. */
static int stack_note(struct timeline *timeline, struct timeline_stream *stream, uint32_t function)
{
  if (!function_get(timeline, function))
    return -ENOMEM;
  if (!stream->stack)
    stream->stack = calloc(TIMELINE_STACK_MAX, sizeof(*stream->stack));
  if (!stream->stack)
    return -ENOMEM;
  if (stream->stack_count < TIMELINE_STACK_MAX)
    stream->stack[stream->stack_count] = function;
  stream->stack_count++;
  return 0;
}

/* Counts only grow; if they do not, the call is treated as empty. timeline_moment_settle sees to that for moments. */
static int call_leave(struct timeline *timeline, struct timeline_stream *stream, const struct analysis_call *call,
                      bool is_shown)
{
  struct timeline_frame frame;
  int r = call->how == ANALYSIS_CALL_END && !stream->is_past ? stack_note(timeline, stream, call->function) : 0;

  if (r >= 0 && stream->is_within && is_shown)
    r = analysis_stacks_call(timeline->stacks, call);
  if (r < 0)
    return r;
  if (stream->skipped) {
    stream->skipped--;
    return 0;
  }
  if (!stream->count)
    return 0;
  frame = stream->frames[--stream->count];
  timeline->frames--;
  stream->shown -= frame.is_shown;
  if (call->branch < frame.branch)
    frame.branch = call->branch;
  if (call->instructions < frame.instructions)
    frame.instructions = call->instructions;
  if (!frame.has_moment)
    frame.moment = call->moment;
  if (!stream->is_within)
    return 0;
  r = frame_count(timeline, stream, &frame, call);
  return r < 0 ? r : frame_show(timeline, stream, &frame, call);
}

int timeline_call_take(void *data, const struct analysis_call *taken)
{
  struct timeline *timeline = data;
  struct timeline_stream *stream = timeline_stream_get(timeline, taken->stream);
  struct analysis_call given = *taken, settled = *taken, *call = &settled;
  int shown = timeline->calls_filter ? analysis_calls_filter_take(timeline->calls_filter, timeline->calls, &given) : 1;
  int r;

  if (!stream || shown < 0)
    return -ENOMEM;
  timeline_moment_settle(timeline, stream, call);
  if (call->branch > stream->branches)
    stream->branches = call->branch;
  if (call->instructions > stream->instructions)
    stream->instructions = call->instructions;
  r = call->is_enter ? call_enter(timeline, stream, call, shown) : call_leave(timeline, stream, call, shown);
  return r < 0 ? r : 0;
}
