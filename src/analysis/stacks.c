/* SPDX-License-Identifier: Apache-2.0
 *
 * A tree of functions by caller. Stacks are looked up by caller and function.
 */
#include "analysis/stacks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* The open functions of a stream. */
struct stack_stream {
  uint32_t *open; /* stacks */
  size_t count, capacity;
  uint64_t branch, instructions; /* everything before these numbers is counted */
  uint64_t unknown;
  bool has_moment;
  struct analysis_moment moment;
};

struct analysis_stacks {
  struct analysis_stack *stacks;
  size_t count, capacity;
  struct hash_index index; /* of stacks by caller and function */
  bool is_full;
  struct stack_stream *streams;
  size_t stream_count, stream_capacity;
};

int analysis_stacks_new(struct analysis_stacks **ret_stacks)
{
  struct analysis_stacks *stacks = calloc(1, sizeof(*stacks));

  if (!stacks)
    return -ENOMEM;
  *ret_stacks = stacks;
  return 0;
}

void analysis_stacks_free(struct analysis_stacks *stacks)
{
  if (!stacks)
    return;
  for (size_t i = 0; i < stacks->stream_count; i++)
    free(stacks->streams[i].open);
  free(stacks->streams);
  free(stacks->stacks);
  hash_index_done(&stacks->index);
  free(stacks);
}

/* ---- the tree ---- */

static bool stack_is(const struct analysis_stacks *stacks, uint32_t stack)
{
  return stack == ANALYSIS_STACK_NONE || stack < stacks->count;
}

static uint64_t stack_hash(uint32_t caller, uint32_t function)
{
  return hash_start((uint64_t)caller << 32 | function);
}

static uint32_t stack_find(const struct analysis_stacks *stacks, uint32_t caller, uint32_t function)
{
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&stacks->index, stack_hash(caller, function), &at)) != HASH_NONE;)
    if (stacks->stacks[number].caller == caller && stacks->stacks[number].function == function)
      break;
  return number;
}

static int stack_add(struct analysis_stacks *stacks, const struct analysis_stack *stack)
{
  struct analysis_stack *added = array_append(&stacks->stacks, &stacks->count, &stacks->capacity);

  if (!added)
    return -ENOMEM;
  if (hash_index_add(&stacks->index, stack_hash(stack->caller, stack->function), stacks->count - 1) < 0) {
    stacks->count--;
    return -ENOMEM;
  }
  *added = *stack;
  return 0;
}

int analysis_stacks_enter(struct analysis_stacks *stacks, uint32_t caller, uint32_t function, uint32_t *ret_stack)
{
  uint32_t level, number;

  assert(stack_is(stacks, caller));
  level = caller == ANALYSIS_STACK_NONE ? 0 : stacks->stacks[caller].level + 1;
  number = stack_find(stacks, caller, function);
  if (number == HASH_NONE && (level >= ANALYSIS_STACK_LEVELS || stacks->count >= ANALYSIS_STACKS_MAX)) {
    stacks->is_full = true;
    number = caller;
  } else if (number == HASH_NONE) {
    number = (uint32_t)stacks->count;
    if (stack_add(stacks, &(struct analysis_stack){.caller = caller, .function = function, .level = level}) < 0)
      return -ENOMEM;
  }
  *ret_stack = number;
  return 0;
}

void analysis_stacks_add(struct analysis_stacks *stacks, uint32_t stack, const struct analysis_cost *cost)
{
  assert(stack_is(stacks, stack));
  if (stack == ANALYSIS_STACK_NONE)
    return;
  stacks->stacks[stack].instructions += cost->instructions;
  stacks->stacks[stack].branches += cost->branches;
  stacks->stacks[stack].unknown += cost->unknown;
  stacks->stacks[stack].time += cost->time;
  stacks->stacks[stack].waited += cost->waited;
}

void analysis_stacks_called(struct analysis_stacks *stacks, uint32_t stack, uint64_t calls)
{
  assert(stack_is(stacks, stack));
  if (stack != ANALYSIS_STACK_NONE)
    stacks->stacks[stack].calls += calls;
}

/* ---- calls ---- */

static struct stack_stream *stream_get(struct analysis_stacks *stacks, uint32_t number)
{
  return array_at(&stacks->streams, number, &stacks->stream_count, &stacks->stream_capacity);
}

