/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the page from the calls of a trace: takes functions as they are entered and left, keeps the stacks, adds up
 * what each function ran, and passes each completed call to the timeline (view_store.c).
 */
#include "report/view.h"

#include <errno.h>
#include <stdlib.h>

#include "report/view_page.h"

#define BLOCK_BYTES 9u /* usual size of a block in the page; if the blocks are larger, the timeline is shrunk later */
#define BLOCKS_MAX (3u << 20)         /* limit for any page size, because of memory */
#define PAGE_REST (UINT64_C(3) << 18) /* approximate size of a page without the timeline */

/* ---- streams ---- */

static struct view_stream *stream_get(struct report_view *view, uint32_t number)
{
  while (number >= view->count) {
    struct view_stream *streams = array_grow(view->streams, sizeof(*streams), view->count, &view->capacity);

    if (!streams)
      return NULL;
    view->streams = streams;
    streams[view->count++] = (struct view_stream){.last = {.kind = LB_BRANCH_KINDS}, .is_within = !view->options.from};
  }
  return stream_list_get(&view->list, number) ? &view->streams[number] : NULL;
}

/* ---- functions ---- */

static struct view_function *function_get(struct report_view *view, uint32_t number)
{
  while (number >= view->function_count) {
    struct view_function *functions =
      array_grow(view->functions, sizeof(*functions), view->function_count, &view->function_capacity);

    if (!functions)
      return NULL;
    view->functions = functions;
    functions[view->function_count++] = (struct view_function){0};
  }
  return &view->functions[number];
}

/* ---- entering ---- */

/* A branch that enters a function belongs to the caller; one that leaves it belongs to the function. There may be no
 * branch. */
static uint64_t branches_before(const struct analysis_call *call)
{
  return call->branch + (call->from || call->to);
}

/* Counts a call in the part that is shown. */
static int call_count(struct report_view *view, const struct analysis_call *call)
{
  struct view_function *function = function_get(view, call->function);
  int r = function ? analysis_stacks_call(view->stacks, call) : -ENOMEM;

  if (r < 0)
    return r;
  view->all_calls++;
  function->calls++;
  return view_active_add(&view->active, call->stream, call->function, 1);
}

static int call_enter(struct report_view *view, struct view_stream *stream, const struct analysis_call *call,
                      bool is_shown)
{
  struct view_frame *frames;

  view->has_skipped |= call->depth + 1 >= ANALYSIS_CALLS_DEPTH_MAX; /* deeper calls would not be given */
  if (view->frames >= VIEW_FRAMES_MAX || stream->skipped) {
    stream->skipped++;
    view->has_skipped = true;
    return 0;
  }
  frames = array_grow(stream->frames, sizeof(*frames), stream->count, &stream->capacity);
  if (!frames)
    return -ENOMEM;
  stream->frames = frames;
  frames[stream->count++] = (struct view_frame){
    .branch = call->branch,
    .instructions = call->instructions,
    .taken = branches_before(call),
    .function = call->function,
    .is_shown = is_shown,
  };
  view->frames++;
  stream->shown += is_shown;
  return stream->is_within && is_shown ? call_count(view, call) : 0;
}

/* ---- leaving ---- */

/* Adds the frame's counts to its function. */
static int function_count(struct report_view *view, const struct view_frame *frame, uint32_t stream, uint64_t branches,
                          uint64_t instructions)
{
  struct view_function *function = &view->functions[frame->function];
  int depth = view_active_add(&view->active, stream, frame->function, -1);

  if (depth < 0)
    return depth;
  function->branches += branches > frame->inner_branches ? branches - frame->inner_branches : 0;
  function->instructions += instructions > frame->inner_instructions ? instructions - frame->inner_instructions : 0;
  if (depth == 1) {
    function->all_branches += branches;
    function->all_instructions += instructions;
  }
  return 0;
}

