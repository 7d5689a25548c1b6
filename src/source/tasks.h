/* SPDX-License-Identifier: Apache-2.0
 *
 * The task table, the state of the recorded system: processes with their address spaces and threads, as a source
 * reports them, on their way into a trace; also the code of a process, which gives branches their kinds. Everything
 * that a source finds goes through here, so all sources make the same records. Memory is bounded: anything beyond the
 * limits is left out and marked as lost.
 */
#ifndef SOURCE_TASKS_H
#define SOURCE_TASKS_H

#include "source/source.h"
#include "symbol/symbol.h"

#define TASKS_MAX LB_TRACE_STREAMS_MAX /* processes, threads */
#define TASKS_BATCH 256u               /* branches of a thread that are kept together */

/* An instruction at an address of a process. */
struct task_instruction {
  uint64_t address;
  uint64_t target; /* of a direct branch, else 0 */
  int kind;        /* enum lb_branch_kind; -1: execution continues with the next */
  uint8_t length;  /* 0: its bytes cannot be read, or are no instruction */
};

struct task_process;

#define TASKS_FRAMES 8u /* nested signal handlers that are followed */

/* A running handler: where the thread continues after it. */
struct task_frame {
  uint64_t at;
  uint64_t out; /* or here: where it entered the kernel */
};

/* A thread. The code that follows its branches keeps the thread's position here. */
struct task_thread {
  uint32_t number;
  struct task_process *process;
  char name[17];
  bool has_stream;
  uint32_t stream;
  struct lb_branch *batch; /* NULL: none yet */
  size_t count;
  bool has_time; /* it was seen at `time`, since the start of the recording, on `cpu` */
  uint64_t time;
  uint32_t cpu;
  /* Its position, for flow.c. */
  bool is_at;     /* in user mode, from `at` on */
  bool is_out;    /* in the kernel, which it entered from `from` */
  bool is_begun;  /* it has branches */
  bool is_forked; /* it ran before it executed the program: branches from before are still to come */
  uint64_t at, from;
  struct task_frame frames[TASKS_FRAMES];
  unsigned frame_count;
};

struct tasks;

/* Bytes of a process, or of the process of a thread. Returns how many there are, at most `size`. */
typedef size_t tasks_memory(void *data, uint32_t process, uint64_t address, void *buffer, size_t size);

/* What `sink` points to must stay valid. `memory` may be NULL. Returns 0, or -ENOMEM. */
int tasks_new(const struct source_sink *sink, tasks_memory *memory, void *data, struct tasks **ret_tasks);
void tasks_free(struct tasks *tasks); /* takes NULL */

/* From now on code is read from the memory of a process each time it is needed; the process is stopped then.
 * Self-modifying code is thus read as it runs. */
void tasks_live(struct tasks *tasks);

/* To be called when a thread has run, since it may have changed its code. */
void tasks_live_again(struct tasks *tasks);

/* The functions below return 0; -ENOMEM; or what the sink returned. After a failure they always return the same error.
 */

/* A process executes another program, which has nothing mapped yet. */
int tasks_exec(struct tasks *tasks, uint32_t process, uint32_t thread, const char *name);

/* The same, but of a thread whose branches from before are still to come: the execve, and everything that is mapped
 * after it, takes effect with tasks_exec_take. */
int tasks_exec_later(struct tasks *tasks, uint32_t process, uint32_t thread, const char *name);

/* If an execve of this thread is waiting, it takes effect now. Returns false if there was none. */
bool tasks_exec_take(struct tasks *tasks, struct task_thread *thread);
bool tasks_exec_is_due(const struct task_thread *thread);

/* A piece of a file is mapped. A path that is not a file's: something else is mapped there. */
struct task_map {
  uint64_t address, size, offset;
  const char *path;
};

int tasks_map(struct tasks *tasks, uint32_t process, const struct task_map *map);

