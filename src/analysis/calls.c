/* SPDX-License-Identifier: Apache-2.0
 *
 * Turns branches into calls: calls_edge.c determines the meaning of a branch, calls_stack.c changes the stack.
 */
#include "analysis/calls.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "analysis/calls_edge.h"
#include "analysis/calls_stack.h"
#include "analysis/filter.h"

#define CALL_SHORTEST 2u /* bytes of a call */

struct analysis_calls {
  struct analysis_names *names;
  struct analysis_code *code;
  struct called_list called;
  struct call_stacks stacks;
  struct call_stack *streams;
  size_t count, capacity;
  struct calls_edges edges;
};

int analysis_calls_new(struct analysis_names *names, struct analysis_code *code, analysis_call_function *function,
                       void *data, struct analysis_calls **ret_calls)
{
  struct analysis_calls *calls = calloc(1, sizeof(*calls));

  assert(names && function);
  if (!calls)
    return -ENOMEM;
  *calls = (struct analysis_calls){
    .names = names,
    .code = code,
    .stacks = {.called = &calls->called, .function = function, .data = data},
  };
  if (called_list_init(&calls->called, names) < 0 || calls_edges_init(&calls->edges, names, code, &calls->called) < 0) {
    analysis_calls_free(calls);
    return -ENOMEM;
  }
  *ret_calls = calls;
  return 0;
}

void analysis_calls_use_clock(struct analysis_calls *calls, const struct analysis_clock *clock,
                              const struct lb_trace_reader *reader)
{
  calls->stacks.clock = clock;
  calls->stacks.reader = reader;
}

void analysis_calls_free(struct analysis_calls *calls)
{
  if (!calls)
    return;
  for (size_t i = 0; i < calls->count; i++)
    call_stack_done(&calls->streams[i]);
  free(calls->streams);
  calls_edges_done(&calls->edges);
  called_list_done(&calls->called);
  free(calls);
}

/* ---- the effect of a branch ---- */

/* The number of instructions of a piece before `first`. If they are unknown it is 0: only the branch is counted then,
 * and it comes after `first`. */
static uint32_t fall_count(struct analysis_calls *calls, const struct edge_known *edge, uint64_t first)
{
  unsigned count = calls->code ? analysis_code_count(calls->code, edge->space, edge->start, first) : 0;

  return count && count <= edge->instructions ? count - 1 : 0;
}

/* Execution has fallen through into another function before the branch. */
static int edge_fall(struct analysis_calls *calls, struct call_stack *stack, const struct edge_known *edge)
{
  struct call_stack before = *stack;
  const struct called *function;
  struct analysis_location at;
  struct target target;
  uint64_t first;
  int r = called_list_find(&calls->called, edge->space, edge->from, false, &target);

  if (r < 0)
    return r;
  assert(target.function < calls->called.count);
  function = &calls->called.functions[target.function];
  at = analysis_names_locate(calls->names, edge->space, edge->from);
  first = edge->from - (at.address - function->start);
  if (first <= edge->start || first > edge->from)
    return 0;
  stack->from = stack->to = 0;
  stack->instructions -= edge->instructions - fall_count(calls, edge, first);
  r = call_stack_fall(&calls->stacks, stack, &target);
  stack->from = before.from;
  stack->to = before.to;
  stack->instructions = before.instructions;
  stack->unknown += edge->is_unknown; /* the piece is a part of both functions */
  return r;
}

static int edge_call(struct analysis_calls *calls, struct call_stack *stack, const struct edge_known *edge,
                     const struct target *target)
{
  struct frame frame = {.back = edge->from + CALL_SHORTEST, .slack = INSTRUCTION_MAX - CALL_SHORTEST};

  frame.how = edge->action == EDGE_EVENT ? ANALYSIS_CALL_SIGNAL : ANALYSIS_CALL_CALL;
  frame.is_far = edge->action != EDGE_CALL;
  if (edge->length) {
    frame.back = edge->from + edge->length;
    frame.slack = 0;
  } else if (edge->action == EDGE_EVENT) { /* the instruction may be executed again, or skipped */
    frame.back = edge->from;
    frame.slack = INSTRUCTION_MAX;
  }
  return call_stack_call(&calls->stacks, stack, target, &frame);
}

