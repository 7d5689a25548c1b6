/* SPDX-License-Identifier: Apache-2.0
 *
 * The state of the recorded system: processes with their address spaces and threads, as a source reports them, on their
 * way into a trace; also the code of a process, which gives branches their kinds. Everything that a source finds goes
 * through here, so all sources make the same records. Memory is bounded: anything beyond the limits is left out and
 * marked as lost.
 */
#ifndef SOURCE_TASKS_H
#define SOURCE_TASKS_H

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

#define WORLD_FRAMES 8u /* nested signal handlers that are followed */

/* A running handler: where the thread goes on after it. */
struct world_frame {
  uint64_t at;
  uint64_t out; /* or here: where it went into the kernel */
};

/* A thread. The code that follows its branches keeps the thread's place here. */
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
  bool is_forked; /* it ran before it executed the program: branches from before are still to come */
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

/* From now on code is read from the memory of a process each time it is needed; the process is stopped then.
 * Self-modifying code is thus read as it runs. */
void world_live(struct world *world);

/* A thread has run since, and may have changed its code. */
void world_live_again(struct world *world);

/* The functions below return 0; -ENOMEM; or what the sink returned. After a failure they always return the same error.
 */

/* A process executes another program, which has nothing mapped yet. */
int world_exec(struct world *world, uint32_t process, uint32_t thread, const char *name);

/* The same, but of a thread whose branches from before are still to come: the execve, and everything that is mapped
 * after it, takes effect with world_exec_take. */
int world_exec_later(struct world *world, uint32_t process, uint32_t thread, const char *name);

/* If an execve of this thread is waiting, it takes effect now. Returns false if there was none. */
bool world_exec_take(struct world *world, struct world_thread *thread);
bool world_exec_is_due(const struct world_thread *thread);

/* A piece of a file is mapped. A path that is not a file's: something else is mapped there. */
struct world_map {
  uint64_t address, size, offset;
  const char *path;
};

int world_map(struct world *world, uint32_t process, const struct world_map *map);

/* A new thread: of the process `parent`, or the first of another process, which begins as a copy of it. */
int world_fork(struct world *world, uint32_t process, uint32_t thread, uint32_t parent, uint32_t parent_thread);

int world_name(struct world *world, uint32_t process, uint32_t thread, const char *name);
int world_exit(struct world *world, uint32_t process, uint32_t thread);

/* A signal has come to a thread at `at`, and it goes on at `handler`. For sources whose branches do not show that. The
 * thread need not be known yet. */
void world_signal(struct world *world, uint32_t thread, uint64_t at, uint64_t handler);

/* The first signal that came to the thread at `at`; taking it forgets those before it. Return false if there was none.
 */
bool world_signal_is(const struct world *world, const struct world_thread *thread, uint64_t at); /* is there one? */
bool world_signal_take(struct world *world, const struct world_thread *thread, uint64_t at, uint64_t *ret_handler);

/* The thread, which is created if need be. NULL: there are too many, or there is no memory. */
struct world_thread *world_thread(struct world *world, uint32_t process, uint32_t thread);

/* A branch of a thread. Bases, CPLs and widths are set here. */
int world_branch(struct world *world, struct world_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                 unsigned flags);

/* Branches are missing: of one thread, or of all (NULL). */
int world_gap(struct world *world, struct world_thread *thread, enum lb_trace_gap_reason reason, uint64_t count);

/* Gives the sink what is buffered. Returns 0 or negative. */
int world_flush(struct world *world);

/* ---- titles (tasks_title.c) ---- */

/* Reads the current title of a process. Returns false, touching nothing, if there is no such process. */
typedef bool world_title_read(void *data, uint32_t process, char ret_title[SOURCE_TITLE_MOST]);

/* Sets the function that reads titles. Without one, the trace has none. */
void world_titles(struct world *world, world_title_read *read, void *data);

/* Reads the title of a process, or of all that are known. The title that was read last goes into the trace when the
 * process's program ends. */
void world_title_look(struct world *world, uint32_t process);
void world_titles_look(struct world *world);

/* The title that was read last, or "". */
void world_title(const struct world *world, uint32_t process, char ret_title[SOURCE_TITLE_MOST]);

/* Puts the titles of all present threads into the trace. Returns 0 or negative. */
int world_titles_put(struct world *world);

/* ---- code ---- */

/* The bytes at an address as they are now. Returns how many there are, at most `size`. */
size_t world_code(struct world *world, const struct world_thread *thread, uint64_t address, void *buffer, size_t size);

/* The instruction there; length 0 if it is not known. */
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
