/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the kinds of sources share: source.c starts one of them and calls its functions.
 */
#ifndef SOURCE_SOURCE_INSIDE_H
#define SOURCE_SOURCE_INSIDE_H

#include "source/id_table.h"
#include "source/kernel.h"
#include "source/tasks.h"

struct source_functions {
  /* The child waits before execve: attach to it. Returns 0, or negative with the problem. */
  int (*attach)(struct source *source, struct source_problem *ret_problem);
  /* The child has executed the program: does what must come first. Returns 0, or negative. */
  int (*begin)(struct source *source);
  int (*step)(struct source *source, unsigned milliseconds, bool is_all);
  /* A child that ended or, if it is traced, stopped. */
  void (*waited)(struct source *source, int process, int status);
  const char *(*sampling)(const struct source *source);
  void (*free)(struct source *source);
};

extern const struct source_functions source_perf_functions, source_step_functions;

#define SOURCE_DEATHS_MAX 64u /* deaths that were not fetched yet */

struct source {
  const struct source_functions *functions;
  const struct source_kernel *kernel;
  struct source_options options;
  struct tasks *tasks;
  struct source_state state;
  struct source_death deaths[SOURCE_DEATHS_MAX];
  size_t death_count, death_taken;
  uint64_t start;         /* of the recording */
  uint64_t titles_looked; /* when */
  void *data;             /* the kind's own */
};

/* The process of a thread, from proc(5); 0: the thread is gone. */
uint32_t source_thread_process(const struct source *source, int thread);

/* Reaps all children that have ended. Returns how many there were. */
unsigned source_reap(struct source *source);

/* ---- ptrace (watch.c) ---- */

struct watch_thread {
  int signal, code; /* of the last signal that came to it; 0: none */
  uint64_t address;
  bool is_stepped; /* into a handler, from `at` */
  uint64_t at;
};

struct watch {
  struct id_table threads; /* struct watch_thread */
  bool wants_handlers;     /* starts of signal handlers are reported to the task table */
  int bell;                /* a descriptor that can be read when a thread may have stopped; negative: there is none */
  bool has_blocked;        /* SIGCHLD, for the bell */
};

/* Begins to watch a child that waits before execve, and everything that it starts. `bell` must be -1. Returns 0, or
 * -errno. */
int watch_attach(struct watch *watch, int process);

/* Has a thread stopped since the last call? */
bool watch_has_rung(struct watch *watch);

/* A watched thread has stopped: notes a signal that may kill it, and lets it continue. */
void watch_stop(struct watch *watch, struct source *source, int thread, int status);
void watch_done(struct watch *watch);

/* Notes the death of a thread by a signal, with its registers as they are. */
void source_death_add(struct source *source, int thread, int signal, int code, uint64_t address);

#endif
