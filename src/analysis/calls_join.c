/* SPDX-License-Identifier: Apache-2.0
 *
 * Reduces the lines of the call tree: repeated calls become one line, small ones become a sum. Lines are in the order
 * of the calls, a caller before its calls, so that all calls of one caller are contiguous.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/calls_tree_inside.h"

/* ---- repetition ---- */

/* The line of the previous call. Returns TREE_NONE if there is none. */
static size_t line_previous(const struct tree_stream *stream, size_t line)
{
  return line != TREE_NONE && stream->lines[line].previous ? line - stream->lines[line].previous : TREE_NONE;
}

/* Whether the newest `period` calls, of which `line` is the last, equal those before them. If so, gives the first of
 * the newest. */
static bool period_matches(const struct tree_stream *stream, size_t line, unsigned period, size_t *ret_first)
{
  size_t other = line, first = line;

  for (unsigned i = 0; i < period; i++)
    other = line_previous(stream, other);
  for (unsigned i = 0; i < period; i++) {
    if (other == TREE_NONE || stream->lines[line].shape != stream->lines[other].shape ||
        stream->lines[line].size != stream->lines[other].size)
      return false;
    first = line;
    line = line_previous(stream, line);
    other = line_previous(stream, other);
  }
  *ret_first = first;
  return true;
}

static void line_add(struct tree_line *into, const struct tree_line *line)
{
  into->repeats += line->repeats;
  calls_cost_add(&into->cost, &line->cost);
}

/* Adds the lines from `first` on to the same number of lines before them. */
static int lines_join(struct calls_tree *tree, struct tree_stream *stream, size_t first)
{
  size_t size = stream->count - first;
  int r = 0;

  for (size_t i = 0; i < size && r >= 0; i++) {
    struct tree_line *into = &stream->lines[first - size + i];
    const struct tree_line *line = &stream->lines[first + i];

    line_add(into, line);
    if (into->how == TREE_SYSCALL && line->how == TREE_SYSCALL)
      r = tree_syscall_join(tree, &into->entry, line->entry);
  }
  stream->count = first;
  return r;
}

int tree_join(struct calls_tree *tree, struct tree_stream *stream)
{
  struct tree_open *caller = &stream->opens[stream->open_count - 1];
  size_t line = stream->opens[stream->open_count].line, first;

  if (line >= stream->count) /* it became part of the sum before it */
    return 0;
  stream->lines[line].previous = caller->last == TREE_NONE ? 0 : (uint32_t)(line - caller->last);
  stream->lines[line].before = caller->shape;
  for (unsigned period = 1; period <= TREE_PERIOD_MAX; period++)
    if (period_matches(stream, line, period, &first)) {
      caller->shape = stream->lines[first].before;
      caller->last = line_previous(stream, first);
      return lines_join(tree, stream, first);
    }
  caller->shape = shape_mix(caller->shape, stream->lines[line].shape);
  caller->last = line;
  return 0;
}

/* ---- sums ---- */

static void line_make_small(struct tree_line *line)
{
  line->function = TREE_SMALL;
  line->how = ANALYSIS_CALL_CALL;
  line->left = ANALYSIS_CALL_RETURN;
  line->size = 1;
  line->shape = shape_of(line, 0);
}

void tree_sum_up(struct tree_stream *stream, struct tree_line *line)
{
  const struct tree_open *caller = &stream->opens[stream->open_count - 1];
  struct tree_line *last = caller->last == TREE_NONE ? NULL : &stream->lines[caller->last];

  stream->count = (size_t)(line - stream->lines);
  if (last && last->function == TREE_SMALL) {
    line_add(last, line);
    return;
  }
  line_make_small(line);
  stream->count++;
}

/* ---- sums in all lines ---- */

/* Removes lines. Open calls keep their order, so that `opens` can be updated with their new positions. */
static void lines_prune(const struct calls_tree *tree, struct tree_stream *stream)
{
  size_t count = 0, opens = 1;

  for (size_t i = 0; i < stream->count;) {
    struct tree_line line = stream->lines[i];
    struct tree_line *last = count ? &stream->lines[count - 1] : NULL;
    bool is_small = line.size && (line.function == TREE_SMALL || tree_weight(tree, &line) < tree->threshold);

    i += is_small ? line.size : 1;
    if (is_small && last && last->function == TREE_SMALL && last->level == line.level) {
      line_add(last, &line);
      continue;
    }
    if (is_small)
      line_make_small(&line);
    else if (!line.size)
      stream->opens[opens++].line = count;
    stream->lines[count++] = line;
  }
  stream->count = count;
}

/* Closes the calls of `links` down to a level and updates their callers. */
static void links_close(struct tree_stream *stream, struct tree_open *links, size_t *depth, size_t level, size_t end)
{
  while (*depth > level + 1) {
    struct tree_open *link = &links[--*depth], *caller = &links[*depth - 1];
    struct tree_line *line = &stream->lines[link->line];

    if (!line->size) /* an open call has no shape yet */
      continue;
    line->size = (uint32_t)(end - link->line);
    line->shape = shape_of(line, link->shape);
    line->previous = caller->last == TREE_NONE ? 0 : (uint32_t)(link->line - caller->last);
    line->before = caller->shape;
    caller->shape = shape_mix(caller->shape, line->shape);
    caller->last = link->line;
  }
}

/* Computes sizes, shapes and neighbours again. The levels of the lines tell who calls whom. */
static void lines_link(struct tree_stream *stream, struct tree_open *links)
{
  size_t depth = 1;

  links[0] = (struct tree_open){.line = TREE_NONE, .last = TREE_NONE};
  for (size_t i = 0; i < stream->count; i++) {
    links_close(stream, links, &depth, stream->lines[i].level, i);
    links[depth++] = (struct tree_open){.line = i, .last = TREE_NONE};
  }
  links_close(stream, links, &depth, stream->open_count - 1, stream->count);
  for (size_t i = 0; i < stream->open_count; i++) {
    stream->opens[i].last = links[i].last;
    stream->opens[i].shape = links[i].shape;
  }
}

int tree_prune(struct calls_tree *tree, struct tree_stream *stream)
{
  uint32_t deepest = 0;
  struct tree_open *links;

  lines_prune(tree, stream);
  for (size_t i = 0; i < stream->count; i++)
    if (stream->lines[i].level > deepest)
      deepest = stream->lines[i].level;
  links = malloc(((size_t)deepest + 3) * sizeof(*links));
  if (!links)
    return -ENOMEM;
  lines_link(stream, links);
  free(links);
  return 0;
}
