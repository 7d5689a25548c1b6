/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of `lbr record`: the program, the trace, and the state of both.
 */
#ifndef SESSION_RECORD_H
#define SESSION_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/trace.h"
#include "process/process.h"
#include "session/attach.h"
#include "session/program.h"
#include "source/source.h"

struct record_session;

/* Shows the progress; `is_over`: removes the progress shown before. Returns true if something is shown now. */
typedef bool record_progress_function(const struct record_session *session, bool is_over);

struct record_arguments {
  const char *output;
  bool is_alone, is_quiet;
  bool is_uncached; /* translations are neither used nor kept */
  enum program_aslr aslr;
  uint64_t ring, limit;
  enum source_kind source;
  uint64_t period;                    /* of --source lbr; 0: not given */
  uint32_t kinds;                     /* likewise */
  char **program;                     /* its words */
  struct attach_list attached;        /* processes that run already; none: `program` is started */
  double seconds;                     /* for which these are recorded, 0: until they end, or lbr is told to */
  const char *trigger;                /* the place around which the branches are wanted; NULL: all of them */
  double slow;                        /* seconds that a call of it takes at least, 0: it need only be reached */
  double before, after;               /* seconds before and after that moment; before 0: as many as there are */
  record_progress_function *progress; /* NULL: progress is not wanted */
};

/* Runs a program and records it. Returns the exit status: the program's, or one of program.h after a message; if a
 * signal killed the program, lbr dies by the same signal. */
int record_run(const struct record_arguments *arguments);

enum { RECORD_SLOWDOWN = 64 }; /* bytes of the text about the slowdown */

struct record_session {
  const char *output;                 /* name of the trace */
  record_progress_function *progress; /* NULL: progress is not wanted */
  bool is_quiet, is_alone;
  struct process process;
  struct lb_trace_writer *writer; /* NULL once it is closed */
  struct process_drain *drain;
  const struct process_drain_state *state;
  bool has_ended; /* the program itself has ended; `status` is then that of waitpid(2) */
  int status;
  bool is_over;                   /* no process of the run is left, not even one that outlived the program */
  struct lb_trace_size size;      /* of the trace when it was closed */
  char slowdown[RECORD_SLOWDOWN]; /* of the program until then */
  int close_error;                /* of the trace */
  bool is_dropped;                /* the trace was removed: the program could not be run */
};

/* Removes the unfinished trace after the program could not be run. An older trace of the same name stays. */
void record_session_drop(struct record_session *session);

/* ", about 2.5 times slower": an estimate of how much longer the program takes than natively, so far. "": there is no
 * estimate (yet). */
void record_slowdown(const struct record_session *session, char text[RECORD_SLOWDOWN]);

/* The same for processes that run already. Returns the exit status: 0, or one of program.h after a message. */
int record_attach(const struct record_arguments *arguments);

/* Runs a program or attaches, and records the branches around a trigger. Returns the exit status: that of the program;
 * with processes that run already 0, 1: the trigger was not reached; or one of program.h after a message. */
int record_trigger(const struct record_arguments *arguments);

/* Records the processes for a moment: `seconds` of the arguments, into a new file. The signals of relay_start end it.
 * Returns 0, or -errno after a message. */
int record_burst(const struct record_arguments *arguments, const char *name);

/* The parts of record_run and record_session_run that record_attach needs, too: opens the trace of this name, closes
 * it, and shows what is in it. */
char *record_output_name(const struct record_arguments *arguments, char *const *words); /* NULL: no memory */
int record_open(const char *name, struct lb_trace_writer **ret_writer);
void record_session_close(struct record_session *session);
void record_totals_show(const struct record_session *session);

/* A line about the progress, from time to time. */
struct record_progress {
  bool is_shown;
  double next;
};

void record_progress_begin(struct record_progress *progress);
void record_progress_tell(struct record_progress *progress, const struct record_session *session, double now);
void record_progress_hide(struct record_progress *progress, const struct record_session *session);

/* Reaps children that have ended, and notes it if the program is among them. */
void record_session_reap(struct record_session *session);

/* Runs until the program has ended and, if they are recorded, all processes that outlive it. The trace is closed then.
 */
void record_session_run(struct record_session *session);

#endif
