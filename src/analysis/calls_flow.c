/* SPDX-License-Identifier: Apache-2.0
 *
 * The effect of branches on the stack. A return goes to the newest frame that expects it. A jump to the start of
 * another function is a tail call. A jump or return into the middle of a function further up has left all frames above
 * it: longjmp, or an exception that is caught.
 */
#include <errno.h>

#include "analysis/calls_stack.h"

#define SWITCHES_MAX 64u /* after this many returns to unknown addresses, another stack is assumed */

/* ---- jumps ---- */

static bool target_is_same_file(const struct call_stacks *stacks, const struct frame *frame,
                                const struct target *target)
{
  return stacks->called->functions[frame->function].called.location.file ==
         stacks->called->functions[target->function].called.location.file;
}

/* Leaves an entry of the PLT: to the function, or first to the code at the beginning of the PLT that resolves it. */
static int stack_leave_stub(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  struct frame *frame = call_stack_top(stack);

  if (!(target->flags & TARGET_IS_START) && target_is_same_file(stacks, frame, target))
    return 0;
  return call_stack_replace(stacks, stack, target, frame->how);
}

/* A jump to an address that is not the start of a function. */
static int stack_jump_inside(struct call_stacks *stacks, struct call_stack *stack, const struct target *target,
                             bool is_indirect)
{
  size_t i = frames_find_jumper(stacks, stack, target);

  if (i != FRAME_NONE) /* back from a function to the one that jumped to it */
    return call_stack_leave(stacks, stack, i + 1, SIZE_MAX);
  if (is_indirect)
    i = frames_find_landing(stacks, stack);
  if (i == FRAME_NONE && is_indirect && target->flags & TARGET_IS_EXACT)
    i = frames_find_holder(stacks, stack, target);
  if (i != FRAME_NONE)
    return call_stack_leave(stacks, stack, i + 1, 0);
  return target->flags & TARGET_IS_COLD ? 0 : call_stack_tail(stacks, stack, target);
}

/* Whether an indirect jump leaves its function or its file for unknown code. Between code without symbols, such a jump
 * may stay inside a function. */
static bool target_is_strange(const struct call_stacks *stacks, const struct frame *top, const struct target *target)
{
  const struct called *function = &stacks->called->functions[top->function];

  if (target->flags & (TARGET_IS_EXACT | TARGET_IS_START))
    return false;
  return !target_is_same_file(stacks, top, target) || (function->flags & TARGET_IS_EXACT && !top->is_hidden);
}

/* An exception may land at the target. Otherwise a function begins there, because it was not a longjmp. Returns 1 if an
 * exception has landed; 0; or negative. */
static int target_settle(struct call_stacks *stacks, struct call_stack *stack, struct target *target)
{
  size_t found;
  int r;

  if (!target_is_strange(stacks, call_stack_top(stack), target))
    return 0;
  found = frames_find_landing(stacks, stack);
  if (found == FRAME_NONE)
    return called_list_find(stacks->called, target->space, target->address, true, target);
  r = call_stack_leave(stacks, stack, found + 1, 0);
  return r < 0 ? r : 1;
}

int call_stack_jump(struct call_stacks *stacks, struct call_stack *stack, const struct target *where, bool is_indirect)
{
  const struct frame *top = call_stack_top(stack);
  size_t point = is_indirect ? call_stack_point(stack) : FRAME_NONE;
  struct target mine = *where;
  const struct target *target = &mine;
  int r;

  if (point != FRAME_NONE)
    return call_stack_leave(stacks, stack, point + 1, 0);
  r = is_indirect ? target_settle(stacks, stack, &mine) : 0;
  if (r)
    return r < 0 ? r : 0;
  if (top->is_hidden)
    return stack_leave_stub(stacks, stack, target);
  if (top->function == target->function)
    return 0;
  if (!(target->flags & TARGET_IS_START) || target->flags & TARGET_IS_COLD)
    return stack_jump_inside(stacks, stack, target, is_indirect);
  if (stacks->called->functions[top->function].flags & TARGET_IS_RESOLVER)
    return call_stack_replace(stacks, stack, target, top->how);
  return call_stack_tail(stacks, stack, target);
}

int call_stack_fall(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  if (call_stack_top(stack)->is_hidden || frame_holds(stacks, call_stack_top(stack), target))
    return 0;
  return call_stack_tail(stacks, stack, target);
}

/* ---- returns ---- */

/* Of the frames above `found`, those entered by a jump return with it; the others are skipped. */
static int stack_return_from(struct call_stacks *stacks, struct call_stack *stack, size_t found)
{
  size_t skipped = found + 1;

  while (skipped < stack->count && stack->frames[skipped].how == ANALYSIS_CALL_TAIL)
    skipped++;
  return call_stack_leave(stacks, stack, found, skipped);
}

/* No frame expects the return, and the caller of the oldest frame is unknown: the return leads to it. */
static int stack_return_outside(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  int r = call_stack_leave(stacks, stack, 0, SIZE_MAX);

  return r < 0 ? r : call_stack_begin_anew(stacks, stack, target);
}

/* Perhaps a switch to another stack: a coroutine, or another task of a kernel. When that one is left again, the return
 * is found. */
static int stack_switch(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  if (++stack->switches > SWITCHES_MAX) {
    uint64_t at = stack->at;
    int r = call_stack_lose(stacks, stack);

    stack->at = at;
    return r < 0 ? r : call_stack_begin_anew(stacks, stack, target);
  }
  return call_stack_tail(stacks, stack, target);
}

/* A return to a function further up, or to an unknown address. */
static int stack_return_elsewhere(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  size_t found;

  if (!call_stack_chain(stack) && stack->frames[0].how == ANALYSIS_CALL_START)
    return stack_return_outside(stacks, stack, target);
  found = call_stack_point(stack);
  if (found == FRAME_NONE)
    found = frames_find_landing(stacks, stack);
  if (found == FRAME_NONE)
    found = frames_find_holder(stacks, stack, target);
  if (found != FRAME_NONE)
    return call_stack_leave(stacks, stack, found + 1, 0);
  return stack_switch(stacks, stack, target);
}

/* A near return that no frame expects. */
static int stack_stray(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  size_t begin = call_stack_chain(stack);

  if (stack->frames[begin].how == ANALYSIS_CALL_SIGNAL) /* to the code that ends a signal handler */
    return call_stack_leave(stacks, stack, begin + 1, SIZE_MAX);
  if (target->flags & TARGET_IS_START)
    return call_stack_jump(stacks, stack, target, true);
  return stack_return_elsewhere(stacks, stack, target);
}

/* The end of a signal handler that has changed the address at which the program continues. */
static int stack_stray_far(struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  size_t i = stack->count;
  int r;

  while (i > 1 && !stack->frames[i - 1].is_far)
    i--;
  if (i <= 1)
    return stack_return_elsewhere(stacks, stack, target);
  r = stack_return_from(stacks, stack, i - 1);
  return r < 0 ? r : call_stack_jump(stacks, stack, target, true);
}

int call_stack_return(struct call_stacks *stacks, struct call_stack *stack, const struct target *target, bool is_far)
{
  size_t found = frames_find_expected(stack, is_far);

  if (found != FRAME_NONE && found > 0)
    return stack_return_from(stacks, stack, found);
  return is_far ? stack_stray_far(stacks, stack, target) : stack_stray(stacks, stack, target);
}
