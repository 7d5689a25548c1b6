/* SPDX-License-Identifier: Apache-2.0
 *
 * The call tree of a whole run in a limited number of lines. Calls are in their order, repeated calls are one line, and
 * if there are too many lines the smallest calls are summed up. A short run is therefore shown completely; for a long
 * one the tree shows where its time was spent, with exact numbers.
 */
#include "analysis/calls_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/calls_tree_inside.h"

#define LINES_LEAST 16384u /* lines that are kept before any is summed up */
#define ROOM 8u            /* times as many lines as are wanted */
#define STREAM_LINES 10u   /* lines for each stream at least: if there are too many streams, some have none */

/* ---- streams ---- */

static int opens_push(struct tree_stream *stream, size_t line)
{
  struct tree_open *open = array_append(&stream->opens, &stream->open_count, &stream->open_capacity);

  if (!open)
    return -ENOMEM;
  *open = (struct tree_open){.line = line, .last = TREE_NONE};
  return 0;
}

static struct tree_stream *stream_get(struct calls_tree *tree, uint32_t number)
{
  while (number >= tree->count) {
    struct tree_stream *streams = array_grow(tree->streams, sizeof(*streams), tree->count, &tree->capacity);

    if (!streams)
      return NULL;
    tree->streams = streams;
    streams[tree->count] = (struct tree_stream){0};
    if (opens_push(&streams[tree->count], TREE_NONE) < 0)
      return NULL;
    tree->count++;
  }
  return &tree->streams[number];
}

/* ---- too many lines ---- */

static int weight_compare(const void *one, const void *other)
{
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

  return (a < b) - (a > b);
}

/* The weight that at most `count` closed lines exceed. Returns 0, or -ENOMEM. */
static int threshold_find(const struct calls_tree *tree, size_t count, uint64_t *ret_threshold)
{
  uint64_t *weights = malloc((tree->lines + 1) * sizeof(*weights));
  size_t filled = 0;

  if (!weights)
    return -ENOMEM;
  for (size_t i = 0; i < tree->count; i++)
    for (size_t k = 0; k < tree->streams[i].count; k++) {
      const struct tree_line *line = &tree->streams[i].lines[k];

      if (line->size && line->function != TREE_SMALL)
        weights[filled++] = tree_weight(tree, line);
    }
  qsort(weights, filled, sizeof(*weights), weight_compare);
  *ret_threshold = count < filled ? weights[count] + 1 : 0;
  free(weights);
  return 0;
}

/* Reduces the tree to at most `count` lines, not counting open calls. Keeps half of them, since sums need lines too. */
static int tree_shrink(struct calls_tree *tree, size_t count)
{
  uint64_t threshold;
  int r = threshold_find(tree, count / 2, &threshold);

  if (r < 0 || threshold <= tree->threshold)
    return r;
  tree->threshold = threshold;
  tree->lines = 0;
  for (size_t i = 0; i < tree->count && r >= 0; i++) {
    r = tree_prune(tree, &tree->streams[i]);
    tree->lines += tree->streams[i].count;
  }
  return r;
}

/* ---- too many streams ---- */

struct stream_weight {
  uint64_t weight;
  size_t number;
};

static int stream_compare(const void *one, const void *other)
{
  const struct stream_weight *a = one, *b = other;

  if (a->weight != b->weight)
    return a->weight < b->weight ? 1 : -1;
  return (a->number > b->number) - (a->number < b->number);
}

/* The sum of a stream. */
static struct analysis_cost stream_sum(const struct tree_stream *stream)
{
  struct analysis_cost sum = {0};

  for (size_t i = 0; i < stream->count; i++)
    if (!stream->lines[i].level)
      calls_cost_add(&sum, &stream->lines[i].cost);
  return sum;
}

static void stream_leave_out(struct calls_tree *tree, struct tree_stream *stream)
{
  struct analysis_cost sum = stream_sum(stream);

  tree->left_out++;
  calls_cost_add(&tree->left_cost, &sum);
  tree->lines -= stream->count;
  stream->count = 0;
}

/* Keeps the heaviest streams. Returns 0, or -ENOMEM. */
static int streams_leave_out(struct calls_tree *tree)
{
  struct stream_weight *weights = malloc((tree->count + 1) * sizeof(*weights));
  size_t filled = 0;

  if (!weights)
    return -ENOMEM;
  for (size_t i = 0; i < tree->count; i++) {
    struct analysis_cost sum = stream_sum(&tree->streams[i]);

    if (tree->streams[i].count)
      weights[filled++] = (struct stream_weight){calls_weight(tree->walk, &sum), i};
  }
  qsort(weights, filled, sizeof(*weights), stream_compare);
  for (uint64_t i = tree->walk->options->limit / STREAM_LINES + 1; i < filled; i++)
    stream_leave_out(tree, &tree->streams[weights[i].number]);
  free(weights);
  return 0;
}

