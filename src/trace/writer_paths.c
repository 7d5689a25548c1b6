/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the paths that entries name. When the writer meets a path for the first time, it asks the producer for it,
 * gives its head and steps the next numbers of the file, and stores how many branches they stand for. The producer's
 * answer comes from the memory of a program that may have corrupted it: an incomplete path is ignored.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/base.h"
#include "trace/sparse.h"
#include "trace/writer.h"

#define STEP_BYTES 32u         /* more than a step needs */
#define STEPS_PIECE (1u << 20) /* bytes of steps or links in one chunk; of the first ones, fewer: */
#define STEPS_FIRST (1u << 12)
#define PATH_FLAGS (LB_STEP_FOLLOW | LB_STEP_SILENT | LB_STEP_OPEN | LB_STEP_NONE)
#define PATH_MOST 256u /* a head and its steps */
#define TABLE_PAGE 4096u

void lb_trace_writer_paths(struct lb_trace_writer *writer, lb_trace_step_lookup *lookup, void *context)
{
  writer->paths.lookup = lookup;
  writer->paths.context = context;
}

void paths_done(struct writer_paths *paths)
{
  sparse_free(paths->infos, paths->capacity * sizeof(*paths->infos));
  sparse_free(paths->nexts, paths->capacity * sizeof(*paths->nexts));
  buffer_done(&paths->steps);
  buffer_done(&paths->links);
}

/* ---- what is known ---- */

/* Makes room for numbers up to this one. If one table cannot grow, the other one is cut back. */
static int infos_reserve(struct writer_paths *paths, uint32_t number)
{
  size_t capacity = paths->capacity ? paths->capacity : 4096;
  struct path_info *infos;
  uint32_t *nexts;

  if (number < paths->capacity)
    return 0;
  while (capacity <= number)
    capacity *= 2;
  infos = sparse_grow(paths->infos, paths->capacity * sizeof(*infos), capacity * sizeof(*infos));
  if (!infos)
    return -ENOMEM;
  paths->infos = infos;
  nexts = sparse_grow(paths->nexts, paths->capacity * sizeof(*nexts), capacity * sizeof(*nexts));
  if (!nexts) {
    munmap(infos + paths->capacity, (capacity - paths->capacity) * sizeof(*infos));
    paths->infos = paths->capacity ? infos : NULL;
    return -ENOMEM;
  }
  paths->nexts = nexts;
  paths->capacity = capacity;
  return 0;
}

/* Gives the memory of a page back if it is all zero. */
static void page_give_back(uint8_t *page)
{
  for (size_t i = 0; i < TABLE_PAGE; i += sizeof(uint64_t))
    if (bytes_get_u64(page + i))
      return;
  madvise(page, TABLE_PAGE, MADV_DONTNEED);
}

/* Clears bytes of a table, page by page. */
static void table_clear(uint8_t *table, size_t from, size_t to)
{
  while (from < to) {
    size_t page = from / TABLE_PAGE * TABLE_PAGE, end = page + TABLE_PAGE < to ? page + TABLE_PAGE : to;

    memset(table + from, 0, end - from);
    page_give_back(table + page);
    from = end;
  }
}

void paths_forget(struct writer_paths *paths, uint32_t first, uint32_t end)
{
  end = end < paths->capacity ? end : (uint32_t)paths->capacity;
  table_clear((uint8_t *)paths->infos, first * sizeof(*paths->infos), end * sizeof(*paths->infos));
  table_clear((uint8_t *)paths->nexts, first * sizeof(*paths->nexts), end * sizeof(*paths->nexts));
}

/* Stores a path, head first, and its numbers in the file. A head has at most 255 steps, so every count fits in a
 * byte. */