/* A new thread: of the process `parent`, or the first of another process, which begins as a copy of it. */
int tasks_fork(struct tasks *tasks, uint32_t process, uint32_t thread, uint32_t parent, uint32_t parent_thread);

int tasks_name(struct tasks *tasks, uint32_t process, uint32_t thread, const char *name);
int tasks_exit(struct tasks *tasks, uint32_t process, uint32_t thread);

/* A signal has come to a thread at `at`, which continues at `handler`. For sources whose branches do not show this. The
 * thread need not be known yet. */
void tasks_signal(struct tasks *tasks, uint32_t thread, uint64_t at, uint64_t handler);

/* The first signal that came to the thread at `at`; taking it forgets those before it. Return false if there was none.
 */
bool tasks_signal_is(const struct tasks *tasks, const struct task_thread *thread, uint64_t at); /* is there one? */
bool tasks_signal_take(struct tasks *tasks, const struct task_thread *thread, uint64_t at, uint64_t *ret_handler);

/* The thread, which is created if necessary. NULL: there are too many, or there is no memory. */
struct task_thread *tasks_thread(struct tasks *tasks, uint32_t process, uint32_t thread);

/* A branch of a thread. Bases, CPLs and widths are set here. */
int tasks_branch(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                 unsigned flags);

/* Branches are missing: of one thread, or of all (NULL). */
int tasks_gap(struct tasks *tasks, struct task_thread *thread, enum lb_trace_gap_reason reason, uint64_t count);

#define TASKS_NO_CPU UINT32_MAX

/* A thread was here, after its last branch, at this time, in nanoseconds of CLOCK_MONOTONIC; on this processor, or
 * TASKS_NO_CPU. Or it ends then. Before its first branch, the last such time is when it begins. */
int tasks_time(struct tasks *tasks, struct task_thread *thread, uint64_t time, uint32_t cpu);
int tasks_time_end(struct tasks *tasks, struct task_thread *thread, uint64_t time, uint32_t cpu);

/* Times in the trace begin with this one. Call it before the first. */
void tasks_clock(struct tasks *tasks, uint64_t start);

/* Passes the buffered branches to the sink. Returns 0 or negative. */
int tasks_flush(struct tasks *tasks);

/* ---- titles (tasks_title.c) ---- */

/* Reads the current title of a process. Returns false, touching nothing, if there is no such process. */
typedef bool tasks_title_read(void *data, uint32_t process, char ret_title[SOURCE_TITLE_MOST]);

/* Sets the function that reads titles. Without one, the trace has none. */
void tasks_titles(struct tasks *tasks, tasks_title_read *read, void *data);

/* Reads the title of a process, or of all that are known. The title that was read last goes into the trace when the
 * process's program ends. */
void tasks_title_look(struct tasks *tasks, uint32_t process);
void tasks_titles_look(struct tasks *tasks);

/* The title that was read last, or "". */
void tasks_title(const struct tasks *tasks, uint32_t process, char ret_title[SOURCE_TITLE_MOST]);

/* Puts the titles of all present threads into the trace. Returns 0 or negative. */
int tasks_titles_put(struct tasks *tasks);

/* ---- code ---- */

/* The bytes at an address as they are now. Returns how many there are, at most `size`. */
size_t tasks_code(struct tasks *tasks, const struct task_thread *thread, uint64_t address, void *buffer, size_t size);

/* The instruction there; length 0 if it is not known. */
struct task_instruction tasks_instruction(struct tasks *tasks, const struct task_thread *thread, uint64_t address);

/* The number of the address space of a thread. */
uint32_t tasks_space(const struct task_thread *thread);
uint32_t tasks_number(const struct task_thread *thread); /* the system's number of its process */
bool tasks_is_32(const struct task_thread *thread);      /* its program is not a 64-bit one */

struct task_counts {
  uint64_t processes, threads; /* those that had branches */
  uint64_t lost;               /* gaps by loss */
};

struct task_counts tasks_counts(const struct tasks *tasks);

#endif
