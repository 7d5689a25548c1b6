/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns functions that are entered and left into calls that are shown: --thread, --function, --module and --depth.
 * calls_walk_range.c cuts the branches for --between and --time.
 */
#include "analysis/calls_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/calls_walk_inside.h"

enum { MATCH_NOT_ASKED, MATCH_YES, MATCH_NO };

static int walk_call(void *data, const struct analysis_call *call);
static int walk_syscall(void *data, const struct analysis_syscall *call);

/* --module filters calls as the exports do. With --module, --function does, too. */
static int filter_init(struct calls_walk *walk, struct analysis_names *names)
{
  const struct calls_options *options = walk->options;
  struct analysis_filter_options wanted = {
    .modules = &options->module,
    .module_count = 1,
    .functions = &options->function,
    .function_count = options->function != NULL,
  };
  int r = analysis_filter_new(&wanted, names, &walk->filter);

  return r < 0 ? r : analysis_calls_filter_new(walk->filter, &walk->calls_filter);
}

int calls_walk_init(struct calls_walk *walk, const struct calls_options *options, struct analysis_names *names,
                    struct analysis_code *code, const struct lb_trace_reader *reader)
{
  const struct analysis_clock_listener listener = {walk, walk_syscall, NULL};
  int r;

  *walk = (struct calls_walk){.options = options, .code = code, .reader = reader};
  r = options->module ? filter_init(walk, names) : 0;
  if (r >= 0)
    r = analysis_clock_new(&listener, &walk->clock);
  if (r >= 0)
    r = analysis_calls_new(names, code, walk_call, walk, &walk->calls);
  if (r >= 0)
    analysis_calls_use_clock(walk->calls, walk->clock, reader);
  return r;
}

void calls_walk_done(struct calls_walk *walk)
{
  for (size_t i = 0; i < walk->count; i++)
    free(walk->streams[i].nodes);
  free(walk->streams);
  free(walk->matches);
  analysis_calls_filter_free(walk->calls_filter);
  analysis_filter_free(walk->filter);
  analysis_calls_free(walk->calls);
  analysis_clock_free(walk->clock);
}

bool calls_options_need_times(const struct calls_options *options)
{
  return options->from || options->to || options->by == CALLS_BY_TIME || options->by == CALLS_BY_RUNNING;
}

bool calls_walk_has_times(const struct calls_walk *walk)
{
  return analysis_clock_has_times(walk->clock);
}

/* ---- names ---- */

void calls_names(const struct calls_walk *walk, uint32_t function, const char **ret_symbol, const char **ret_module)
{
  struct analysis_called called = {0};

  analysis_calls_function(walk->calls, function, &called);
  *ret_symbol = called.symbol;
  *ret_module = called.module;
}

int calls_name(const struct calls_walk *walk, uint32_t function, struct text *text)
{
  return analysis_called_name(walk->calls, function, text);
}

int calls_walk_matches(struct calls_walk *walk, uint32_t function, const char *wanted)
{
  struct analysis_called called = {0};

  while (function >= walk->match_count) {
    uint8_t *match = array_append(&walk->matches, &walk->match_count, &walk->match_capacity);

    if (!match)
      return -ENOMEM;
    *match = MATCH_NOT_ASKED;
  }
  if (walk->matches[function] == MATCH_NOT_ASKED) {
    analysis_calls_function(walk->calls, function, &called);
    walk->matches[function] = analysis_called_is(walk->calls, &called, wanted) ? MATCH_YES : MATCH_NO;
  }
  return walk->matches[function] == MATCH_YES;
}

/* ---- calls ---- */

struct calls_stream *calls_stream_get(struct calls_walk *walk, uint32_t number)
{
  while (number >= walk->count) {
    struct calls_stream *stream = array_append(&walk->streams, &walk->count, &walk->capacity);

    if (!stream)
      return NULL;
    *stream = (struct calls_stream){.is_within = !walk->options->first && !walk->options->from};
  }
  return &walk->streams[number];
}

int calls_node_show(struct calls_walk *walk, uint32_t number, struct calls_stream *stream, size_t count)
{
  struct calls_node *node = &stream->nodes[count - 1];

  if (!node->is_inside || node->level >= walk->options->depth || !stream->is_within)
    return 0;
  node->is_shown = true;
  return walk->view.enter(walk->view.data, number, stream->nodes, count);
}

static int node_enter(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_call *call)
{
  struct calls_node *node = array_append(&stream->nodes, &stream->count, &stream->capacity);
  const struct calls_node *parent;
  int r = 1;

  if (!node)
    return -ENOMEM;
  parent = stream->count > 1 ? node - 1 : NULL;
  *node = (struct calls_node){
    .function = call->function,
    .how = call->how,
    .branch = call->branch + (call->from || call->to),
    .instructions_before = call->instructions,
    .unknown_before = call->unknown,
    .has_start = call->has_moment,
    .start = calls_moment(stream, &call->moment),
  };
  if (parent && parent->is_inside)
    node->level = parent->level + 1;
  else if (walk->options->function && !walk->filter)
    r = calls_walk_matches(walk, call->function, walk->options->function);
  node->is_inside = r > 0;
  return r < 0 ? r : calls_node_show(walk, call->stream, stream, stream->count);
}