static int stream_push(struct analysis_stacks *stacks, struct stack_stream *stream, uint32_t caller, uint32_t function)
{
  uint32_t *open = array_grow(stream->open, sizeof(*open), stream->count, &stream->capacity);
  int r;

  if (!open)
    return -ENOMEM;
  stream->open = open;
  r = analysis_stacks_enter(stacks, caller, function, &open[stream->count]);
  if (r < 0)
    return r;
  if (open[stream->count] != caller) /* without room, it counts as part of its caller */
    analysis_stacks_called(stacks, open[stream->count], 1);
  stream->count++;
  return 0;
}

/* What passed since the last call or return of the stream. */
static struct analysis_duration stream_pass(struct stack_stream *stream, const struct analysis_call *call)
{
  struct analysis_duration passed = {0};

  if (!call->has_moment)
    return passed;
  if (stream->has_moment)
    passed = analysis_moment_since(&stream->moment, &call->moment);
  stream->has_moment = true;
  stream->moment = call->moment;
  return passed;
}

/* Code that ran since the last call or return belongs to the function that was innermost. */
int analysis_stacks_call(struct analysis_stacks *stacks, const struct analysis_call *call)
{
  struct stack_stream *stream = stream_get(stacks, call->stream);
  struct analysis_duration passed;
  uint64_t branch = call->branch + (call->from || call->to); /* the branch belongs to the function it came from */
  uint32_t stack;

  if (!stream)
    return -ENOMEM;
  passed = stream_pass(stream, call);
  stack = stream->count ? stream->open[stream->count - 1] : ANALYSIS_STACK_NONE;
  analysis_stacks_add(stacks, stack,
                      &(struct analysis_cost){.instructions = call->instructions - stream->instructions,
                                              .branches = branch - stream->branch,
                                              .unknown = call->unknown - stream->unknown,
                                              .time = passed.all,
                                              .waited = passed.waited});
  stream->branch = branch;
  stream->instructions = call->instructions;
  stream->unknown = call->unknown;
  if (call->is_enter)
    return stream_push(stacks, stream, stack, call->function);
  stream->count -= stream->count > 0;
  return 0;
}

/* ---- results ---- */

const struct analysis_stack *analysis_stacks_get(const struct analysis_stacks *stacks, size_t number)
{
  return number < stacks->count ? &stacks->stacks[number] : NULL;
}

size_t analysis_stacks_count(const struct analysis_stacks *stacks)
{
  return stacks->count;
}

bool analysis_stacks_is_full(const struct analysis_stacks *stacks)
{
  return stacks->is_full;
}

size_t analysis_stacks_functions(const struct analysis_stacks *stacks, uint32_t stack,
                                 uint32_t ret_functions[ANALYSIS_STACK_LEVELS])
{
  size_t count = 0;

  assert(stack_is(stacks, stack));
  for (; stack != ANALYSIS_STACK_NONE && count < ANALYSIS_STACK_LEVELS; stack = stacks->stacks[stack].caller)
    ret_functions[count++] = stacks->stacks[stack].function;
  return count;
}

int analysis_called_name(const struct analysis_calls *calls, uint32_t function, struct text *text)
{
  struct analysis_called called = {0};

  analysis_calls_function(calls, function, &called);
  if (called.symbol)
    return text_add(text, called.symbol);
  if (!called.module &&
      called.source == ANALYSIS_EXTENT_BY_NOTHING) /* the address where it was first entered is better than nothing */
    called.source = ANALYSIS_EXTENT_BY_CALL;
  return analysis_extent_name(text, called.module, called.location.address, called.source);
}

/* Semicolons in names would be taken as separators of functions. */
int analysis_stacks_fold(const struct analysis_stacks *stacks, uint32_t stack, const struct analysis_calls *calls,
                         struct text *text)
{
  uint32_t functions[ANALYSIS_STACK_LEVELS];
  size_t count = analysis_stacks_functions(stacks, stack, functions);
  int r = 0;

  while (count-- > 0 && r >= 0) {
    size_t start = text->length;

    r = analysis_called_name(calls, functions[count], text);
    for (size_t i = start; r >= 0 && i < text->length; i++)
      if (text->data[i] == ';')
        text->data[i] = ':';
    if (r >= 0 && count)
      r = text_add(text, ";");
  }
  return r;
}
