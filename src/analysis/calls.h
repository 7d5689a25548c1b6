/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: turns the branches of a stream into functions that are entered and left, in their order, with the number of
 * branches and instructions at each. This is more than a stack of return addresses would tell: it includes tail calls,
 * stubs of the PLT, signals, longjmp and exceptions.
 */
#ifndef ANALYSIS_CALLS_H
#define ANALYSIS_CALLS_H

#include "analysis/clock.h"
#include "analysis/code.h"
#include "analysis/extent.h"

enum analysis_call_how {
  ANALYSIS_CALL_START,  /* entered: the stream begins here, or continues here after a gap */
  ANALYSIS_CALL_CALL,   /* entered by a call, */
  ANALYSIS_CALL_TAIL,   /* by a jump out of another function: its return ends both, */
  ANALYSIS_CALL_SIGNAL, /* or by a signal, interrupt or exception */
  ANALYSIS_CALL_RETURN, /* left by a return (of its own, or of the function it jumped to), */
  ANALYSIS_CALL_UNWIND, /* by a jump or return to a function further up (longjmp, exceptions), */
  ANALYSIS_CALL_END,    /* because the stream ends, */
  ANALYSIS_CALL_LOST,   /* or because branches are missing here */
};

/* A function is entered or left. */
struct analysis_call {
  uint32_t stream;
  uint32_t depth; /* 0: the outermost */
  bool is_enter;
  uint8_t how;           /* enum analysis_call_how */
  uint32_t function;     /* number: analysis_calls_function */
  uint64_t from, to;     /* the branch that entered or left it, linear addresses; 0: no branch did */
  uint64_t branch;       /* number of that branch in its stream; if no branch did, that of the next one */
  uint64_t instructions; /* that the stream has run before the function is entered or left */
  uint64_t unknown;      /* straight pieces of code among these whose number of instructions is not known */
  bool has_moment;       /* `moment` is known: when that was */
  struct analysis_moment moment;
};

typedef int analysis_call_function(void *data, const struct analysis_call *call); /* 0, or negative to stop */

struct analysis_called {
  const char *symbol, *module;       /* NULL: not known */
  struct analysis_location location; /* where it begins; with ANALYSIS_EXTENT_BY_NOTHING, where it was first entered */
  uint64_t end;                      /* as in struct analysis_extent */
  uint8_t source;                    /* enum analysis_extent_source */
};

struct analysis_calls;

#define ANALYSIS_CALLS_DEPTH_MAX 65536u /* frames of a stack; deeper calls are followed, but not reported */

/* The modules of the trace are passed to `names`. If `code` is NULL, instructions are not counted, which is faster.
 * Returns 0, or -ENOMEM. */
int analysis_calls_new(struct analysis_names *names, struct analysis_code *code, analysis_call_function *function,
                       void *data, struct analysis_calls **ret_calls);
void analysis_calls_free(struct analysis_calls *calls); /* takes NULL */

/* Gives calls their moments: `clock` takes each record before analysis_calls_record does, `reader` is the one that the
 * records come from. Both must stay valid. */
void analysis_calls_use_clock(struct analysis_calls *calls, const struct analysis_clock *clock,
                              const struct lb_trace_reader *reader);

/* Takes a record of a trace. Returns 0, what the function returned, or -ENOMEM. */
int analysis_calls_record(struct analysis_calls *calls, const struct lb_trace_record *record);

/* To be called after the last record: leaves all functions that are still open. Returns as above. */
int analysis_calls_end(struct analysis_calls *calls);

/* Gets the position of a stream: sets `branch`, the number of its next branch, `instructions` and `unknown` of `*call`.
 * Zeros for a stream that has had no branch yet. */
void analysis_calls_position(const struct analysis_calls *calls, uint32_t stream, struct analysis_call *call);

/* Gets the function with this number. Numbers begin at 0 and are consecutive. Returns false past the last. */
bool analysis_calls_function(const struct analysis_calls *calls, uint32_t number, struct analysis_called *ret_called);

/* Does a word name this function (filter.h: analysis_word_names)? */
bool analysis_called_is(const struct analysis_calls *calls, const struct analysis_called *called, const char *word);

/* A function that a stream is in. */
struct analysis_open_call {
  uint8_t how;     /* enum analysis_call_how, of how it was entered */
  uint64_t branch; /* number of the branch that called it; for a call through the PLT, that of the branch to the PLT.
                      ANALYSIS_CALL_START: that of the first branch in it. UINT64_MAX: no branch called it, execution
                      fell into it */
};

/* Gets a function that a stream is in; number 0 is the innermost. Returns false past the last. */
bool analysis_calls_open(const struct analysis_calls *calls, uint32_t stream, size_t number,
                         struct analysis_open_call *ret_call);

/* Did code run whose instructions are not known? Counts of instructions are then too low: of such a piece only the
 * branch at its end is counted. */
bool analysis_calls_has_unknown(const struct analysis_calls *calls);

#endif
