/* SPDX-License-Identifier: Apache-2.0
 *
 * Inverts a tree of stacks. A caller has a lower number than the stacks that it called.
 */
#include "analysis/callers.h"

#include <errno.h>
#include <stdlib.h>

/* A stack with everything that it called. */
struct whole {
  struct analysis_cost cost; /* inclusive */
  bool is_wanted;            /* the innermost function matches the request */
  bool is_within;            /* a caller of it matches the request */
};

static void cost_add(struct analysis_cost *into, const struct analysis_cost *cost)
{
  into->instructions += cost->instructions;
  into->branches += cost->branches;
  into->unknown += cost->unknown;
  into->time += cost->time;
  into->waited += cost->waited;
}

static void wholes_add_up(const struct analysis_stacks *stacks, struct whole *wholes)
{
  for (size_t i = analysis_stacks_count(stacks); i-- > 0;) {
    const struct analysis_stack *stack = analysis_stacks_get(stacks, i);
    const struct analysis_cost own = {
      .instructions = stack->instructions,
      .branches = stack->branches,
      .unknown = stack->unknown,
      .time = stack->time,
      .waited = stack->waited,
    };

    cost_add(&wholes[i].cost, &own);
    if (stack->caller != ANALYSIS_STACK_NONE)
      cost_add(&wholes[stack->caller].cost, &wholes[i].cost);
  }
}

static int wholes_mark(const struct analysis_stacks *stacks, struct whole *wholes, analysis_callers_function *is_wanted,
                       void *data)
{
  const struct analysis_stack *stack;

  for (size_t i = 0; (stack = analysis_stacks_get(stacks, i)); i++) {
    const struct whole *caller = stack->caller == ANALYSIS_STACK_NONE ? NULL : &wholes[stack->caller];
    int r = is_wanted(data, stack->function);

    if (r < 0)
      return r;
    wholes[i].is_wanted = r > 0;
    wholes[i].is_within = caller && (caller->is_wanted || caller->is_within);
  }
  return 0;
}

/* Adds a stack of a wanted function, innermost frame first. */
static int stack_turn(struct analysis_stacks *callers, const struct analysis_stacks *stacks, uint32_t number,
                      const struct whole *whole, uint32_t levels)
{
  uint64_t calls = analysis_stacks_get(stacks, number)->calls;
  uint32_t entry = ANALYSIS_STACK_NONE;

  for (uint32_t level = 0; number != ANALYSIS_STACK_NONE && level <= levels; level++) {
    const struct analysis_stack *stack = analysis_stacks_get(stacks, number);
    uint32_t before = entry;

    if (analysis_stacks_enter(callers, before, stack->function, &entry) < 0)
      return -ENOMEM;
    if (entry == before) /* there is no room for more */
      break;
    analysis_stacks_called(callers, entry, calls);
    if (!whole->is_within)
      analysis_stacks_add(callers, entry, &whole->cost);
    number = stack->caller;
  }
  return 0;
}

int analysis_callers_new(const struct analysis_stacks *stacks, analysis_callers_function *is_wanted, void *data,
                         uint32_t levels, struct analysis_stacks **ret_callers)
{
  size_t count = analysis_stacks_count(stacks);
  struct whole *wholes = calloc(count + 1, sizeof(*wholes));
  struct analysis_stacks *callers = NULL;
  int r = wholes ? analysis_stacks_new(&callers) : -ENOMEM;

  if (r >= 0) {
    wholes_add_up(stacks, wholes);
    r = wholes_mark(stacks, wholes, is_wanted, data);
  }
  for (size_t i = 0; i < count && r >= 0; i++)
    if (wholes[i].is_wanted)
      r = stack_turn(callers, stacks, (uint32_t)i, &wholes[i], levels);
  free(wholes);
  if (r < 0) {
    analysis_stacks_free(callers);
    return r;
  }
  *ret_callers = callers;
  return 0;
}
