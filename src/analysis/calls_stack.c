/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds and removes frames, and reports this. calls_flow.c finds the frames that a branch concerns.
 */
#include "analysis/calls_stack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define TAILS_MAX 16u /* frames that one return ends; a further one replaces the newest */

void call_stack_done(struct call_stack *stack)
{
  free(stack->frames);
  free(stack->points);
}

/* ---- one frame ---- */

static int stack_tell(struct call_stacks *stacks, const struct call_stack *stack, const struct frame *frame,
                      bool is_enter, enum analysis_call_how how)
{
  bool is_branch = how != ANALYSIS_CALL_START && how != ANALYSIS_CALL_END && how != ANALYSIS_CALL_LOST;
  struct analysis_call call = {
    .stream = stack->stream,
    .depth = stack->depth,
    .is_enter = is_enter,
    .how = (uint8_t)how,
    .function = frame->function,
    .from = is_branch ? stack->from : 0,
    .to = is_branch ? stack->to : 0,
    .branch = stack->branch,
    .instructions = stack->instructions,
    .unknown = stack->unknown,
  };

  if (stack->depth >= ANALYSIS_CALLS_DEPTH_MAX)
    return 0;
  if (stacks->clock && stacks->is_in_branches)
    call.has_moment = analysis_clock_at(stacks->clock, stacks->reader, stack->stream, stack->branch, &call.moment);
  else if (stacks->clock)
    call.has_moment = analysis_clock_last(stacks->clock, stack->stream, &call.moment);
  return stacks->function(stacks->data, &call);
}

static int frame_enter(struct call_stacks *stacks, struct call_stack *stack, const struct frame *frame,
                       enum analysis_call_how how)
{
  int r = stack_tell(stacks, stack, frame, true, how);

  stack->depth++;
  return r;
}

static int frame_leave(struct call_stacks *stacks, struct call_stack *stack, const struct frame *frame,
                       enum analysis_call_how how)
{
  stack->depth--;
  return stack_tell(stacks, stack, frame, false, how);
}

static int frame_add(struct call_stacks *stacks, struct call_stack *stack, const struct frame *frame)
{
  size_t capacity = stack->capacity;
  struct frame *added = array_append(&stack->frames, &stack->count, &stack->capacity);

  if (!added)
    return -ENOMEM;
  stacks->frames += stack->capacity - capacity;
  *added = *frame;
  stack->patience += stack->patience < PATIENCE ? PATIENCE_LEAST : 0;
  return frame->is_hidden ? 0 : frame_enter(stacks, stack, frame, frame->how);
}

/* Removes frames, the newest first. Those from number `returned` on are left by unwinding, the others as `how` says. */
static int frames_take(struct call_stacks *stacks, struct call_stack *stack, size_t count, size_t returned,
                       enum analysis_call_how how)
{
  int r = 0;

  while (stack->count > count && r >= 0) {
    const struct frame *frame = &stack->frames[--stack->count];

    if (!frame->is_hidden)
      r = frame_leave(stacks, stack, frame, stack->count >= returned ? ANALYSIS_CALL_UNWIND : how);
  }
  while (stack->point_count && stack->points[stack->point_count - 1].frame >= stack->count)
    stack->point_count--;
  return r;
}

int call_stack_leave(struct call_stacks *stacks, struct call_stack *stack, size_t count, size_t returned)
{
  assert(count <= stack->count);
  return frames_take(stacks, stack, count, returned, ANALYSIS_CALL_RETURN);
}

int call_stack_leave_all(struct call_stacks *stacks, struct call_stack *stack, enum analysis_call_how how)
{
  int r = frames_take(stacks, stack, 0, SIZE_MAX, how);

  stack->at = 0;
  stack->switches = 0;
  return r;
}

/* ---- targets of longjmp ---- */

size_t call_stack_chain(const struct call_stack *stack)
{
  size_t i = stack->count - 1;

  assert(stack->count);
  while (i && stack->frames[i].how == ANALYSIS_CALL_TAIL)
    i--;
  return i;
}