/* ---- calls ---- */

static int tree_enter(void *data, uint32_t number, struct calls_node *nodes, size_t count)
{
  const struct calls_node *node = &nodes[count - 1];
  struct calls_tree *tree = data;
  struct tree_stream *stream = stream_get(tree, number);
  struct tree_line *line = stream ? array_append(&stream->lines, &stream->count, &stream->capacity) : NULL;

  if (!line)
    return -ENOMEM;
  *line = (struct tree_line){.function = node->function, .level = node->level, .how = node->how, .repeats = 1};
  tree->lines++;
  return opens_push(stream, stream->count - 1);
}

/* The newest open call of the stream ends. */
static int line_close(struct calls_tree *tree, struct tree_stream *stream)
{
  struct tree_open *open = &stream->opens[--stream->open_count];
  struct tree_line *line = &stream->lines[open->line];
  size_t before = stream->count;
  int r;

  line->size = (uint32_t)(stream->count - open->line);
  line->shape = shape_of(line, open->shape);
  if (tree_weight(tree, line) < tree->threshold)
    tree_sum_up(stream, line);
  r = tree_join(tree, stream);
  tree->lines -= before - stream->count;
  if (r < 0 || tree->lines <= tree->lines_max)
    return r;
  if (tree_shrink(tree, tree->lines_max / 2) < 0)
    return -ENOMEM;
  if (tree->lines_max < 2 * tree->lines) /* open calls cannot be summed up */
    tree->lines_max = 2 * tree->lines;
  return 0;
}

static int tree_leave(void *data, uint32_t number, struct calls_node *nodes, size_t count)
{
  const struct calls_node *node = &nodes[count - 1];
  struct calls_tree *tree = data;
  struct tree_stream *stream = stream_get(tree, number);
  struct tree_line *line = &stream->lines[stream->opens[stream->open_count - 1].line];

  line->left = node->left;
  line->cost = node->cost;
  return line_close(tree, stream);
}

/* A system call is a call that is open for a moment. */
static int tree_syscall(void *data, uint32_t level, const struct analysis_syscall *call)
{
  struct calls_tree *tree = data;
  struct tree_stream *stream = stream_get(tree, call->stream);
  struct tree_line *line;
  uint32_t entry;
  int r = stream ? tree_syscall_add(tree, call, &entry) : -ENOMEM;

  if (r < 0)
    return r;
  line = array_append(&stream->lines, &stream->count, &stream->capacity);
  if (!line)
    return -ENOMEM;
  *line = (struct tree_line){
    .function = tree->syscalls.entries[entry].number,
    .level = level,
    .entry = entry,
    .how = TREE_SYSCALL,
    .left = ANALYSIS_CALL_RETURN,
    .repeats = 1,
    .cost = {.time = call->duration, .waited = call->waited, .kernel = call->duration},
  };
  tree->lines++;
  r = opens_push(stream, stream->count - 1);
  return r < 0 ? r : line_close(tree, stream);
}

/* ---- all of it ---- */

void calls_tree_begin(struct calls_tree *tree, struct calls_walk *walk)
{
  uint64_t limit = walk->options->limit;

  *tree = (struct calls_tree){.walk = walk, .lines_max = LINES_LEAST};
  if (limit > LINES_LEAST / ROOM)
    tree->lines_max = limit < TREE_LINES_MOST / ROOM ? (size_t)limit * ROOM : TREE_LINES_MOST;
  walk->view = (struct calls_view){tree_enter, tree_leave, tree, tree_syscall};
}

int calls_tree_end(struct calls_tree *tree)
{
  size_t count = tree->walk->options->limit < SIZE_MAX / 2 ? 2 * (size_t)tree->walk->options->limit : SIZE_MAX;

  if (streams_leave_out(tree) < 0)
    return -ENOMEM;
  /* the number of sums is known only when they are made */
  for (; count > 1 && tree->lines > tree->walk->options->limit; count -= count / 8 + 1)
    if (tree_shrink(tree, count) < 0)
      return -ENOMEM;
  return 0;
}

void calls_tree_done(struct calls_tree *tree)
{
  for (size_t i = 0; i < tree->count; i++) {
    free(tree->streams[i].lines);
    free(tree->streams[i].opens);
  }
  free(tree->streams);
  tree_syscalls_done(&tree->syscalls);
}
