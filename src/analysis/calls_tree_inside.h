/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that calls_tree.c and calls_join.c share: a tree of calls while it is made.
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
void tree_join(struct tree_stream *stream);

/* Calls of less weight than the tree's threshold are summed up, in all lines. Returns 0, or -ENOMEM. */
int tree_prune(struct calls_tree *tree, struct tree_stream *stream);

/* The newest call that the newest open call made is small: adds it to the line of small calls before it, or turns it
 * into such a line. */
void tree_sum_up(struct tree_stream *stream, struct tree_line *line);

#endif