static void node_count(struct calls_node *node, const struct calls_stream *stream, const struct analysis_call *call)
{
  struct analysis_moment end = calls_moment(stream, &call->moment);
  struct analysis_duration duration = {0};

  if (node->has_start && call->has_moment)
    duration = analysis_moment_since(&node->start, &end);
  node->left = call->how;
  node->cost.branches = call->branch + (call->from || call->to) - node->branch;
  node->cost.instructions = call->instructions - node->instructions_before;
  node->cost.unknown = call->unknown - node->unknown_before;
  node->cost.time = duration.all;
  node->cost.waited = duration.waited;
}

int calls_node_leave(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_call *call)
{
  struct calls_node *node, *parent;
  int r;

  if (!stream->count)
    return 0;
  node = &stream->nodes[stream->count - 1];
  node_count(node, stream, call);
  r = node->is_shown ? walk->view.leave(walk->view.data, call->stream, stream->nodes, stream->count) : 0;
  parent = stream->count > 1 ? node - 1 : NULL;
  if (parent && node->is_shown)
    calls_cost_add(&parent->inner, &node->cost);
  if (parent)
    parent->cost.kernel += node->cost.kernel;
  stream->count--;
  return r;
}

/* Return values go through these two to analysis_calls and analysis_clock, which only negative numbers stop. */
static int walk_return(struct calls_walk *walk, int r)
{
  if (r <= 0)
    return r;
  walk->has_enough = true;
  return -ECANCELED;
}

/* A system call after which the functions change without its return: it has none, as rt_sigreturn and execve. It is
 * shown now, since the function that made it is still open. */
static int call_settle(struct calls_walk *walk, uint32_t number, struct calls_stream *stream)
{
  const struct analysis_syscall *call = analysis_clock_call(walk->clock, number);

  if (!call || stream->has_told)
    return 0;
  stream->has_told = true;
  return calls_syscall_show(walk, stream, call);
}

static int walk_call(void *data, const struct analysis_call *call)
{
  struct calls_walk *walk = data;
  struct calls_stream *stream = calls_stream_get(walk, call->stream);
  struct analysis_call given = *call;
  int r = stream ? call_settle(walk, call->stream, stream) : -ENOMEM;

  if (r)
    return walk_return(walk, r);
  r = walk->calls_filter ? analysis_calls_filter_take(walk->calls_filter, walk->calls, &given) : 1;
  if (r <= 0)
    return r;
  r = call->is_enter ? node_enter(walk, stream, call) : calls_node_leave(walk, stream, call);
  return walk_return(walk, r);
}

static int walk_syscall(void *data, const struct analysis_syscall *call)
{
  struct calls_walk *walk = data;
  struct calls_stream *stream = calls_stream_get(walk, call->stream);

  if (!stream)
    return -ENOMEM;
  if (stream->has_told) {
    stream->has_told = false;
    return 0;
  }
  return walk_return(walk, calls_syscall_show(walk, stream, call));
}

static int walk_result(const struct calls_walk *walk, int r)
{
  return r < 0 && walk->has_enough ? 1 : r;
}

/* ---- records ---- */

/* Whether the instructions after the last branch of a stream are shown. */
static bool stop_is_wanted(const struct calls_walk *walk)
{
  return walk->options->last == UINT64_MAX && !walk->options->to;
}

/* The stream of a record that only belongs to one; LB_TRACE_ALL for others. */
static uint32_t record_stream(const struct lb_trace_record *record)
{
  const struct trace_stamp *stamp = trace_record_stamp(record);

  if (stamp)
    return stamp->stream;
  if (record->type == LB_TRACE_BRANCHES)
    return record->branches.stream;
  return record->type == LB_TRACE_STOP ? record->stop.stream : LB_TRACE_ALL;
}

static int record_take(struct calls_walk *walk, const struct lb_trace_record *record)
{
  if (trace_record_stamp(record))
    return calls_range_stamp(walk, record, trace_record_stamp(record));
  if (record->type == LB_TRACE_BRANCHES)
    return calls_range_branches(walk, record);
  if (record->type == LB_TRACE_STOP && !stop_is_wanted(walk))
    return 0;
  return analysis_calls_record(walk->calls, record);
}

int calls_walk_record(struct calls_walk *walk, const struct lb_trace_record *record)
{
  uint32_t thread = walk->options->thread, stream = record_stream(record);

  if (record->type == LB_TRACE_BRANCHES)
    walk->branches += record->branches.count;
  if (walk->filter && analysis_filter_record(walk->filter, record) < 0)
    return -ENOMEM;
  if (thread != LB_TRACE_ALL && stream != LB_TRACE_ALL && stream != thread)
    return 0;
  return walk_result(walk, record_take(walk, record));
}

int calls_walk_end(struct calls_walk *walk)
{
  int r = analysis_clock_end(walk->clock);

  if (!r)
    r = calls_range_end(walk);
  return walk_result(walk, r ? r : analysis_calls_end(walk->calls));
}
