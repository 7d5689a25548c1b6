/* SPDX-License-Identifier: Apache-2.0
 *
 * The timeline of a trace: its calls as blocks, with their place on axes of branches, of instructions and, if the trace
 * has times, of time; system calls, signals and waits; what each function and each stack ran; and how each stream
 * ended. timeline.c takes the records, timeline_time.c the stamps among them, timeline_calls.c the calls that are made
 * of them; timeline_store.c keeps the blocks, timeline_events.c the events.
 */
#ifndef ANALYSIS_TIMELINE_H
#define ANALYSIS_TIMELINE_H

#include "analysis/calls.h"
#include "analysis/calls_filter.h"
#include "analysis/stacks.h"
#include "analysis/streams.h"
#include "analysis/timeline_events.h"
#include "analysis/timeline_store.h"

#define TIMELINE_GAPS_MAX 1000u /* that are shown */
#define TIMELINE_STACK_MAX 64u  /* frames of the end of a stream that are listed */

/* A function's numbers; by its number. */
struct timeline_function {
  uint64_t calls;
  uint64_t branches, instructions;         /* in itself, */
  uint64_t all_branches, all_instructions; /* and with what it called, recursion counted once */
  struct analysis_duration time, all_time; /* likewise */
};

struct timeline_stream {
  bool is_within, is_past;       /* the part that is shown has begun; it has ended */
  struct timeline_frame *frames; /* the calls that run */
  size_t count, capacity;
  size_t shown;                      /* of these */
  uint32_t skipped;                  /* deeper ones for which there was no room */
  uint64_t branches, instructions;   /* counts at its end, as far as known */
  uint64_t seen;                     /* branches that are in the trace */
  struct lb_branch last;             /* of kind LB_BRANCH_KINDS: there is none */
  bool is_cut;                       /* it ends with a gap */
  bool has_read;                     /* the CPU time was read: */
  bool has_time;                     /* the next two moments are known: */
  struct analysis_moment begin, now; /* where the shown part of the stream begins, and how far it has come */
  uint64_t read_time, read_waited;   /* when the CPU time was last read, and `waited` then */
  bool is_in_call;                   /* a system call is under way, */
  uint64_t call_start;               /* since this time */
  uint32_t *stack;                   /* functions at the end, the innermost first */
  size_t stack_count;
};

struct timeline_gap {
  uint32_t stream;
  uint8_t reason;
  uint64_t first, count;
};

struct timeline_options {
  struct analysis_names *names;
  struct analysis_code *code;           /* NULL: instructions are not counted */
  const struct lb_trace_reader *reader; /* where the records come from, if it was asked for stamps; NULL: no times */
  const char *module;                   /* functions of this one only (analysis_module_is), or NULL */
  uint32_t stream;                      /* this one only, or LB_TRACE_ALL, */
  uint64_t from, to; /* and its branches from `from` up to, but not including, `to`; 0 and UINT64_MAX for all */
  uint64_t time_from, time_to; /* likewise for the nanoseconds since the start of the recording; either this or a part
                                  of the branches */
  uint64_t merge;              /* merge calls of fewer branches even if there is room */
  size_t blocks;               /* most blocks, */
  size_t events;               /* and most events of each kind; 0: no limit but TIMELINE_EVENTS_MAX */
};

struct timeline_active;

struct timeline {
  struct timeline_options options;
  struct analysis_calls *calls;
  struct stream_list list;
  struct timeline_stream *streams; /* by number, as in the list */
  size_t count, capacity;
  bool has_skipped; /* calls were too deep to be followed */
  struct timeline_function *functions;
  size_t function_count, function_capacity;
  uint64_t all_calls;
  struct analysis_stacks *stacks;
  struct timeline_store store;
  bool has_times;
  uint64_t time_end; /* time of the last stamp of the trace, shown or not */
  struct timeline_events events;
  struct timeline_gap *gaps;
  size_t gap_count, gap_capacity;
  uint64_t gaps_left_out;
  bool has_loss, is_unfinished; /* the end marker is missing, or the recorder gave up */
  char *source;                 /* meta "source" */
  uint32_t dead;                /* process that a signal ended, 0: none is known, */
  uint32_t signal;              /* and which */
  /* The members below are private. */
  struct analysis_filter *filter;             /* of options.module, or NULL */
  struct analysis_calls_filter *calls_filter; /* with `filter`: lets calls of that module pass */
  struct timeline_active *active;             /* functions that run */
  struct analysis_clock *clock;               /* with options.reader */
  bool is_in_branches;                        /* a record of branches is being taken */
  size_t frames;                              /* of all streams */
};

/* The options are copied; what they point to must stay valid. Returns 0, or -ENOMEM; timeline_done in either case. */
int timeline_init(struct timeline *timeline, const struct timeline_options *options);
void timeline_done(struct timeline *timeline);

/* Takes the records of the trace. For a part of a trace, the branches before the part tell which calls are open when it
 * begins. Returns 0, or -ENOMEM. */
int timeline_record(struct timeline *timeline, const struct lb_trace_record *record);

/* To be called after the last record. Returns 0, or -ENOMEM. */
int timeline_end(struct timeline *timeline);

/* Index of the first branch of the record that `reader` gave last that is not before a time; their number if there is
 * none. */
size_t timeline_first_at(const struct lb_trace_reader *reader, const struct lb_trace_branches *branches, uint64_t time);

/* ---- how each stream ended (timeline_ending.c) ---- */

enum timeline_end_how {
  TIMELINE_END_UNKNOWN, /* recording ended before the thread, or nothing is known about it */
  TIMELINE_END_EXIT,    /* in a system call */
  TIMELINE_END_DIED,
  TIMELINE_END_STOPPED, /* with its process, which another thread ended */
  TIMELINE_END_FAULT,   /* the last branch of a processor is the delivery of a fault */
};

/* The end of a stream: its last branch, and its code. */
struct timeline_ending {
  const struct timeline_stream *stream;
  const struct analysis_stream *about;
  struct analysis_location from, to; /* of the last branch, if there is one */
  bool is_call;                      /* a system call */
  bool is_nowhere;                   /* the last branch leads to an address without code */
  bool is_unsure;                    /* another thread may have died instead */
  enum timeline_end_how how;
  uint32_t signal; /* that ended it, 0: none, or it is not known */
};

/* The ends of all streams, after timeline_end. The caller frees the array. Returns 0, or -ENOMEM. */
int timeline_endings(struct timeline *timeline, struct timeline_ending **ret_endings);

#endif