/* The newest frame is setjmp: it may return once more. */
static int point_add(struct call_stack *stack)
{
  size_t begin = call_stack_chain(stack);
  struct jump_point *point;

  if (!begin)
    return 0;
  if (stack->point_count == POINTS_MAX) {
    stack->point_count--;
    for (size_t i = 0; i < stack->point_count; i++)
      stack->points[i] = stack->points[i + 1];
  }
  point = array_append(&stack->points, &stack->point_count, &stack->point_capacity);
  if (!point)
    return -ENOMEM;
  *point = (struct jump_point){stack->frames[begin].back, stack->frames[begin].slack, (uint32_t)begin - 1};
  return 0;
}

size_t call_stack_point(const struct call_stack *stack)
{
  for (size_t i = stack->point_count; i-- > 0;)
    if (stack->to - stack->points[i].back <= stack->points[i].slack)
      return stack->points[i].frame;
  return FRAME_NONE;
}

/* ---- into a function ---- */

int call_stack_begin(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  struct frame frame = {.how = ANALYSIS_CALL_START, .function = target->function, .branch = stack->branch};

  assert(!stack->count);
  if (!stack->patience)
    stack->patience = PATIENCE;
  return frame_add(stacks, stack, &frame);
}

int call_stack_begin_anew(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  int r;

  stack->branch++;
  r = call_stack_begin(stacks, stack, target);
  stack->branch--;
  return r;
}

int call_stack_lose(struct call_stacks *stacks, struct call_stack *stack)
{
  int r;

  stack->branch++;
  r = call_stack_leave_all(stacks, stack, ANALYSIS_CALL_LOST);
  stack->branch--;
  return r;
}

/* The stack cannot grow any more: the frames below are dropped. */
static int stack_give_up(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  uint64_t at = stack->at;
  int r = call_stack_lose(stacks, stack);

  stacks->frames -= stack->capacity;
  free(stack->frames);
  stack->frames = NULL;
  stack->count = stack->capacity = 0;
  stack->at = at;
  return r < 0 ? r : call_stack_begin_anew(stacks, stack, target);
}

int call_stack_call(struct call_stacks *stacks, struct call_stack *stack, const struct target *target,
                    const struct frame *frame)
{
  struct frame mine = *frame;
  int r;

  if (stack->count == stack->capacity && stacks->frames + stack->capacity > FRAMES_MAX)
    return stack_give_up(stacks, stack, target);
  mine.function = target->function;
  mine.branch = stack->from ? stack->branch : NO_BRANCH;
  mine.is_hidden = (target->flags & TARGET_IS_STUB) != 0;
  r = frame_add(stacks, stack, &mine);
  return r >= 0 && target->flags & TARGET_IS_SETJMP ? point_add(stack) : r;
}

int call_stack_replace(struct call_stacks *stacks, struct call_stack *stack, const struct target *target,
                       enum analysis_call_how how)
{
  struct frame *frame = call_stack_top(stack);
  int r = frame->is_hidden ? 0 : frame_leave(stacks, stack, frame, ANALYSIS_CALL_RETURN);

  frame->function = target->function;
  frame->is_hidden = (target->flags & TARGET_IS_STUB) != 0;
  if (r >= 0 && !frame->is_hidden)
    r = frame_enter(stacks, stack, frame, how);
  return r >= 0 && target->flags & TARGET_IS_SETJMP ? point_add(stack) : r;
}

int call_stack_tail(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  struct frame frame = {.how = ANALYSIS_CALL_TAIL};
  size_t begin = call_stack_chain(stack);
  int r = 0;

  for (size_t i = stack->count; i-- > begin && r >= 0;)
    if (stack->frames[i].function == target->function) {
      r = call_stack_leave(stacks, stack, i + 1, SIZE_MAX);
      return r < 0 ? r : call_stack_replace(stacks, stack, target, ANALYSIS_CALL_TAIL);
    }
  if (stack->count - begin > TAILS_MAX)
    return call_stack_replace(stacks, stack, target, ANALYSIS_CALL_TAIL);
  return call_stack_call(stacks, stack, target, &frame);
}