/* Adds the frame's counts to its function, if that is shown, and to its caller's calls. */
static int frame_count(struct report_view *view, struct view_stream *stream, const struct view_frame *frame,
                       const struct analysis_call *call)
{
  uint64_t taken = branches_before(call), branches = taken > frame->taken ? taken - frame->taken : 0;
  uint64_t instructions = call->instructions - frame->instructions;
  int r = frame->is_shown ? function_count(view, frame, call->stream, branches, instructions) : 0;

  if (r >= 0 && stream->count) {
    struct view_frame *caller = &stream->frames[stream->count - 1];

    caller->inner_branches += branches;
    caller->inner_instructions += instructions;
  }
  return r;
}

static int frame_show(struct report_view *view, const struct view_stream *stream, const struct view_frame *frame,
                      const struct analysis_call *call)
{
  struct view_block block = {
    .start = frame->branch,
    .end = call->branch,
    .start_count = frame->instructions,
    .end_count = call->instructions,
    .busy = call->branch - frame->branch,
    .weight = call->branch - frame->branch,
    .calls = 1,
    .stream = call->stream,
    .function = frame->function,
    .how = call->how,
    .flags = (frame->is_cut ? VIEW_BEGINS_BEFORE : 0) | (stream->is_past ? VIEW_ENDS_BEHIND : 0),
  };

  if (!frame->is_shown)
    return 0;
  if (stream->shown > VIEW_DEPTH_MAX) {
    view->store.has_deeper = true;
    return 0;
  }
  block.depth = (uint16_t)stream->shown;
  return view_store_add(&view->store, &block);
}

/* Notes the whole stack at the end, whatever else is shown. */
static int stack_note(struct report_view *view, struct view_stream *stream, uint32_t function)
{
  if (!function_get(view, function))
    return -ENOMEM;
  if (!stream->stack)
    stream->stack = calloc(VIEW_STACK_MAX, sizeof(*stream->stack));
  if (!stream->stack)
    return -ENOMEM;
  if (stream->stack_count < VIEW_STACK_MAX)
    stream->stack[stream->stack_count] = function;
  stream->stack_count++;
  return 0;
}

/* Counts only grow; if they do not, the call is treated as empty. */
static int call_leave(struct report_view *view, struct view_stream *stream, const struct analysis_call *call,
                      bool is_shown)
{
  struct view_frame frame;
  int r = call->how == ANALYSIS_CALL_END && !stream->is_past ? stack_note(view, stream, call->function) : 0;

  if (r >= 0 && stream->is_within && is_shown)
    r = analysis_stacks_call(view->stacks, call);
  if (r < 0)
    return r;
  if (stream->skipped) {
    stream->skipped--;
    return 0;
  }
  if (!stream->count)
    return 0;
  frame = stream->frames[--stream->count];
  view->frames--;
  stream->shown -= frame.is_shown;
  if (call->branch < frame.branch)
    frame.branch = call->branch;
  if (call->instructions < frame.instructions)
    frame.instructions = call->instructions;
  if (!stream->is_within)
    return 0;
  r = frame_count(view, stream, &frame, call);
  return r < 0 ? r : frame_show(view, stream, &frame, call);
}

static int call_take(void *data, const struct analysis_call *call)
{
  struct report_view *view = data;
  struct view_stream *stream = stream_get(view, call->stream);
  struct analysis_call given = *call;
  int shown = view->calls_filter ? analysis_calls_filter_take(view->calls_filter, view->calls, &given) : 1;
  int r;

  if (!stream || shown < 0)
    return -ENOMEM;
  if (call->branch > stream->branches)
    stream->branches = call->branch;
  if (call->instructions > stream->instructions)
    stream->instructions = call->instructions;
  r = call->is_enter ? call_enter(view, stream, call, shown) : call_leave(view, stream, call, shown);
  return r < 0 ? r : 0;
}

/* ---- records ---- */

