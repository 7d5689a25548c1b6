/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the frame that a branch leads to: the one that expects the return, the one whose code it is, or the one that
 * catches an exception. An unsuccessful search through a deep stack takes time, and the trace is untrusted: the search
 * is limited.
 */
#include <assert.h>

#include "analysis/calls_landing.h"
#include "analysis/calls_stack.h"

#define REACH (UINT64_C(1) << 20) /* bytes of a function whose range is guessed */

/* ---- the owner of an address ---- */

bool frame_holds(const struct call_stacks *stacks, const struct frame *frame, const struct target *target)
{
  const struct called *whole = &stacks->called->functions[frame->function];
  const struct called *part = &stacks->called->functions[target->function];

  assert(frame->function < stacks->called->count && target->function < stacks->called->count);
  return frame->function == target->function || (target->flags & TARGET_IS_COLD && called_is_part(part, whole));
}

/* Whether the code at `target` may belong to the frame's function after all, because the start and end of both are
 * guesses. */
static bool frame_may_hold(const struct call_stacks *stacks, const struct frame *frame, const struct target *target)
{
  const struct called *whole = &stacks->called->functions[frame->function];
  const struct called *part = &stacks->called->functions[target->function];

  return !((whole->flags | target->flags) & TARGET_IS_EXACT) &&
         whole->called.location.file == part->called.location.file &&
         whole->called.location.space == part->called.location.space;
}

static size_t search_end(const struct call_stack *stack)
{
  return stack->patience > 0 || stack->count < PATIENCE_LEAST ? 0 : stack->count - PATIENCE_LEAST;
}

size_t frames_find_holder(const struct call_stacks *stacks, struct call_stack *stack, const struct target *target)
{
  struct analysis_location at = analysis_names_locate(stacks->called->names, target->space, target->address);
  size_t found = FRAME_NONE, end = search_end(stack);
  uint64_t least = REACH;

  for (size_t i = stack->count; i-- > end;) {
    const struct called *function = &stacks->called->functions[stack->frames[i].function];

    if (stack->frames[i].is_hidden)
      continue;
    if (frame_holds(stacks, &stack->frames[i], target))
      return i;
    if (frame_may_hold(stacks, &stack->frames[i], target) && at.address - function->called.location.address < least) {
      least = at.address - function->called.location.address;
      found = i;
    }
  }
  if (found == FRAME_NONE)
    stack->patience -= (int64_t)(stack->count - end);
  return found;
}

/* ---- exceptions ---- */

/* The linear address where an exception lands that is thrown out of the call before `back`. Returns 0 if there is none
 * or it is unknown. */
static uint64_t landing_of(struct call_stacks *stacks, struct call_stack *stack, uint64_t back)
{
  struct analysis_names *names = stacks->called->names;
  uint32_t generation = analysis_names_generation(names);
  struct landing *landing = &stacks->landings[(back ^ back >> 8) % LANDINGS];
  struct analysis_location location;
  uint64_t address;

  if (landing->back == back && landing->space == stack->space && landing->generation == generation)
    return landing->to;
  stack->patience -= PATIENCE_LEAST;
  *landing = (struct landing){.back = back, .space = stack->space, .generation = generation};
  location = analysis_names_locate(names, stack->space, back - 1);
  if (landing_find(names, &location, &address) > 0)
    landing->to = back - 1 + (address - location.address);
  return landing->to;
}

/* The newest frame from whose call an exception would land at `to`. Exact even if a function is on the stack several
 * times. Returns its number, or FRAME_NONE. */
size_t frames_find_landing(struct call_stacks *stacks, struct call_stack *stack)
{
  size_t end = search_end(stack);

  for (size_t i = stack->count - 1; i-- > end && stack->patience > 0;)
    if (stack->frames[i + 1].how == ANALYSIS_CALL_CALL && !stack->frames[i + 1].is_far &&
        landing_of(stacks, stack, stack->frames[i + 1].back) == stack->to && stack->to)
      return i;
  return FRAME_NONE;
}

/* ---- returns and jumps back ---- */

size_t frames_find_jumper(const struct call_stacks *stacks, const struct call_stack *stack, const struct target *target)
{
  size_t begin = call_stack_chain(stack);

  for (size_t i = stack->count; i-- > begin;)
    if (frame_holds(stacks, &stack->frames[i], target))
      return i;
  return FRAME_NONE;
}

static bool frame_expects(const struct frame *frame, uint64_t to, bool is_far)
{
  return to - frame->back <= frame->slack && frame->is_far == is_far &&
         (frame->how == ANALYSIS_CALL_CALL || frame->how == ANALYSIS_CALL_SIGNAL);
}

size_t frames_find_expected(struct call_stack *stack, bool is_far)
{
  size_t end = search_end(stack);

  for (size_t i = stack->count; i-- > end;)
    if (frame_expects(&stack->frames[i], stack->to, is_far))
      return i;
  stack->patience -= (int64_t)(stack->count - end);
  return FRAME_NONE;
}
