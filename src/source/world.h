/* SPDX-License-Identifier: Apache-2.0
 *
 * Who runs, and what lies where: processes with their address spaces and threads, as a source tells of them, on their
 * way into a trace. Also the code of a process, by which branches get their kinds. Everything a source finds goes
 * through here, so all of them end in the same records. Memory is bounded: what is beyond the limits is left out and
 * marked as lost.
 */
#ifndef SOURCE_WORLD_H
#define SOURCE_WORLD_H

#include "source/source.h"
#include "symbol/symbol.h"

#define WORLD_TASKS_MAX LB_TRACE_STREAMS_MAX /* processes, threads */
#define WORLD_BATCH 256u                     /* branches of a thread that are kept together */

/* An instruction at an address of a process. */
struct world_instruction {
  uint64_t address;
  uint64_t target; /* of a direct branch, else 0 */
  int kind;        /* enum lb_branch_kind; -1: it goes on with the next */
  uint8_t length;  /* 0: its bytes cannot be read, or are no instruction */
};

struct world_process;

#define WORLD_FRAMES 8u /* handlers of signals in one another that are followed */

/* A handler runs: where the thread goes on behind it. */
struct world_frame {
  uint64_t at;
  uint64_t out; /* or here: where it went into the kernel */
};

/* A thread. Those who follow its branches keep here where it is. */
struct world_thread {
  struct world_thread *link;
  uint32_t number;
  struct world_process *process;
  char name[17];
  bool has_stream;
  uint32_t stream;
  struct lb_branch *batch; /* NULL: none yet */
  size_t count;
  /* Where it is, for flow.c. */
  bool is_at;     /* in user mode, from `at` on */
  bool is_out;    /* in the kernel, which it entered from `from` */
  bool is_begun;  /* it has branches */
  bool is_forked; /* it ran before what it executes: it has branches to come */
  uint64_t at, from;
  struct world_frame frames[WORLD_FRAMES];
  unsigned frame_count;
};

struct world;

/* Bytes of a process, or of the process of a thread. Returns how many there are, at most `size`. */
typedef size_t world_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size);

/* What `sink` points to must stay good. `memory` may be NULL. Returns 0, or -ENOMEM. */
int world_new(const struct source_sink *sink, world_memory *memory, void *data, struct world **ret_world);
void world_free(struct world *world); /* takes NULL */

/* From now on the memory of a process tells its code, again each time: it stands still when it is asked about. Code
 * that changes itself is then read as it runs. */
void world_live(struct world *world);

/* Somebody has run since, and may have changed its code. */
void world_live_again(struct world *world);

/* The functions below return 0; -ENOMEM; what the sink returned; and after that, always the same. */

/* A process executes another program, which has nothing mapped yet. */
int world_exec(struct world *world, uint32_t process, uint32_t thread, const char *name);

/* The same, but of a thread whose branches from before are still to come: it counts, and what is mapped after it, from
 * world_exec_take on. */
int world_exec_later(struct world *world, uint32_t process, uint32_t thread, const char *name);

/* Is there one, of this thread? Then it happens now. Returns false if there was none. */
bool world_exec_take(struct world *world, struct world_thread *thread);
bool world_exec_is_due(const struct world_thread *thread);

/* From here on a piece of a file lies there. A path that is no file's: something else does. */
struct world_map {
  uint64_t address, size, offset;
  const char *path;
};

int world_map(struct world *world, uint32_t process, const struct world_map *map);

/* A new thread: of the process `parent`, or the first of another process, which begins as a copy of it. */
int world_fork(struct world *world, uint32_t process, uint32_t thread, uint32_t parent, uint32_t parent_thread);

int world_name(struct world *world, uint32_t process, uint32_t thread, const char *name);
int world_exit(struct world *world, uint32_t process, uint32_t thread);

/* A signal has come to a thread at `at`, and `handler` is where it goes on: for who does not see it from the branches.
 * The thread need not be known yet. */
void world_signal(struct world *world, uint32_t thread, uint64_t at, uint64_t handler);

/* The first that came to the thread there; those before it are forgotten. Returns false if there was none. */
bool world_signal_is(const struct world *world, const struct world_thread *thread, uint64_t at); /* is there one? */
bool world_signal_take(struct world *world, const struct world_thread *thread, uint64_t at, uint64_t *ret_handler);

/* The thread, which is made if need be. NULL: there are too many, or there is no memory. */
struct world_thread *world_thread(struct world *world, uint32_t process, uint32_t thread);

/* A branch of a thread. Bases, CPLs and widths are set here. */
int world_branch(struct world *world, struct world_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                 unsigned flags);

/* Branches are missing: of one thread, or of all (NULL). */
int world_gap(struct world *world, struct world_thread *thread, enum lb_trace_gap_reason reason, uint64_t count);

/* Gives the sink what is buffered. Returns 0 or negative. */
int world_flush(struct world *world);

/* ---- titles (world_title.c) ---- */

/* Reads what a process is called now. Returns false, touching nothing, if there is no such process. */
typedef bool world_title_read(void *data, uint32_t process, char ret_title[SOURCE_TITLE_MOST]);

/* Sets the function that reads titles. Without one, the trace has none. */
void world_titles(struct world *world, world_title_read *read, void *data);

/* Reads the title of a process, or of all that are known. What was read last goes into the trace at the end of a
 * process's program. */
void world_title_look(struct world *world, uint32_t process);
void world_titles_look(struct world *world);

/* What was read last, or "". */
void world_title(const struct world *world, uint32_t process, char ret_title[SOURCE_TITLE_MOST]);

/* Of all threads that are there. Returns 0 or negative. */
int world_titles_put(struct world *world);

/* ---- code ---- */

/* The bytes at an address as they are now. Returns how many there are, at most `size`. */
size_t world_code(struct world *world, const struct world_thread *thread, uint64_t address, void *buffer, size_t size);

/* What is there; length 0 if that cannot be said. */
struct world_instruction world_instruction(struct world *world, const struct world_thread *thread, uint64_t address);

/* The number of the address space of a thread. */
uint32_t world_space(const struct world_thread *thread);
uint32_t world_number(const struct world_thread *thread); /* the system's number of its process */
bool world_is_32(const struct world_thread *thread);      /* its program is not one of 64 bits */

struct world_counts {
  uint64_t processes, threads; /* whose branches there were */
  uint64_t lost;               /* gaps by loss */
};

struct world_counts world_counts(const struct world *world);

#endif
