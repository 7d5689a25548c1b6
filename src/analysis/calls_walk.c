/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns functions that are entered and left into calls that are shown: --thread, --between, --function, --module and
 * --depth. Branches are cut exactly where --between begins and ends, so that the counts are those of that part.
 */
#include "analysis/calls_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"

enum { MATCH_NOT_ASKED, MATCH_YES, MATCH_NO };

static int walk_call(void *data, const struct analysis_call *call);

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
                    struct analysis_code *code)
{
  int r;

  *walk = (struct calls_walk){.options = options, .code = code};
  r = options->module ? filter_init(walk, names) : 0;
  return r < 0 ? r : analysis_calls_new(names, code, walk_call, walk, &walk->calls);
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

static struct calls_stream *stream_get(struct calls_walk *walk, uint32_t number)
{
  while (number >= walk->count) {
    struct calls_stream *stream = array_append(&walk->streams, &walk->count, &walk->capacity);

    if (!stream)
      return NULL;
    *stream = (struct calls_stream){.is_within = !walk->options->first};
  }
  return &walk->streams[number];
}

static int node_show(struct calls_walk *walk, uint32_t number, struct calls_stream *stream, size_t count)
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
  };
  if (parent && parent->is_inside)
    node->level = parent->level + 1;
  else if (walk->options->function && !walk->filter)
    r = calls_walk_matches(walk, call->function, walk->options->function);
  node->is_inside = r > 0;
  return r < 0 ? r : node_show(walk, call->stream, stream, stream->count);
}

static int node_leave(struct calls_walk *walk, struct calls_stream *stream, const struct analysis_call *call)
{
  struct calls_node *node, *parent;
  int r;

  if (!stream->count)
    return 0;
  node = &stream->nodes[stream->count - 1];
  node->left = call->how;
  node->branches = call->branch + (call->from || call->to) - node->branch;
  node->instructions = call->instructions - node->instructions_before;
  node->unknown = call->unknown - node->unknown_before;
  r = node->is_shown ? walk->view.leave(walk->view.data, call->stream, stream->nodes, stream->count) : 0;
  parent = stream->count > 1 ? node - 1 : NULL;
  if (parent && node->is_shown) {
    parent->inner_branches += node->branches;
    parent->inner_instructions += node->instructions;
    parent->inner_unknown += node->unknown;
  }
  stream->count--;
  return r;
}

/* Return values go through here to analysis_calls, which only negative numbers stop. */
static int walk_call(void *data, const struct analysis_call *call)
{
  struct calls_walk *walk = data;
  struct calls_stream *stream = stream_get(walk, call->stream);
  struct analysis_call given = *call;
  int r = walk->calls_filter ? analysis_calls_filter_take(walk->calls_filter, walk->calls, &given) : 1;

  if (r <= 0 || !stream)
    return r < 0 || !stream ? -ENOMEM : 0;
  r = call->is_enter ? node_enter(walk, stream, call) : node_leave(walk, stream, call);
  if (r <= 0)
    return r;
  walk->has_enough = true;
  return -ECANCELED;
}

static int walk_result(const struct calls_walk *walk, int r)
{
  return r < 0 && walk->has_enough ? 1 : r;
}

/* ---- where --between begins and ends ---- */

/* Calls that are open where --between begins are shown from there on. */
static int stream_begin(struct calls_walk *walk, uint32_t number, struct calls_stream *stream)
{
  struct analysis_call now;
  int r = 0;

  analysis_calls_position(walk->calls, number, &now);
  stream->is_within = true;
  for (size_t i = 0; i < stream->count && !r; i++) {
    stream->nodes[i].branch = now.branch;
    stream->nodes[i].instructions_before = now.instructions;
    stream->nodes[i].unknown_before = now.unknown;
    r = node_show(walk, number, stream, i + 1);
  }
  return r;
}

static int stream_end(struct calls_walk *walk, uint32_t number, struct calls_stream *stream)
{
  struct analysis_call call = {.stream = number, .how = ANALYSIS_CALL_END};
  int r = 0;

  analysis_calls_position(walk->calls, number, &call);
  while (stream->count && !r)
    r = node_leave(walk, stream, &call);
  stream->is_past = true;
  return r;
}

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

static int walk_branches(struct calls_walk *walk, const struct lb_trace_record *record)
{
  const struct calls_options *options = walk->options;
  uint32_t number = record->branches.stream;
  struct calls_stream *stream = stream_get(walk, number);
  struct lb_trace_record rest = *record;
  int r = 0;

  if (!stream)
    return -ENOMEM;
  if (stream->is_past)
    return 0;
  if (!stream->is_within) {
    r = branches_before(walk, &rest, options->first);
    if (r >= 0 && rest.branches.count)
      r = stream_begin(walk, number, &walk->streams[number]);
  }
  if (!r && rest.branches.count)
    r = branches_before(walk, &rest, options->last == UINT64_MAX ? UINT64_MAX : options->last + 1);
  if (!r && rest.branches.count)
    r = stream_end(walk, number, &walk->streams[number]);
  return r;
}

/* ---- records ---- */

/* Whether the instructions after the last branch of a stream are shown. */
static bool stop_is_wanted(const struct calls_walk *walk, uint32_t stream)
{
  const struct calls_options *options = walk->options;

  return (options->thread == LB_TRACE_ALL || options->thread == stream) && options->last == UINT64_MAX;
}

int calls_walk_record(struct calls_walk *walk, const struct lb_trace_record *record)
{
  uint32_t thread = walk->options->thread;

  if (record->type == LB_TRACE_STOP && !stop_is_wanted(walk, record->stop.stream))
    return 0;
  if (walk->filter && analysis_filter_record(walk->filter, record) < 0)
    return -ENOMEM;
  if (record->type != LB_TRACE_BRANCHES)
    return walk_result(walk, analysis_calls_record(walk->calls, record));
  walk->branches += record->branches.count;
  if (thread != LB_TRACE_ALL && record->branches.stream != thread)
    return 0;
  if (!walk->options->first && walk->options->last == UINT64_MAX)
    return walk_result(walk, analysis_calls_record(walk->calls, record));
  return walk_result(walk, walk_branches(walk, record));
}

int calls_walk_end(struct calls_walk *walk)
{
  return walk_result(walk, analysis_calls_end(walk->calls));
}
