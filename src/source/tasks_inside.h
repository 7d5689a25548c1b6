/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of the task table share: a process, and the table.
 */
#ifndef SOURCE_TASKS_INSIDE_H
#define SOURCE_TASKS_INSIDE_H

#include "source/id_table.h"
#include "source/tasks.h"

#define TASKS_MODULES_MAX 16384u /* modules that a copy of a process gets */
#define TASKS_PAGES 4096u        /* of code in no file, of a process */
#define TASKS_PAGE 4096u
#define TASKS_INSTRUCTIONS 16384u /* decoded instructions that are kept for each process */
#define TASKS_LINE 256u           /* bytes that are read at once from a stopped process */

struct task_module {
  uint64_t address, size, offset;
  char *path;
};

/* A page of code that is in no file, as it was when it was read. */
struct task_page {
  uint64_t address;
  uint32_t size; /* 0: it could not be read */
  uint8_t *bytes;
};

/* A pending execve, or a mapping that follows one; all of them are in one list, in their order. */
struct task_later {
  bool is_exec; /* then `path` is its name */
  uint32_t thread;
  struct task_module map;
};

/* An instruction, and the bytes that it was made of. */
struct task_decoded {
  struct task_instruction instruction;
  uint8_t size, bytes[15];
};

struct task_process {
  uint32_t number, space;
  uint32_t threads; /* how many it has */
  bool is_32, is_counted;
  char *program;
  struct symbol_space *symbols;
  struct task_module *modules;
  size_t module_count, module_capacity;
  struct task_decoded *instructions; /* a hash; NULL: none yet */
  struct task_later *laters;
  size_t later_count, later_capacity;
  struct task_page *pages;
  size_t page_count, page_capacity;
};

/* A signal that came to a thread. */
struct task_signal {
  uint32_t thread;
  uint64_t at, handler;
};

/* The title of a process. Kept apart from the processes, since perf reports processes later than they run. */
struct task_title {
  char text[SOURCE_TITLE_MOST];
};

#define TASKS_SIGNALS 4096u /* signals that were not fetched yet */

struct tasks {
  const struct source_sink *sink;
  tasks_memory *memory;
  void *memory_data;
  bool is_live; /* code is read from memory each time, except for the bytes that were read since the process stopped: */
  uint32_t line_process;
  uint64_t line_address;
  size_t line_size;
  uint8_t line[TASKS_LINE];
  int error; /* the first failure, after which nothing is done any more */
  struct symbol_cache *cache;
  uint32_t spaces;           /* numbers given out */
  struct id_table processes; /* struct task_process */
  struct id_table threads;   /* struct task_thread */
  struct task_counts counts;
  tasks_title_read *title_read; /* NULL: titles are not read */
  void *title_data;
  struct id_table titles; /* struct task_title, by process */
  uint64_t start;         /* of the recording: tasks_clock */
  struct task_signal *signals;
  size_t signal_count, signal_capacity;
};

/* Remembers the first failure. Returns it. */
int tasks_fail(struct tasks *tasks, int error);

/* The process, which is created if necessary. NULL: there are too many, or there is no memory. */
struct task_process *tasks_process(struct tasks *tasks, uint32_t number);

/* Give the sink the branches of a thread, or of the threads of a process, before its address space changes; of all
 * threads (NULL) (tasks_branch.c). Return 0 or negative. */
int task_thread_flush(struct tasks *tasks, struct task_thread *thread);
int task_process_flush(struct tasks *tasks, const struct task_process *process);

/* Forgets the program of a process with its modules and code; gives a process copies of those of its parent
 * (tasks_map.c). */
void task_process_clear(struct task_process *process);
int task_process_copy(struct tasks *tasks, struct task_process *process, const struct task_process *parent);

/* Appends to the list of what waits for an execve (tasks_exec.c). Returns 0 or negative. */
int task_later_add(struct tasks *tasks, struct task_process *process, const struct task_later *later);

/* Forgets the code in a range, or all of it (tasks_code.c). */
void task_code_forget(struct task_process *process, uint64_t address, uint64_t size);
void task_code_clear(struct task_process *process);

/* Puts the title of its process into a thread's stream (tasks_title.c). Returns 0 or negative. */
int tasks_title_put(struct tasks *tasks, const struct task_thread *thread);
void tasks_title_forget(struct tasks *tasks, uint32_t process);

/* A thread has got a stream: says when it began, if that is known (tasks_time.c). Returns 0 or negative. */
int tasks_time_open(struct tasks *tasks, struct task_thread *thread);

/* A thread is gone: forgets its signals (tasks_signal.c). */
void tasks_signals_forget(struct tasks *tasks, uint32_t thread);

#endif
