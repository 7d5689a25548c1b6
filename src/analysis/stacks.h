/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of functions and what ran in each: a tree of functions by caller, which flame graphs and profiles are made of.
 * A stack is a number; what it counts is what ran in its innermost function itself.
 */
#ifndef ANALYSIS_STACKS_H
#define ANALYSIS_STACKS_H

#include "analysis/calls.h"
#include "base/base.h"

#define REPORT_STACK_NONE UINT32_MAX /* the caller of the outermost */
#define REPORT_STACK_LEVELS 512u     /* what is deeper counts for these */
#define REPORT_STACKS_MAX (1u << 21) /* different ones; those beyond count for their callers */

struct report_stacks;

/* Returns 0, or -ENOMEM. */
int report_stacks_new(struct report_stacks **ret_stacks);
void report_stacks_free(struct report_stacks *stacks); /* takes NULL */

/* The stack of a function that was called from another stack; without room, that other one. Returns 0, or -ENOMEM. */
int report_stacks_enter(struct report_stacks *stacks, uint32_t caller, uint32_t function, uint32_t *ret_stack);

/* What ran in a function: `unknown` pieces of code are counted in `instructions` by their branch only. */
struct report_cost {
  uint64_t instructions, branches, unknown;
};

/* Counts what ran in the stack's innermost function. REPORT_STACK_NONE counts nothing. */
void report_stacks_add(struct report_stacks *stacks, uint32_t stack, const struct report_cost *cost);

/* Counts calls that made this stack. */
void report_stacks_called(struct report_stacks *stacks, uint32_t stack, uint64_t calls);

/* Does all of this with the calls, as report_calls gives them. Returns 0, or -ENOMEM. */
int report_stacks_call(struct report_stacks *stacks, const struct report_call *call);

struct report_stack {
  uint32_t caller; /* a stack with a lower number, or REPORT_STACK_NONE */
  uint32_t function;
  uint32_t level; /* 0: the outermost */
  uint64_t instructions, branches;
  uint64_t unknown; /* pieces of code whose instructions are not known */
  uint64_t calls;   /* of the innermost function, from this stack of callers */
};

/* The stacks, from 0 on. Returns NULL past the last. */
const struct report_stack *report_stacks_get(const struct report_stacks *stacks, size_t number);

/* How many there are. */
size_t report_stacks_count(const struct report_stacks *stacks);

/* Are some stacks shorter than they were? */
bool report_stacks_is_full(const struct report_stacks *stacks);

/* The functions of a stack, the innermost first. Returns how many there are. */
size_t report_stacks_functions(const struct report_stacks *stacks, uint32_t stack,
                               uint32_t ret_functions[REPORT_STACK_LEVELS]);

/* Appends "a;b;c", the outermost first. Returns 0, or -ENOMEM. */
int report_stacks_fold(const struct report_stacks *stacks, uint32_t stack, const struct report_calls *calls,
                       struct text *text);

/* Appends the name of a function as it is shown: symbol, module+0xADDRESS, or address. Returns 0, or -ENOMEM. */
int report_called_name(const struct report_calls *calls, uint32_t function, struct text *text);

#endif
