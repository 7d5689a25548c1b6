/* SPDX-License-Identifier: Apache-2.0
 *
 * The tree of the calls of a whole run, in as many lines as are wanted (calls_tree.c); calls_join.c reduces their
 * number. System calls are leaves of the tree; calls_tree_syscall.c keeps what is known of them.
 */
#ifndef ANALYSIS_CALLS_TREE_H
#define ANALYSIS_CALLS_TREE_H

#include "analysis/calls_walk.h"
#include "trace/trace.h"

#define TREE_SMALL UINT32_MAX /* as a function: calls that are summed up */
#define TREE_NONE SIZE_MAX
#define TREE_LINES_MOST (1u << 21) /* lines that are kept, regardless of --top: 192 MiB */
#define TREE_SYSCALL 0xFFu         /* as `how`: a system call */

/* A call, or several that are alike; the lines after it are its own calls. */
struct tree_line {
  uint32_t function; /* number of the function, or of the system call */
  uint32_t level;
  uint32_t size;     /* lines, including those of its calls; 0: it is still open */
  uint32_t previous; /* distance in lines to the previous call of the same caller; 0: there is none */
  uint32_t entry;    /* of a system call: what is known of it, in `syscalls` of the tree */
  uint8_t how, left;
  uint64_t repeats; /* calls that this line stands for */
  struct analysis_cost cost;
  uint64_t shape;  /* hash of its functions; equal for calls that are alike */
  uint64_t before; /* shape of the caller up to here */
};

/* A system call, or what several have in common. */
struct tree_syscall {
  uint32_t number;
  uint8_t argument_count; /* leading arguments that are known */
  bool has_result, has_returned;
  int64_t result;
  uint64_t arguments[TRACE_ARGUMENTS_MAX];
  char *paths[TRACE_CALL_PATHS]; /* NULL: not known */
};

/* Different system calls, each of them once. Entry 0 is any system call: it is used if there are too many. */
struct tree_syscalls {
  struct tree_syscall *entries;
  size_t count, capacity;
  struct hash_index index;
  bool is_full;
};

struct tree_open;

struct tree_stream {
  struct tree_line *lines;
  size_t count, capacity;
  struct tree_open *opens; /* calls that are open, while the tree is made */
  size_t open_count, open_capacity;
};

struct calls_tree {
  const struct calls_walk *walk;
  struct tree_stream *streams;
  size_t count, capacity;
  size_t lines, lines_max; /* of all streams */
  uint64_t threshold;      /* calls of less weight are summed up */
  size_t left_out;         /* streams that no longer have lines, and their counts */
  struct analysis_cost left_cost;
  struct tree_syscalls syscalls;
};

void calls_tree_begin(struct calls_tree *tree, struct calls_walk *walk);
/* To be called after the last call: reduces the tree to as many lines as are wanted. Returns 0, or -ENOMEM. */
int calls_tree_end(struct calls_tree *tree);
void calls_tree_done(struct calls_tree *tree);

#endif
