/* SPDX-License-Identifier: Apache-2.0
 *
 * A run of `lbr run`: its arguments (cmd_run.c), the program while it runs (run_watch.c), the reports about it
 * (run_report.c), names for addresses (run_names.c), and branches as a processor's LBR would hold them (run_lbr.c).
 */
#ifndef SESSION_RUN_H
#define SESSION_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "process/process.h"
#include "session/attach.h"
#include "session/program.h"
#include "source/source.h"

enum { RUN_SLOTS = 4096 };

#define RUN_STACK_BRANCHES (1u << 20) /* for call stacks, of all threads of a report together */

struct run_arguments {
  uint64_t last;            /* number of branches of a thread that are shown, */
  uint64_t kept;            /* and the least number that is kept */
  const struct lb_cpu *cpu; /* NULL: all branches, not those that a processor keeps */
  const char *filter;       /* fields of its filter register; NULL: none */
  bool wants_all_threads, is_always, is_alone, is_mangled;
  bool is_uncached; /* translations are neither used nor kept */
  enum program_aslr aslr;
  int exit_code;         /* exit status that is reported, -1: none */
  int signal;            /* signal that requests a report on the running program, 0: none */
  double timeout;        /* seconds, 0: none */
  bool is_gdb;           /* a dying process is shown in gdb before it is gone, */
  const char *gdb_place; /* where gdb connects; NULL: lbr starts gdb */
  char **program;        /* its words */
  enum source_kind source;
  struct attach_list attached; /* processes that run already; none: `program` is started */
  bool is_snapshot;            /* of these: one report, and lbr leaves them */
};

struct run_source;
struct run_session;

/* Shows a debugger a process in which a thread has died, then lets the process end. It was launched with is_held. */
typedef void run_debug_function(struct run_session *session, const struct process_thread *thread);

/* Shows the reports. Each function returns 0, or negative after a message: the report cannot be written. */
struct run_reporter {
  void *data; /* passed to the functions */
  int (*report)(void *data, const struct analysis_death *death, const struct analysis_places *places);
  int (*no_names)(void *data); /* no address of the last report had a name */
};

struct run_session {
  const struct run_arguments *arguments;
  struct run_reporter reporter;
  struct run_source *source; /* NULL: the software source; else only the number in `process` is used */
  struct process process;
  run_debug_function *debug;    /* NULL: deaths are only reported */
  bool is_timed_out;            /* --timeout has passed, and the program was told to end */
  bool is_broken;               /* a report could not be written, and that was reported */
  uint64_t reported[RUN_SLOTS]; /* by slot: serial + 1 of the thread whose death was reported */
};

/* ---- all of it (run_start.c) ---- */

/* Starts the program, waits for its end and reports. Returns the exit status: the program's, 1 if the report could not
 * be written, or one of program.h after a message; if a signal killed the program, lbr dies by the same signal. */
int run_session_run(struct run_session *session);

/* The same for processes that run already. Returns the exit status: 0, or one of program.h after a message.
 * run_attach.c
 */
int run_attach(struct run_session *session);

/* The size in bytes of a log part that holds this many branches. Gives a message if none is large enough. */
uint32_t run_part_size(uint64_t branches);

/* ---- the program while it runs (run_watch.c) ---- */

/* Waits for the end of the program; meanwhile, forwards signals and reports deaths. Returns the status of waitpid(2),
 * or -errno. */
int run_watch(struct run_session *session);
/* ---- reports (run_report.c) ---- */

/* Has a child of the program died because the user typed Ctrl-C or a similar key? That is how a user ends a command of
 * a shell. */
bool run_report_is_typed(const struct run_session *session, uint32_t process, int signal, int code);

/* How many branches of each thread a report reads, for a number of threads. */
size_t run_report_most(const struct run_arguments *arguments, size_t threads);

/* Reports the processes that a signal killed since the last call. */
void run_report_deaths(struct run_session *session);

/* Reports the running program, all threads. */
void run_report_alive(struct run_session *session);

/* To be called when the program has ended: reports the remaining deaths, and what the user asked for. */
void run_report_end(struct run_session *session, int status);

/* Hand a report to the reporter; the second says that no address had a name. */
void run_report_put(struct run_session *session, const struct analysis_death *seen,
                    const struct analysis_places *places);
void run_report_no_names(struct run_session *session);

/* ---- other sources (run_source.c) ---- */

/* Starts the program. Returns 0, or the exit status after a message; run_source_free in either case. */
int run_source_start(struct run_session *session, const char *path);

/* Records for a moment, and reports deaths. Returns 1 with the status of waitpid(2) when the program has ended; else 0.
 */
int run_source_wait(struct run_session *session, int *ret_status);

void run_source_alive(struct run_session *session);           /* as run_report_alive */
void run_source_end(struct run_session *session, int status); /* as run_report_end */
void run_source_free(struct run_source *source);              /* takes NULL */

/* ---- panics (run_panic.c) ---- */

/* Does the runtime of some language end a program with this status when it panics? */
bool run_panic_is_likely(int status);

/* The language whose panic ended the thread's program with this status, and the number of the thread's branches before
 * the panic began. NULL: none. */
const char *run_panic_find(const struct analysis_thread *thread, const struct analysis_places *places,
                           const char *program, int status, size_t *ret_count);

/* ---- names (run_names.c) ---- */

struct run_names;

/* Makes names from the mappings that are known now; `is_mangled`: C++ names as the files have them. The process must
 * stay valid. Returns 0 or -ENOMEM. */
int run_names_new(const struct process *process, bool is_mangled, struct run_names **ret_names);
void run_names_free(struct run_names *names); /* takes NULL */

const struct analysis_places *run_names_places(const struct run_names *names);

/* Path of the program of an address space, "" if it is not known. */
const char *run_names_program(struct run_names *names, uint32_t space);

/* Were addresses in a program looked up, and was no symbol found for any of them? Libraries do not count. */
bool run_names_are_missing(const struct run_names *names);

/* ---- the LBR of a processor (run_lbr.c) ---- */

/* Makes a recorder that is switched on, with the filter. Reports errors by message(). Returns 0 or negative. */
int run_lbr_new(const struct run_arguments *arguments, struct lb_recorder **ret_recorder);

/* Gives branches to the recorder. */
void run_lbr_feed(struct lb_recorder *recorder, const struct lb_branch *branches, size_t count);

#endif