static void infos_fill(struct writer_paths *paths, const struct lb_step *path, unsigned count)
{
  struct path_info *infos = &paths->infos[path->head];
  uint8_t passed = 0;

  for (unsigned i = 1; i <= count; i++) {
    bool is_branch = !(path[i].flags & LB_STEP_NONE) || (path[i].flags & (LB_STEP_OPEN | LB_STEP_SILENT));

    infos[i] = (struct path_info){
      .number = paths->count + 1 + i, .flags = path[i].flags, .branches = (uint8_t)(passed + is_branch)};
    passed += path[i].flags & LB_STEP_FOLLOW ? 1 : 0;
    infos[i].passed = passed;
  }
  infos[0] = (struct path_info){.number = paths->count + 1, .flags = LB_STEP_HEAD | PATH_LINKED};
  if (count && (path[count].flags & LB_STEP_SILENT))
    infos[0].after = infos[count].branches;
  paths->count += 1 + count;
}

/* ---- the file ---- */

/* Writes some numbers and the contents of a buffer as a chunk, and empties the buffer. */
static int piece_write(struct lb_trace_writer *writer, enum chunk_type type, struct buffer *piece, uint32_t first,
                       uint32_t count)
{
  struct buffer *raw = &writer->raw;
  int r = 0;

  raw->size = 0;
  if (type == CHUNK_STEPS)
    r = raw_varint(writer, first);
  if (r < 0 || raw_varint(writer, count) < 0 || buffer_reserve(raw, piece->size) < 0)
    return writer_fail(writer, -ENOMEM);
  memcpy(raw->bytes + raw->size, piece->bytes, piece->size);
  raw->size += piece->size;
  piece->size = 0;
  return chunk_write_least(writer, type, NULL, type == CHUNK_STEPS ? count : 0);
}

/* If a chunk of steps is damaged, all entries that need its steps are lost. In a small file the chunks are small. */
static bool piece_is_full(const struct lb_trace_writer *writer, const struct buffer *piece)
{
  uint64_t most = writer->file.size / 8 > STEPS_FIRST ? writer->file.size / 8 : STEPS_FIRST;

  return piece->size >= (most < STEPS_PIECE ? most : STEPS_PIECE);
}

static int steps_write(struct lb_trace_writer *writer)
{
  struct writer_paths *paths = &writer->paths;
  uint32_t count = paths->steps_count;

  paths->steps_count = 0;
  paths->address = 0;
  paths->space = 0;
  return count ? piece_write(writer, CHUNK_STEPS, &paths->steps, paths->steps_first, count) : writer->error;
}

int paths_write(struct lb_trace_writer *writer)
{
  struct writer_paths *paths = &writer->paths;
  uint32_t count = paths->links_count;

  if (steps_write(writer) < 0)
    return writer->error;
  paths->links_count = 0;
  paths->linked = 0;
  return count ? piece_write(writer, CHUNK_LINKS, &paths->links, 0, count) : writer->error;
}

static uint8_t *step_put(struct writer_paths *paths, const struct lb_step *step, uint8_t *at)
{
  *at++ = step->flags;
  *at++ = step->kind;
  *at++ = step->length;
  at = varint_put(at, zigzag(step->from - paths->address));
  if (!(step->flags & (LB_STEP_OPEN | LB_STEP_SILENT)) || step->flags & LB_STEP_FOLLOW)
    at = varint_put(at, zigzag(step->to - step->from));
  paths->address = step->flags & LB_STEP_FOLLOW ? step->to : step->from + step->length;
  return at;
}

/* Appends a path to the steps that will be written. Returns 0 or -ENOMEM. */
static int path_put(struct writer_paths *paths, const struct lb_step *path, unsigned count)
{
  struct buffer *steps = &paths->steps;
  uint8_t *at;

  if (buffer_reserve(steps, (size_t)(1 + count) * STEP_BYTES) < 0)
    return -ENOMEM;
  if (!paths->steps_count)
    paths->steps_first = paths->count + 1;
  at = varint_put(steps->bytes + steps->size, count);
  at = varint_put(at, zigzag((uint64_t)path->space - paths->space));
  at = varint_put(at, zigzag(path->from - paths->address));
  paths->space = path->space;
  paths->address = path->from;
  for (unsigned i = 1; i <= count; i++)
    at = step_put(paths, &path[i], at);
  steps->size = (size_t)(at - steps->bytes);
  paths->steps_count += 1 + count;
  return 0;
}

