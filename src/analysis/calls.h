/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls: from the branches of a stream to functions that are entered and left, in their order, with the number of
 * branches and instructions at each. What a stack of return addresses would tell, and more: tail calls, stubs of the
 * PLT, signals, longjmp, exceptions.
 */
#ifndef ANALYSIS_CALLS_H
#define ANALYSIS_CALLS_H

#include "analysis/code.h"
#include "analysis/extent.h"

enum report_call_how {
  REPORT_CALL_START,  /* entered: the stream begins, or goes on behind a gap, here */
  REPORT_CALL_CALL,   /* entered by a call, */
  REPORT_CALL_TAIL,   /* by a jump out of another function: who returns from it returns for both, */
  REPORT_CALL_SIGNAL, /* or by a signal, interrupt or exception */
  REPORT_CALL_RETURN, /* left by a return (of its own, or of the function it jumped to), */
  REPORT_CALL_UNWIND, /* by a jump or return to a function further up (longjmp, exceptions), */
  REPORT_CALL_END,    /* because the stream ends, */
  REPORT_CALL_LOST,   /* or because branches are missing here */
};

/* A function is entered or left. */
struct report_call {
  uint32_t stream;
  uint32_t depth; /* 0: the outermost */
  bool is_enter;
  uint8_t how;           /* enum report_call_how */
  uint32_t function;     /* number: report_calls_function */
  uint64_t from, to;     /* the branch that did it, linear; 0: none did */
  uint64_t branch;       /* its number in its stream; if none did, that of the next one */
  uint64_t instructions; /* that the stream has run before it is in, or out of, the function */
  uint64_t unknown;      /* straight pieces among these of which it is not known how many instructions they have */
};

typedef int report_call_function(void *data, const struct report_call *call); /* 0, or negative to stop */

struct report_called {
  const char *symbol, *module;     /* NULL: not known */
  struct report_location location; /* where it begins; by nothing, where it was first entered */
  uint64_t end;                    /* as in struct report_extent */
  uint8_t source;                  /* enum report_extent_source */
};

struct report_calls;

#define REPORT_CALLS_DEPTH_MAX 65536u /* of a stack: deeper calls are followed, but not given */

/* `names` learns of modules from here; `code` NULL: instructions are not counted, which is faster. Returns 0, or
 * -ENOMEM. */
int report_calls_new(struct report_names *names, struct report_code *code, report_call_function *function, void *data,
                     struct report_calls **ret_calls);
void report_calls_free(struct report_calls *calls); /* takes NULL */

/* Takes a record of a trace. Returns 0, what the function returned, or -ENOMEM. */
int report_calls_record(struct report_calls *calls, const struct lb_trace_record *record);

/* Behind the last record: leaves all that was entered. Returns as above. */
int report_calls_end(struct report_calls *calls);

/* How far a stream is: `branch`, the number of its next one, `instructions` and `unknown` of `*call` are set. Zeros for
 * a stream that has had no branch yet. */
void report_calls_position(const struct report_calls *calls, uint32_t stream, struct report_call *call);

/* The function with this number; they are given out from 0 on. Returns false past the last. */
bool report_calls_function(const struct report_calls *calls, uint32_t number, struct report_called *ret_called);

/* Is the function what a word names (filter.h: report_word_names)? */
bool report_called_is(const struct report_calls *calls, const struct report_called *called, const char *word);

/* A function that a stream is in. */
struct report_open_call {
  uint8_t how;     /* enum report_call_how, of how it was entered */
  uint64_t branch; /* number of the branch that called it: with the PLT between them, that to the PLT.
                      REPORT_CALL_START: of the first branch in it. UINT64_MAX: none did, it was fallen into */
};

/* The functions that a stream is in, from 0, the innermost, on. Returns false past the last. */
bool report_calls_open(const struct report_calls *calls, uint32_t stream, size_t number,
                       struct report_open_call *ret_call);

/* Did code run whose instructions are not known? Counts of instructions are then too low: of such a piece only the
 * branch at its end is counted. */
bool report_calls_has_unknown(const struct report_calls *calls);

#endif
