/* SPDX-License-Identifier: Apache-2.0
 *
 * The call stack of a stream: the functions that it is in, and the return address of each.
 */
#ifndef ANALYSIS_CALLS_STACK_H
#define ANALYSIS_CALLS_STACK_H

#include <assert.h>

#include "analysis/calls_function.h"

#define FRAMES_MAX (1u << 21) /* frames of all streams together; a stack that would need more is discarded */
#define POINTS_MAX 1024u      /* longjmp targets of one stream; the oldest are forgotten */

struct frame {
  uint64_t back;     /* where the return should lead, */
  uint8_t slack;     /* or up to this many bytes after that, since the length of the call is not known */
  uint8_t how;       /* enum analysis_call_how */
  bool is_far;       /* entered by a signal, interrupt, system call or far call: near returns do not end it */
  bool is_hidden;    /* an entry of the PLT: the frame later becomes the function that the entry stands for */
  uint32_t function; /* number */
  uint64_t branch;   /* number in the stream of the branch that entered it, or its entry in the PLT; or NO_BRANCH */
};

#define NO_BRANCH UINT64_MAX /* branch number of a function that execution fell into from the one before it */

/* The address to which setjmp returned, and its frame. */
struct jump_point {
  uint64_t back;
  uint8_t slack;
  uint32_t frame;
};

struct call_stack {
  uint32_t stream, space;
  struct frame *frames;
  size_t count, capacity;
  uint32_t depth; /* frames that are not hidden */
  struct jump_point *points;
  size_t point_count, point_capacity;
  uint32_t switches; /* returns to unknown places since the stack was begun */
  int64_t patience;  /* frames that may still be searched without a match */
  /* the current branch, and the counts up to it */
  uint64_t branch, from, to;
  uint64_t instructions;
  uint64_t unknown; /* pieces of code of which `instructions` counts only the branch */
  uint64_t at;      /* where the stream is; 0: not known */
};

#define LANDINGS 256u /* places of a hash */

/* The landing pad of an exception that is thrown out of the call before an address. */
struct landing {
  uint64_t back, to; /* 0: nowhere, or not known */
  uint32_t space, generation;
};

struct call_stacks {
  struct called_list *called;
  struct landing landings[LANDINGS];
  analysis_call_function *function;
  void *data;
  size_t frames;                      /* of all */
  const struct analysis_clock *clock; /* NULL: times are not wanted */
  const struct lb_trace_reader *reader;
  bool is_in_branches; /* the reader's last record are branches of the stream */
};

static inline struct frame *call_stack_top(const struct call_stack *stack)
{
  assert(stack->count);
  return &stack->frames[stack->count - 1];
}

/* The functions below return 0, what the caller's function returned, or -ENOMEM. */

/* Enters the function at `target`. The stack must be empty. */
int call_stack_begin(struct call_stacks *stacks, struct call_stack *stack, const struct target *target);

/* Leaves all frames, and forgets where the stream is. */
int call_stack_leave_all(struct call_stacks *stacks, struct call_stack *stack, enum analysis_call_how how);

int call_stack_call(struct call_stacks *stacks, struct call_stack *stack, const struct target *target,
                    const struct frame *frame);

int call_stack_jump(struct call_stacks *stacks, struct call_stack *stack, const struct target *target,
                    bool is_indirect);

/* Execution has fallen through from the end of one function into the next. */
int call_stack_fall(struct call_stacks *stacks, struct call_stack *stack, const struct target *target);

/* A return to where the newest frame expects it is handled at once; any other return starts a search. */
int call_stack_return(struct call_stacks *stacks, struct call_stack *stack, const struct target *target, bool is_far);

static inline bool call_stack_is_expected(const struct call_stack *stack)
{
  const struct frame *frame = &stack->frames[stack->count - 1];

  return stack->to - frame->back <= frame->slack && !frame->is_far && frame->how == ANALYSIS_CALL_CALL;
}

/* Leaves the newest `stack->count - count` frames; those down to `returned` are left by unwinding. */
int call_stack_leave(struct call_stacks *stacks, struct call_stack *stack, size_t count, size_t returned);

void call_stack_done(struct call_stack *stack);

/* ---- for calls_flow.c ---- */

/* The first continues after the branch in a stack whose frames are unknown; the second forgets a whole stack. */
int call_stack_begin_anew(struct call_stacks *stacks, struct call_stack *stack, const struct target *target);
int call_stack_lose(struct call_stacks *stacks, struct call_stack *stack);

/* The newest frame becomes that of another function, to which it jumped; `how` is the reason that is reported. */
int call_stack_replace(struct call_stacks *stacks, struct call_stack *stack, const struct target *target,
                       enum analysis_call_how how);

/* A tail call. If the function is already in the chain of tail calls, it is left and entered again, so that the stack
 * of a program that only jumps from function to function stays bounded. */
int call_stack_tail(struct call_stacks *stacks, struct call_stack *stack, const struct target *target);

/* The oldest frame that the return of the newest will end: itself, or the function that jumped to it. */
size_t call_stack_chain(const struct call_stack *stack);

/* The frame that a longjmp to `to` leads to, or FRAME_NONE. */
size_t call_stack_point(const struct call_stack *stack);

/* ---- searches (calls_search.c): each returns the number of a frame, or FRAME_NONE ---- */

#define FRAME_NONE SIZE_MAX
#define PATIENCE (INT64_C(1) << 20) /* frames that may be searched without a match; calls give some of it back */
#define PATIENCE_LEAST 64           /* this many are always searched */

/* Does the code at `target` belong to the frame's function? */
bool frame_holds(const struct call_stacks *stacks, const struct frame *frame, const struct target *target);

/* The newest frame of the function that `target` is in; where functions are guesses and no open one holds it, the one
 * that begins nearest before it. */
size_t frames_find_holder(const struct call_stacks *stacks, struct call_stack *stack, const struct target *target);

/* The newest frame from whose call an exception would land at `to`. Exact even if a function is on the stack several
 * times. */
size_t frames_find_landing(struct call_stacks *stacks, struct call_stack *stack);

/* The frame of a function that jumped to the newest one, for a return from the latter to the former. */
size_t frames_find_jumper(const struct call_stacks *stacks, const struct call_stack *stack,
                          const struct target *target);

/* The newest frame that expects the return. */
size_t frames_find_expected(struct call_stack *stack, bool is_far);

#endif