static int branches_note(struct report_view *view, const struct lb_trace_branches *branches)
{
  struct view_stream *stream = stream_get(view, branches->stream);

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

static int gap_note(struct report_view *view, const struct lb_trace_gap *gap)
{
  struct view_gap *gaps;

  view->has_loss = true;
  view->is_unfinished |= gap->reason == LB_TRACE_CUT;
  if (gap->stream != LB_TRACE_ALL) {
    struct view_stream *stream = stream_get(view, gap->stream);

    if (!stream)
      return -ENOMEM;
    stream->is_cut = true;
  }
  if (view->gap_count >= VIEW_GAPS_MAX) {
    view->gaps_left_out++;
    return 0;
  }
  gaps = array_grow(view->gaps, sizeof(*gaps), view->gap_count, &view->gap_capacity);
  if (!gaps)
    return -ENOMEM;
  view->gaps = gaps;
  gaps[view->gap_count++] = (struct view_gap){gap->stream, gap->reason, gap->first, gap->count};
  return 0;
}

/* "PROCESS signal NUMBER" or "PROCESS exit STATUS". */
static void end_note(struct report_view *view, const char *value)
{
  char *rest;
  unsigned long process = strtoul(value, &rest, 10);

  if (strncmp(rest, " signal ", 8) != 0 || process == 0 || process > UINT32_MAX)
    return;
  view->dead = (uint32_t)process;
  view->signal = (uint32_t)strtoul(rest + 8, NULL, 10) & 0x7F;
}

static int meta_note(struct report_view *view, const struct lb_trace_meta *meta)
{
  static const char *const keys[] = {"producer", "source", "recorder", "sampling", "cpu",
                                     "command",  "host",   "time",     "remark"};
  int r = 0;

  if (!strcmp(meta->key, "end"))
    end_note(view, meta->value);
  if (!strcmp(meta->key, "remark"))
    view->is_unfinished = true;
  if (!strcmp(meta->key, "source") && !view->source && !(view->source = strdup(meta->value)))
    return -ENOMEM;
  for (size_t i = 0; i < sizeof(keys) / sizeof(*keys) && r >= 0; i++)
    if (!strcmp(meta->key, keys[i]) && view->meta.length < 65536) {
      r = text_addf(&view->meta, "%s\"%s\":", view->meta.length ? "," : "", keys[i]);
      if (r >= 0)
        r = view_quote(&view->meta, meta->value);
    }
  return r < 0 ? r : stream_list_meta(&view->list, meta);
}

static int record_note(struct report_view *view, const struct lb_trace_record *record)
{
  switch (record->type) {
  case LB_TRACE_META:
    return meta_note(view, &record->meta);
  case LB_TRACE_STREAM:
    return stream_get(view, record->stream.number) ? stream_list_describe(&view->list, &record->stream) : -ENOMEM;
  case LB_TRACE_BRANCHES:
    return branches_note(view, &record->branches);
  case LB_TRACE_GAP:
    return gap_note(view, &record->gap);
  default:
    return 0;
  }
}

/* ---- a part of the branches ---- */

/* Calls that are open where the part begins are counted and shown from there on. */
static int part_begin(struct report_view *view, uint32_t number, struct view_stream *stream)
{
  struct analysis_call call = {.stream = number, .is_enter = true, .how = ANALYSIS_CALL_START};
  int r = 0;

  analysis_calls_position(view->calls, number, &call);
  stream->is_within = true;
  for (size_t i = 0; i < stream->count && r >= 0; i++) {
    struct view_frame *frame = &stream->frames[i];

    *frame = (struct view_frame){.branch = call.branch,
                                 .instructions = call.instructions,
                                 .taken = call.branch,
                                 .function = frame->function,
                                 .is_cut = true,
                                 .is_shown = frame->is_shown};
    if (!frame->is_shown)
      continue;
    call.function = frame->function;
    call.depth = (uint32_t)i;
    r = call_count(view, &call);
  }
  return r;
}

/* Passes on the branches before number `end`. */
static int part_take(struct report_view *view, struct lb_trace_record *record, uint64_t end)
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
  return analysis_calls_record(view->calls, &taken);
}