static int edge_act(struct analysis_calls *calls, struct call_stack *stack, const struct edge_known *edge)
{
  struct target target = {edge->to, edge->space, edge->generation, edge->function, edge->flags};
  int r = edge->is_falling ? edge_fall(calls, stack, edge) : 0;

  if (r < 0)
    return r;
  switch ((enum edge_action)edge->action) {
  case EDGE_STAY:
    return 0;
  case EDGE_CALL:
  case EDGE_EVENT:
  case EDGE_FAR_CALL:
    return edge_call(calls, stack, edge, &target);
  case EDGE_RETURN:
    if (stack->count > 1 && call_stack_is_expected(stack))
      return call_stack_leave(&calls->stacks, stack, stack->count - 1, SIZE_MAX);
    return call_stack_return(&calls->stacks, stack, &target, false);
  case EDGE_FAR_RETURN:
    return call_stack_return(&calls->stacks, stack, &target, true);
  case EDGE_JUMP:
    return call_stack_jump(&calls->stacks, stack, &target, false);
  case EDGE_JUMP_INDIRECT:
    return call_stack_jump(&calls->stacks, stack, &target, true);
  }
  return 0;
}

/* ---- branches ---- */

static int branches_take(struct analysis_calls *calls, struct call_stack *stack, const struct lb_trace_branches *batch)
{
  for (size_t i = 0; i < batch->count; i++) {
    const struct lb_branch *branch = &batch->branches[i];
    uint64_t from = analysis_from(branch), to = analysis_to(branch), start = stack->at;
    struct edge_known *edge = calls_edges_place(&calls->edges, start, from, to);
    int r;

    if (edge->start != start || edge->from != from || edge->to != to || edge->space != stack->space ||
        edge->kind != branch->kind || edge->generation != calls->edges.generation) {
      *edge = (struct edge_known){.start = start, .from = from, .to = to, .space = stack->space, .kind = branch->kind};
      r = calls_edges_learn(&calls->edges, branch, edge);
      if (r < 0)
        return r;
    }
    stack->instructions += edge->instructions;
    stack->unknown += edge->is_unknown;
    stack->at = to;
    if (edge->action == EDGE_STAY && !edge->is_falling)
      continue;
    stack->branch = batch->first + i;
    stack->from = from;
    stack->to = to;
    r = edge_act(calls, stack, edge);
    if (r < 0)
      return r;
    calls_edges_check(&calls->edges);
  }
  stack->branch = batch->first + batch->count;
  return 0;
}

/* The stack of a stream. NULL without memory. */
static struct call_stack *stream_stack(struct analysis_calls *calls, uint32_t stream)
{
  while (stream >= calls->count) {
    struct call_stack *stack = array_append(&calls->streams, &calls->count, &calls->capacity);

    if (!stack)
      return NULL;
    *stack = (struct call_stack){.stream = (uint32_t)calls->count - 1, .space = UINT32_MAX};
  }
  return &calls->streams[stream];
}

static int calls_branches(struct analysis_calls *calls, const struct lb_trace_branches *batch)
{
  struct call_stack *stack = stream_stack(calls, batch->stream);
  struct target target;
  int r = 0;

  if (!stack)
    return -ENOMEM;
  if (!batch->count)
    return 0;
  stack->space = analysis_names_space(calls->names, batch->stream);
  if (!stack->at)
    stack->at = batch->start;
  calls_edges_check(&calls->edges);
  calls->stacks.is_in_branches = true;
  if (!stack->count) {
    stack->branch = batch->first;
    r = called_list_find(&calls->called, stack->space, analysis_from(batch->branches), false, &target);
    if (r >= 0)
      r = call_stack_begin(&calls->stacks, stack, &target);
  }
  if (r >= 0)
    r = branches_take(calls, stack, batch);
  calls->stacks.is_in_branches = false;
  return r;
}

