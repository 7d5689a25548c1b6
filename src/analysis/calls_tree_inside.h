/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that calls_tree.c, calls_join.c and calls_tree_syscall.c share: a tree of calls while it is made.
 */
#ifndef ANALYSIS_CALLS_TREE_INSIDE_H
#define ANALYSIS_CALLS_TREE_INSIDE_H

#include "analysis/calls_tree.h"

/* A call that is open, or (the first) the stream itself. */
struct tree_open {
  size_t line; /* TREE_NONE: the stream */
  size_t last; /* line of the newest call that it made, or TREE_NONE */
  uint64_t shape;
};

static inline uint64_t shape_mix(uint64_t shape, uint64_t more)
{
  shape = (shape ^ more) * UINT64_C(0x9E3779B97F4A7C15);
  return shape ^ shape >> 29;
}

static inline uint64_t shape_of(const struct tree_line *line, uint64_t inner)
{
  return shape_mix(inner, (uint64_t)line->function << 16 | (uint64_t)line->how << 8 | line->left) | 1;
}

/* Repeated sequences of 1 to TREE_PERIOD_MAX calls are joined: the newest calls that the newest open call made are
 * compared with the calls before them. */
#define TREE_PERIOD_MAX 8u
int tree_join(struct calls_tree *tree, struct tree_stream *stream); /* 0, or -ENOMEM */

/* Calls of less weight than the tree's threshold are summed up, in all lines. Returns 0, or -ENOMEM. */
int tree_prune(struct calls_tree *tree, struct tree_stream *stream);

/* The newest call that the newest open call made is small: adds it to the line of small calls before it, or turns it
 * into such a line. */
void tree_sum_up(struct tree_stream *stream, struct tree_line *line);

/* The weight that decides whether a line is kept. If calls are weighed by instructions or branches, each nanosecond in
 * a system call counts as one, so that a call that took long is not summed up because it ran little. */
static inline uint64_t tree_weight(const struct calls_tree *tree, const struct tree_line *line)
{
  uint64_t weight = calls_weight(tree->walk, &line->cost);
  bool is_time = tree->walk->options->by >= CALLS_BY_TIME;

  return is_time || weight > line->cost.kernel ? weight : line->cost.kernel;
}

/* ---- system calls (calls_tree_syscall.c) ---- */

/* The entry of a system call. Returns 0, or -ENOMEM. */
int tree_syscall_add(struct calls_tree *tree, const struct analysis_syscall *call, uint32_t *ret_entry);

/* Makes `entry` what it has in common with another. Returns 0, or -ENOMEM. */
int tree_syscall_join(struct calls_tree *tree, uint32_t *entry, uint32_t other);

void tree_syscalls_done(struct tree_syscalls *syscalls);

#endif