/* ---- asking ---- */

/* Gets the path that a step or head belongs to, head first. Returns false if there is none that is whole. */
static bool path_ask(const struct writer_paths *paths, uint32_t number, struct lb_step path[PATH_MOST])
{
  uint32_t head;

  if (!number || number > LB_STEP_MAX || !paths->lookup(paths->context, number, &path[0]))
    return false;
  head = path[0].head;
  if (!head || head > number || !paths->lookup(paths->context, head, &path[0]) || !(path[0].flags & LB_STEP_HEAD) ||
      path[0].head != head || number - head > path[0].count || path[0].count > LB_STEP_MAX - head)
    return false;
  for (unsigned i = 1; i <= path[0].count; i++) {
    struct lb_step *step = &path[i];

    if (!paths->lookup(paths->context, head + i, step) || step->head != head || (step->flags & LB_STEP_HEAD) ||
        step->kind >= LB_BRANCH_KINDS)
      return false;
    step->flags &= PATH_FLAGS;
  }
  return true;
}

/* Paths do not overlap: a number that is already known belongs to another path. */
static bool path_is_new(const struct writer_paths *paths, const struct lb_step *path)
{
  for (unsigned i = 0; i <= path->count && path->head + i < paths->capacity; i++)
    if (paths->infos[path->head + i].number)
      return false;
  return paths->count <= LB_STEP_MAX - PATH_MOST;
}

struct path_info path_find(struct lb_trace_writer *writer, uint32_t number)
{
  struct writer_paths *paths = &writer->paths;
  struct lb_step path[PATH_MOST];

  if (number < paths->capacity && paths->infos[number].number)
    return paths->infos[number];
  if (!path_ask(paths, number, path) || !path_is_new(paths, path))
    return (struct path_info){0};
  if (infos_reserve(paths, path->head + path->count) < 0 || path_put(paths, path, path->count) < 0) {
    writer_fail(writer, -ENOMEM);
    return (struct path_info){0};
  }
  infos_fill(paths, path, path->count);
  if (piece_is_full(writer, &paths->steps))
    steps_write(writer);
  return paths->infos[number];
}

/* Appends a link to those that will be written. Returns 0 or -ENOMEM. */
static int link_put(struct writer_paths *paths, uint32_t step, uint32_t next)
{
  struct buffer *links = &paths->links;
  uint8_t *at;

  if (buffer_reserve(links, STEP_BYTES) < 0)
    return -ENOMEM;
  at = varint_put(links->bytes + links->size, zigzag((uint64_t)step - paths->linked));
  at = varint_put(at, zigzag((uint64_t)next - step));
  links->size = (size_t)(at - links->bytes);
  paths->linked = step;
  paths->links_count++;
  return 0;
}

uint32_t path_next(struct lb_trace_writer *writer, uint32_t number)
{
  struct writer_paths *paths = &writer->paths;
  struct lb_step step;
  struct path_info next;

  if (paths->nexts[number])
    return paths->nexts[number];
  if (!paths->infos[number].number) /* it was known, and was forgotten: the program has overwritten its log */
    return 0;
  if (!paths->lookup(paths->context, number, &step) || !step.next)
    return 0;
  next = path_find(writer, step.next);
  if (!(next.flags & LB_STEP_HEAD))
    return 0;
  paths->nexts[number] = step.next;
  if (paths->infos[number].flags & (LB_STEP_OPEN | LB_STEP_SILENT))
    return step.next;
  paths->infos[number].flags |= PATH_LINKED;
  paths->infos[number].after = next.after;
  if (link_put(paths, paths->infos[number].number, next.number) < 0)
    writer_fail(writer, -ENOMEM);
  if (piece_is_full(writer, &paths->links))
    paths_write(writer);
  return step.next;
}
