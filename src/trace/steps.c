/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads steps of paths and their links, from chunks that are untrusted. A file has fewer steps than bytes, so its size
 * bounds the memory.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/reader.h"
#include "trace/sparse.h"

#define PATH_MOST 256u /* a head and its steps */

bool chunk_has_paths(unsigned type)
{
  return type == CHUNK_STEPS || type == CHUNK_LINKS;
}

/* Makes room for numbers from `first` to below `end`. Numbers that are never used, because their chunks were lost or
 * never existed, take no memory. */
static int steps_reserve(struct lb_trace_reader *reader, uint64_t first, uint64_t end)
{
  size_t capacity = reader->step_capacity ? reader->step_capacity : 1024, size = sizeof(*reader->steps);
  struct reader_step *steps;

  if (end > reader->step_capacity) {
    while (capacity < end)
      capacity *= 2;
    steps = sparse_grow(reader->steps, reader->step_capacity * size, capacity * size);
    if (!steps)
      return -ENOMEM;
    reader->steps = steps;
    reader->step_capacity = capacity;
  }
  reader->has_holes |= first > reader->step_count + 1u;
  if (reader->has_holes)
    sparse_scatter(reader->steps, reader->step_capacity * size);
  if (end > reader->step_count)
    reader->step_count = (uint32_t)end;
  return 0;
}

/* ---- a path ---- */

static bool step_unpack(struct cursor *cursor, uint64_t *address, struct reader_step *step)
{
  unsigned kind;

  step->flags = cursor_u8(cursor);
  kind = cursor_u8(cursor);
  step->length = cursor_u8(cursor);
  step->from = *address + zagzig(cursor_varint(cursor));
  if (!(step->flags & (LB_STEP_OPEN | LB_STEP_SILENT)) || step->flags & LB_STEP_FOLLOW)
    step->to = step->from + zagzig(cursor_varint(cursor));
  *address = step->flags & LB_STEP_FOLLOW ? step->to : step->from + step->length;
  step->small[0] = (uint8_t)kind;
  if (kind == LB_BRANCH_NEAR_REL_CALL && step->to == step->from + step->length)
    step->small[2] = LB_BRANCH_TO_NEXT;
  return !cursor->is_short && !(step->flags & LB_STEP_HEAD) && kind < LB_BRANCH_KINDS;
}

/* Execution that stays in a path takes the branches of the steps with LB_STEP_FOLLOW. Stores for each step how many
 * there are before it, and which one is the last. */
static void path_chain(struct reader_step *path, unsigned count)
{
  unsigned follows = 0, last = 0, passed = 0;

  for (unsigned i = 1; i <= count; i++) {
    path[i].count = (uint8_t)follows;
    path[i].back = (uint8_t)(follows ? i - last : 0);
    bool is_jcc = path[i].small[0] == LB_BRANCH_JCC, is_followed = path[i].flags & LB_STEP_FOLLOW;
    path[i].small[1] = (uint8_t)(passed + (is_jcc && is_followed && path[i].flags & LB_STEP_NONE));
    passed += is_jcc && !(path[i].flags & (LB_STEP_FOLLOW | LB_STEP_NONE));
    if (path[i].flags & LB_STEP_FOLLOW) {
      follows++;
      last = i;
    }
  }
}

/* Stores a path. A path that is already there stays: its chunk was read before, and links may have been added since.
 * Returns false if another path has some of its numbers. */
static bool path_keep(struct lb_trace_reader *reader, uint32_t number, const struct reader_step *path, unsigned count)
{
  struct reader_step *place = &reader->steps[number];

  if (place->head)
    return place->head == number && place->count == count;
  for (unsigned i = 1; i <= count; i++)
    if (place[i].head)
      return false;
  memcpy(place, path, (size_t)(1 + count) * sizeof(*path));
  counts_learn(reader, number, (size_t)number + 1 + count);
  return true;
}

/* Unpacks a path whose head gets this number. Returns the count of its numbers, or 0. */
static unsigned path_unpack(struct lb_trace_reader *reader, struct cursor *cursor, uint32_t number, uint64_t *address,
                            uint64_t *space)
{
  uint64_t count = cursor_varint(cursor);
  struct reader_step path[PATH_MOST];

  *space += zagzig(cursor_varint(cursor));
  *address += zagzig(cursor_varint(cursor));
  if (cursor->is_short || count >= PATH_MOST || *space > UINT32_MAX || number + count >= reader->step_count)
    return 0;
  path[0] = (struct reader_step){
    .from = *address, .to = *space, .head = number, .flags = LB_STEP_HEAD, .count = (uint8_t)count};
  for (uint32_t i = 1; i <= count; i++) {
    path[i] = (struct reader_step){.head = number};
    if (!step_unpack(cursor, address, &path[i]))
      return 0;
  }
  path_chain(path, (unsigned)count);
  return path_keep(reader, number, path, (unsigned)count) ? 1 + (unsigned)count : 0;
}

/* ---- chunks ---- */

static int steps_unpack(struct lb_trace_reader *reader, struct cursor *cursor)
{
  uint64_t first = cursor_varint(cursor), count = cursor_varint(cursor), address = 0, space = 0;

  /* A step takes at least one stored byte. Steps of lost chunks are still part of the file's size. */
  if (cursor->is_short || !first || !count || count > reader->head.stored || first > reader->size ||
      count > reader->size - first || first + count > LB_STEP_MAX)
    return LB_E_DAMAGED;
  if (steps_reserve(reader, first, first + count) < 0)
    return -ENOMEM;
  for (uint64_t i = 0; i < count;) {
    unsigned size = path_unpack(reader, cursor, (uint32_t)(first + i), &address, &space);

    if (!size)
      return LB_E_DAMAGED;
    i += size;
  }
  return 0;
}

/* Numbers whose steps were lost are skipped: the entries that need them will show it. */
static void link_keep(struct lb_trace_reader *reader, uint64_t number, uint64_t next)
{
  struct reader_step *step = number < reader->step_count ? &reader->steps[number] : NULL;

  if (step && step->head && !(step->flags & (LB_STEP_HEAD | LB_STEP_OPEN | LB_STEP_SILENT)) && !step->next &&
      next < reader->step_count && (reader->steps[next].flags & LB_STEP_HEAD)) {
    counts_forget(reader, (uint32_t)number);
    step->next = (uint32_t)next;
    counts_learn(reader, number, number + 1);
  }
}

static int links_unpack(struct lb_trace_reader *reader, struct cursor *cursor)
{
  uint64_t count = cursor_varint(cursor), number = 0;

  for (uint64_t i = 0; i < count && !cursor->is_short; i++) {
    uint64_t next;

    number += zagzig(cursor_varint(cursor));
    next = number + zagzig(cursor_varint(cursor));
    if (!cursor->is_short)
      link_keep(reader, number, next);
  }
  return cursor->is_short ? LB_E_DAMAGED : 0;
}

int paths_unpack(struct lb_trace_reader *reader)
{
  struct cursor cursor = {reader->raw.bytes, reader->raw.bytes + reader->raw.size, false};

  return reader->head.type == CHUNK_STEPS ? steps_unpack(reader, &cursor) : links_unpack(reader, &cursor);
}
