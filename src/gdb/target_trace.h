/* SPDX-License-Identifier: Apache-2.0
 *
 * A trace as gdb's target: the threads of one process, each at the address where it ended, and the straight pieces of
 * code between the last branches of a thread.
 */
#ifndef GDB_TARGET_TRACE_H
#define GDB_TARGET_TRACE_H

#include "analysis/analysis.h"
#include "gdb/blocks.h"
#include "gdb/modules.h"
#include "gdb/target.h"

#define GDB_TAIL_MAX 10000000u
#define GDB_TAIL_DEFAULT 100000u

/* A stream of the trace. */
struct gdb_trace_thread {
  uint32_t stream, space, process, thread; /* the last two: the system's numbers */
  uint64_t id;                             /* for gdb */
  char name[32];
  bool is_read;  /* gdb has its history */
  bool is_known; /* the members below are known */
  bool has_died; /* an event without a target ended it: a signal */
  bool is_32;    /* it ended outside 64-bit mode */
  uint64_t rip;  /* where it ended; 0 also if it has no branches */
};

struct gdb_trace {
  struct trace_input input;
  struct analysis_names *names;
  uint64_t tail;
  bool is_process;                  /* a program of Linux, not a machine */
  struct gdb_trace_thread *threads; /* of the process; the chosen one first */
  size_t count, capacity;
  struct gdb_modules modules;
  struct gdb_blocks blocks; /* of one of them: */
  uint64_t loaded;          /* its id; 0: none */
  uint64_t branches;        /* number of branches from which the blocks were made */
};

/* Opens a trace and chooses the thread with the number `stream`; LB_TRACE_ALL: the one that died, or the first. Returns
 * 0, or negative after a message. */
int gdb_trace_open(struct gdb_trace *trace, const char *name, uint32_t stream, uint64_t tail);

/* Closes it, also after a failure. Returns as trace_input_close. */
int gdb_trace_close(struct gdb_trace *trace);

/* The thread with gdb's `id`; its end is known then. NULL: there is none, or it cannot be read. */
struct gdb_trace_thread *gdb_trace_find(struct gdb_trace *trace, uint64_t id);

/* Fills `blocks` with those of a thread. Returns 0, or negative. */
int gdb_trace_load(struct gdb_trace *trace, struct gdb_trace_thread *thread);

/* The bytes at an address of the process that do not change: code, and constants. Returns how many there are, at most
 * `size`. A gdb_code_function with the trace as `data`. */
size_t gdb_trace_code(void *trace, uint64_t address, uint8_t *bytes, size_t size);

/* The trace as a target. */
struct gdb_target gdb_trace_target(struct gdb_trace *trace);

#endif