/* ---- other records ---- */

static int calls_gap(struct analysis_calls *calls, const struct lb_trace_gap *gap)
{
  int r = 0;

  for (size_t i = 0; i < calls->count && r >= 0; i++)
    if (gap->stream == LB_TRACE_ALL || gap->stream == i)
      r = call_stack_leave_all(&calls->stacks, &calls->streams[i], ANALYSIS_CALL_LOST);
  return r;
}

/* Takes the instructions from the last branch to the address where the stream stopped. */
static int calls_stop(struct analysis_calls *calls, const struct lb_trace_stop *stop)
{
  struct call_stack *stack = stop->stream < calls->count ? &calls->streams[stop->stream] : NULL;
  unsigned count;

  if (!stack || !stack->at || stack->at >= stop->at || !calls->code)
    return 0;
  count = analysis_code_count(calls->code, stack->space, stack->at, stop->at);
  calls->edges.has_unknown |= !count;
  stack->unknown += !count;
  stack->instructions += count ? count - 1 : 0;
  stack->at = 0;
  return 0;
}

/* A stream that gets a new description begins anew. */
static int calls_stream(struct analysis_calls *calls, const struct lb_trace_stream *stream)
{
  if (stream->number >= calls->count)
    return 0;
  return call_stack_leave_all(&calls->stacks, &calls->streams[stream->number], ANALYSIS_CALL_END);
}

int analysis_calls_record(struct analysis_calls *calls, const struct lb_trace_record *record)
{
  int r;

  if (record->type == LB_TRACE_BRANCHES)
    return calls_branches(calls, &record->branches);
  if (record->type == LB_TRACE_STOP)
    return calls_stop(calls, &record->stop);
  r = analysis_names_record(calls->names, record);
  if (r >= 0 && record->type == LB_TRACE_GAP)
    r = calls_gap(calls, &record->gap);
  if (r >= 0 && record->type == LB_TRACE_STREAM)
    r = calls_stream(calls, &record->stream);
  return r;
}

int analysis_calls_end(struct analysis_calls *calls)
{
  int r = 0;

  for (size_t i = 0; i < calls->count && r >= 0; i++)
    r = call_stack_leave_all(&calls->stacks, &calls->streams[i], ANALYSIS_CALL_END);
  return r;
}

/* ---- results ---- */

void analysis_calls_position(const struct analysis_calls *calls, uint32_t stream, struct analysis_call *call)
{
  const struct call_stack *stack = stream < calls->count ? &calls->streams[stream] : NULL;

  call->branch = stack ? stack->branch : 0;
  call->instructions = stack ? stack->instructions : 0;
  call->unknown = stack ? stack->unknown : 0;
}

bool analysis_calls_open(const struct analysis_calls *calls, uint32_t stream, size_t number,
                         struct analysis_open_call *ret_call)
{
  const struct call_stack *stack = stream < calls->count ? &calls->streams[stream] : NULL;
  const struct frame *frame;

  if (!stack || number >= stack->count)
    return false;
  frame = &stack->frames[stack->count - 1 - number];
  *ret_call = (struct analysis_open_call){.how = frame->how, .branch = frame->branch};
  return true;
}

bool analysis_calls_function(const struct analysis_calls *calls, uint32_t number, struct analysis_called *ret_called)
{
  if (number >= calls->called.count)
    return false;
  *ret_called = calls->called.functions[number].called;
  return true;
}

bool analysis_called_is(const struct analysis_calls *calls, const struct analysis_called *called, const char *word)
{
  struct analysis_extent extent = {
    .symbol = called->symbol,
    .module = called->module,
    .file = called->location.file,
    .space = called->location.space,
    .start = called->source == ANALYSIS_EXTENT_BY_NOTHING ? 0 : called->location.address,
    .end = called->end,
    .source = called->source,
  };

  return analysis_word_names(word, calls->names, &extent);
}

bool analysis_calls_has_unknown(const struct analysis_calls *calls)
{
  return calls->edges.has_unknown;
}