static int part_branches(struct report_view *view, const struct lb_trace_record *record)
{
  uint32_t number = record->branches.stream;
  struct lb_trace_record rest = *record;
  int r = 0;

  if (view->options.stream != LB_TRACE_ALL && view->options.stream != number)
    return 0;
  if (!view->streams[number].is_within) {
    r = part_take(view, &rest, view->options.from);
    if (r >= 0 && rest.branches.count)
      r = part_begin(view, number, &view->streams[number]);
  }
  if (r >= 0 && !view->streams[number].is_past)
    r = part_take(view, &rest, view->options.to);
  if (rest.branches.count && view->streams[number].is_within)
    view->streams[number].is_past = true;
  return r;
}

int report_view_record(struct report_view *view, const struct lb_trace_record *record)
{
  int r = record_note(view, record);

  if (r >= 0 && view->filter)
    r = analysis_filter_record(view->filter, record);
  if (r < 0)
    return r;
  if (record->type == LB_TRACE_STOP &&
      (record->stop.stream >= view->count || view->streams[record->stop.stream].is_past))
    return 0; /* after the part that is shown */
  return record->type == LB_TRACE_BRANCHES ? part_branches(view, record) : analysis_calls_record(view->calls, record);
}

int report_view_end(struct report_view *view)
{
  int r = analysis_calls_end(view->calls);

  return r < 0 ? r : view_store_end(&view->store);
}

/* ---- the whole page ---- */

static int filter_init(struct report_view *view)
{
  struct analysis_filter_options wanted = {.modules = &view->options.module, .module_count = 1};
  int r = analysis_filter_new(&wanted, view->options.names, &view->filter);

  return r < 0 ? r : analysis_calls_filter_new(view->filter, &view->calls_filter);
}

int report_view_new(const struct report_view_options *options, struct report_view **ret_view)
{
  struct report_view *view = calloc(1, sizeof(*view));
  uint64_t room = options->size > 2 * PAGE_REST ? options->size - PAGE_REST : PAGE_REST;
  int r;

  if (!view)
    return -ENOMEM;
  view->options = *options;
  view->file = strdup(options->file);
  room /= BLOCK_BYTES;
  view_store_init(&view->store, room < BLOCKS_MAX ? room : BLOCKS_MAX, options->merge);
  r = view->file ? analysis_stacks_new(&view->stacks) : -ENOMEM;
  if (r >= 0)
    r = options->module ? filter_init(view) : 0;
  if (r >= 0)
    r = analysis_calls_new(options->names, options->code, call_take, view, &view->calls);
  if (r < 0) {
    report_view_free(view);
    return r;
  }
  *ret_view = view;
  return 0;
}

void report_view_free(struct report_view *view)
{
  if (!view)
    return;
  for (size_t i = 0; i < view->count; i++) {
    free(view->streams[i].frames);
    free(view->streams[i].stack);
  }
  free(view->streams);
  stream_list_done(&view->list);
  free(view->functions);
  view_active_done(&view->active);
  analysis_stacks_free(view->stacks);
  view_store_done(&view->store);
  free(view->gaps);
  free(view->source);
  text_done(&view->meta);
  text_done(&view->edges);
  text_done(&view->code);
  text_done(&view->totals);
  analysis_calls_filter_free(view->calls_filter);
  analysis_filter_free(view->filter);
  analysis_calls_free(view->calls);
  free(view->file);
  free(view);
}

void report_view_limits(const struct report_view *view, struct report_view_limits *ret_limits)
{
  *ret_limits = (struct report_view_limits){
    .blocks = view->store.count,
    .merge = view->store.merged ? view->store.merge : 0,
    .merged = view->store.merged,
    .calls = view->all_calls,
  };
}

size_t report_view_ran(const struct report_view *view)
{
  return view->ran;
}
