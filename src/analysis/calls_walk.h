/* SPDX-License-Identifier: Apache-2.0
 *
 * The calls of a trace that the user wants, each with its cost, as input for the views of `lbr calls`.
 */
#ifndef ANALYSIS_CALLS_WALK_H
#define ANALYSIS_CALLS_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/calls.h"
#include "analysis/code.h"
#include "analysis/filter.h"
#include "analysis/stacks.h"
#include "analysis/trace_input.h"
#include "base/base.h"

/* What calls are weighed by. */
enum calls_by {
  CALLS_BY_INSTRUCTIONS,
  CALLS_BY_BRANCHES,
  CALLS_BY_TIME,
  CALLS_BY_RUNNING, /* time without that in which the thread did not run */
};

struct calls_options {
  uint32_t thread;        /* LB_TRACE_ALL: all */
  uint32_t depth;         /* levels that are shown */
  const char *function;   /* NULL: all; else only the calls inside this function */
  const char *module;     /* NULL: all; else functions of other modules are left out */
  const char *callers;    /* NULL, or the function of --callers, */
  uint32_t caller_levels; /* and how many levels of them; 0: the default */
  uint64_t first, last;   /* branches of a thread */
  uint64_t from, to;      /* the span of time, in nanoseconds; `to` 0: no end */
  uint64_t limit;         /* lines; UINT64_MAX: as many as there are */
  enum calls_by by;
  bool has_no_syscalls; /* system calls are not shown */
};

/* A call that is open. */
struct calls_node {
  uint32_t function;
  uint8_t how, left; /* enum analysis_call_how: entered and, in the end, left */
  bool is_shown;     /* it was given to the view */
  bool is_inside;    /* of --function */
  uint32_t level;    /* among those that are shown, 0: outermost */
  uint32_t mark;     /* the view's own */
  bool has_start;    /* `start` is known: the moment when it was entered */
  uint64_t branch;   /* number of the first branch in it */
  uint64_t instructions_before, unknown_before;
  struct analysis_moment start;
  /* when it is left: */
  struct analysis_cost cost;  /* of it and all that it called */
  struct analysis_cost inner; /* of these, in calls that are shown */
};

/* Callbacks that receive the calls. All return 0 to continue, 1 to stop early, or a negative error. */
struct calls_view {
  /* `nodes` are the open calls of the stream; the newest is the last of them. */
  int (*enter)(void *data, uint32_t stream, struct calls_node *nodes, size_t count);
  int (*leave)(void *data, uint32_t stream, struct calls_node *nodes, size_t count);
  void *data;
  /* A system call has ended that the newest open call made. Its paths are valid in the callback only. NULL: system
   * calls are not wanted. */
  int (*syscall)(void *data, uint32_t level, const struct analysis_syscall *call);
};

struct calls_stream {
  struct calls_node *nodes;
  size_t count, capacity;
  bool is_within;                        /* --between, --time: the stream has reached the range */
  bool is_past;                          /* and has left it again */
  bool has_told;                         /* the system call that is under way was shown */
  uint64_t waited_outside, held_outside; /* of the moments: was counted within the range, and belongs outside of it */
};

struct calls_walk {
  const struct calls_options *options;
  struct calls_view view;
  struct analysis_calls *calls;
  const struct analysis_code *code;
  struct analysis_clock *clock;
  const struct lb_trace_reader *reader;
  struct analysis_filter *filter;             /* of --module, or NULL */
  struct analysis_calls_filter *calls_filter; /* with `filter`: lets calls of that module pass, inside --function */
  struct calls_stream *streams;
  size_t count, capacity;
  uint8_t *matches; /* of --function or --callers, for each number */
  size_t match_count, match_capacity;
  uint64_t branches; /* read so far */
  bool has_enough;   /* the view wants no more */
};

/* The options, `names` and `reader` must stay valid. The reader was asked for stamps. The caller sets the view. Returns
 * 0, or -ENOMEM. */
int calls_walk_init(struct calls_walk *walk, const struct calls_options *options, struct analysis_names *names,
                    struct analysis_code *code, const struct lb_trace_reader *reader);
void calls_walk_done(struct calls_walk *walk);

/* Takes a record. Returns 0, 1 when nothing more is wanted, or negative. */
int calls_walk_record(struct calls_walk *walk, const struct lb_trace_record *record);

/* To be called after the last record. Returns as above. */
int calls_walk_end(struct calls_walk *walk);

/* Is this the function of --function or --callers? Returns 1, 0, or -ENOMEM. */
int calls_walk_matches(struct calls_walk *walk, uint32_t function, const char *wanted);

/* Appends the name of a function as it is shown: symbol, module+0xADDRESS, or address. Returns 0, or -ENOMEM. */
int calls_name(const struct calls_walk *walk, uint32_t function, struct text *text);

/* Its symbol, or NULL, and its module, or NULL. */
void calls_names(const struct calls_walk *walk, uint32_t function, const char **ret_symbol, const char **ret_module);

/* The first call of a function, in one stream or LB_TRACE_ALL (calls_first.c). Rewinds the reader. Returns 0, or
 * negative after a message, for example if there is no such call. */
int analysis_calls_first(struct trace_input *input, const char *name, uint32_t stream, struct analysis_call *ret_call);

/* Do the options need times? Have there been any? */
bool calls_options_need_times(const struct calls_options *options);
bool calls_walk_has_times(const struct calls_walk *walk);

static inline void calls_cost_add(struct analysis_cost *into, const struct analysis_cost *cost)
{
  into->instructions += cost->instructions;
  into->branches += cost->branches;
  into->unknown += cost->unknown;
  into->time += cost->time;
  into->waited += cost->waited;
  into->kernel += cost->kernel;
}

/* The cost of a call without the calls that it made. Times of a damaged trace need not add up. */
static inline struct analysis_cost calls_cost_own(const struct calls_node *node)
{
  const struct analysis_cost *all = &node->cost, *inner = &node->inner;
  uint64_t time = all->time > inner->time ? all->time - inner->time : 0;
  uint64_t waited = all->waited > inner->waited ? all->waited - inner->waited : 0;

  return (struct analysis_cost){
    .instructions = all->instructions - inner->instructions,
    .branches = all->branches - inner->branches,
    .unknown = all->unknown - inner->unknown,
    .time = time,
    .waited = waited < time ? waited : time,
    .kernel = all->kernel > inner->kernel ? all->kernel - inner->kernel : 0,
  };
}

/* The weight of a cost, in the unit of --by. */
static inline uint64_t calls_weight(const struct calls_walk *walk, const struct analysis_cost *cost)
{
  switch (walk->options->by) {
  case CALLS_BY_BRANCHES:
    return cost->branches;
  case CALLS_BY_TIME:
    return cost->time;
  case CALLS_BY_RUNNING:
    return cost->time - cost->waited;
  default:
    return cost->instructions;
  }
}

/* The cost of a stack. */
static inline struct analysis_cost calls_cost_of(const struct analysis_stack *stack)
{
  return (struct analysis_cost){
    .instructions = stack->instructions,
    .branches = stack->branches,
    .unknown = stack->unknown,
    .time = stack->time,
    .waited = stack->waited,
  };
}

#endif
