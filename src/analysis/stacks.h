/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks of functions and what ran in each: a tree of functions by caller, which flame graphs and profiles are made of.
 * A stack is a number; its counts are those of its innermost function alone, without callees.
 */
#ifndef ANALYSIS_STACKS_H
#define ANALYSIS_STACKS_H

#include "analysis/calls.h"
#include "base/base.h"

#define ANALYSIS_STACK_NONE UINT32_MAX /* the caller of the outermost */
#define ANALYSIS_STACK_LEVELS 512u     /* deeper calls are counted for the deepest of these */
#define ANALYSIS_STACKS_MAX (1u << 21) /* different stacks; further ones are counted for their callers */

struct analysis_stacks;

/* Returns 0, or -ENOMEM. */
int analysis_stacks_new(struct analysis_stacks **ret_stacks);
void analysis_stacks_free(struct analysis_stacks *stacks); /* takes NULL */

/* The stack of a function that was called from another stack; if there is no room for it, that other stack. Returns 0,
 * or -ENOMEM. */
int analysis_stacks_enter(struct analysis_stacks *stacks, uint32_t caller, uint32_t function, uint32_t *ret_stack);

/* The cost of a function. Of each of the `unknown` pieces of code, `instructions` counts only the branch. Times are in
 * nanoseconds, and 0 if the trace has none. */
struct analysis_cost {
  uint64_t instructions, branches, unknown;
  uint64_t time;   /* duration, without waiting for the recorder */
  uint64_t waited; /* of that, the thread did not run */
  uint64_t kernel; /* and this much was spent in system calls; analysis_stacks_add does not count it */
};

/* Counts what ran in the stack's innermost function. ANALYSIS_STACK_NONE counts nothing. */
void analysis_stacks_add(struct analysis_stacks *stacks, uint32_t stack, const struct analysis_cost *cost);

/* Counts calls that led to this stack. */
void analysis_stacks_called(struct analysis_stacks *stacks, uint32_t stack, uint64_t calls);

/* Takes a call as analysis_calls gives it, and does all of the above. Returns 0, or -ENOMEM. */
int analysis_stacks_call(struct analysis_stacks *stacks, const struct analysis_call *call);

struct analysis_stack {
  uint32_t caller; /* a stack with a lower number, or ANALYSIS_STACK_NONE */
  uint32_t function;
  uint32_t level; /* 0: the outermost */
  uint64_t instructions, branches;
  uint64_t unknown;      /* pieces of code whose instructions are not known */
  uint64_t time, waited; /* as in struct analysis_cost */
  uint64_t calls;        /* of the innermost function, from this stack of callers */
};

/* The stacks, from 0 on. Returns NULL past the last. */
const struct analysis_stack *analysis_stacks_get(const struct analysis_stacks *stacks, size_t number);

/* How many there are. */
size_t analysis_stacks_count(const struct analysis_stacks *stacks);

/* Are some stacks shorter than in the run, because of a limit? */
bool analysis_stacks_is_full(const struct analysis_stacks *stacks);

/* The functions of a stack, the innermost first. Returns how many there are. */
size_t analysis_stacks_functions(const struct analysis_stacks *stacks, uint32_t stack,
                                 uint32_t ret_functions[ANALYSIS_STACK_LEVELS]);

/* Appends "a;b;c", the outermost first. Returns 0, or -ENOMEM. */
int analysis_stacks_fold(const struct analysis_stacks *stacks, uint32_t stack, const struct analysis_calls *calls,
                         struct text *text);

/* Appends the name of a function as it is shown: symbol, module+0xADDRESS, or address. Returns 0, or -ENOMEM. */
int analysis_called_name(const struct analysis_calls *calls, uint32_t function, struct text *text);

#endif
