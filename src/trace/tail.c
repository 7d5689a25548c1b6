/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the end of a stream without reading the chunks before it: the index at the end of the file says where each
 * stream's last chunk is, and every chunk where the one before it is. A file without its index is walked through once,
 * from head to head.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/reader.h"

#define END_SIZE (CHUNK_HEAD_SIZE + 8u)

static int places_add(struct reader_places *list, uint64_t place)
{
  uint64_t *added = array_append(&list->places, &list->count, &list->capacity);

  if (!added)
    return -ENOMEM;
  *added = place;
  return 0;
}

/* ---- the index ---- */

static void places_forget(struct lb_trace_reader *reader)
{
  reader->plan.list.count = 0;
  reader->plan.is_cut = false;
  reader->paths_at.count = 0;
  reader->names.at.count = 0;
  for (size_t i = 0; i < reader->count; i++)
    reader->streams[i].last = 0;
}

/* Offsets in the index must increase: an untrusted index could otherwise make the reader load the same chunk for
 * ever. */
static int index_places(struct lb_trace_reader *reader, struct cursor *cursor, struct reader_places *list)
{
  uint64_t count = cursor_varint(cursor), place = 0;

  for (uint64_t i = 0; i < count; i++) {
    uint64_t step = cursor_varint(cursor);

    if (cursor->is_short || step == 0 || step > reader->size - place)
      return LB_E_DAMAGED;
    place += step;
    if (places_add(list, place) < 0)
      return -ENOMEM;
  }
  return cursor->is_short ? LB_E_DAMAGED : 0;
}

static int index_streams(struct lb_trace_reader *reader, struct cursor *cursor)
{
  uint64_t count = cursor_varint(cursor);

  if (count > LB_TRACE_STREAMS_MAX)
    return LB_E_DAMAGED;
  for (uint32_t i = 0; i < count; i++) {
    struct reader_stream *stream;
    int r = stream_get(reader, i, &stream);

    if (r < 0)
      return r;
    stream->last = cursor_varint(cursor);
    stream->end = cursor_varint(cursor);
  }
  return cursor->is_short ? LB_E_DAMAGED : 0;
}

int index_ends(struct lb_trace_reader *reader)
{
  struct cursor cursor = {reader->raw.bytes, reader->raw.bytes + reader->raw.size, false};
  uint64_t count = cursor_varint(&cursor);

  for (uint64_t i = 0; i < count && !cursor.is_short; i++)
    cursor_varint(&cursor);
  return cursor.is_short ? LB_E_DAMAGED : index_streams(reader, &cursor);
}

/* Returns 0; -ENOMEM, -errno; or LB_E_DAMAGED, LB_E_TRUNCATED if there is no usable index. */
static int index_read(struct lb_trace_reader *reader)
{
  struct cursor cursor;
  struct chunk_head head;
  uint64_t place;
  int r;

  if (reader->size < TRACE_HEAD_SIZE + END_SIZE)
    return LB_E_TRUNCATED;
  r = chunk_find(reader, reader->size - END_SIZE, &head);
  if (r < 0 || head.type != CHUNK_END)
    return r < 0 ? r : LB_E_DAMAGED;
  r = chunk_load(reader, reader->size - END_SIZE, &head);
  if (r < 0 || reader->raw.size < 8)
    return r < 0 ? r : LB_E_DAMAGED;
  place = bytes_get_u64(reader->raw.bytes);
  r = place ? chunk_find(reader, place, &head) : LB_E_DAMAGED;
  if (r < 0 || head.type != CHUNK_INDEX)
    return r < 0 ? r : LB_E_DAMAGED;
  r = chunk_load(reader, place, &head);
  if (r < 0)
    return r;
  cursor = (struct cursor){reader->raw.bytes, reader->raw.bytes + reader->raw.size, false};
  r = index_places(reader, &cursor, &reader->plan.list);
  if (r >= 0)
    r = index_streams(reader, &cursor);
  if (r >= 0 && cursor_left(&cursor))
    r = index_places(reader, &cursor, &reader->paths_at);
  return r < 0 || !cursor_left(&cursor) ? r : index_places(reader, &cursor, &reader->names.at);
}

/* A stream exists even if it has no branches. Errors in the chunk show when it is read. */
static void walk_note_stream(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head)
{
  struct lb_trace_record record;
  struct reader_stream *stream;

  if (chunk_load(reader, offset, head) >= 0 && record_unpack(reader, &record) >= 0)
    (void)stream_get(reader, record.stream.number, &stream);
}

/* Notes one chunk on the walk through the file. */
static int walk_note(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head)
{
  struct chunk_position position;
  struct reader_stream *stream;
  struct chunk_head again;
  int r;

  if (head->type == CHUNK_STREAM)
    walk_note_stream(reader, offset, head);
  if (chunk_describes(head->type))
    return places_add(&reader->plan.list, offset);
  if (chunk_has_paths(head->type))
    return places_add(&reader->paths_at, offset);
  if (head->type == CHUNK_NAMES)
    return places_add(&reader->names.at, offset);
  if (!chunk_has_position(head->type))
    return 0;
  r = chunk_find_position(reader, offset, &again, &position);
  if (r >= 0)
    r = stream_get(reader, position.stream, &stream);
  if (r >= 0)
    stream->last = offset;
  return r == LB_E_DAMAGED ? 0 : r;
}

static int file_walk(struct lb_trace_reader *reader)
{
  uint64_t offset = TRACE_HEAD_SIZE;
  struct chunk_head head;
  int r;

  for (;;) {
    r = chunk_find(reader, offset, &head);
    if (r == LB_E_DAMAGED) {
      r = chunk_search(reader, offset, &offset);
      if (r >= 0)
        continue;
    }
    if (r == LB_E_TRUNCATED) {
      reader->plan.is_cut = true;
      return 0;
    }
    if (r >= 0)
      r = walk_note(reader, offset, &head);
    if (r < 0)
      return r;
    if (head.type == CHUNK_END)
      return 0;
    offset += CHUNK_HEAD_SIZE + head.stored;
  }
}

static int places_search(struct lb_trace_reader *reader)
{
  int r;

  places_forget(reader);
  r = index_read(reader);
  if (r != LB_E_DAMAGED && r != LB_E_TRUNCATED)
    return r;
  places_forget(reader);
  return file_walk(reader);
}

/* Done once: a file may have as many streams as fit in an index, and the end of each is asked for. */
int places_find(struct lb_trace_reader *reader)
{
  struct reader_plan *plan = &reader->plan;
  int r = plan->has_places ? 0 : places_search(reader);

  if (r >= 0 && !plan->has_places && reader->names.is_wanted)
    r = names_plan(reader);
  if (r < 0)
    return r;
  if (!plan->has_places) {
    plan->described = plan->list.count;
    plan->is_file_cut = plan->is_cut;
    plan->has_places = true;
  }
  plan->list.count = plan->described;
  plan->is_cut = plan->is_file_cut;
  return 0;
}

/* Loads the steps and links of the whole file, once. Errors in them show when entries need them. */
static int paths_load(struct lb_trace_reader *reader)
{
  int r = 0;

  for (size_t i = 0; !reader->has_paths && i < reader->paths_at.count; i++) {
    struct chunk_head head;

    r = chunk_find(reader, reader->paths_at.places[i], &head);
    if (r >= 0 && chunk_has_paths(head.type))
      r = chunk_load(reader, reader->paths_at.places[i], &head);
    if (r >= 0 && chunk_has_paths(head.type))
      r = paths_unpack(reader);
    if (r < 0 && r != LB_E_DAMAGED && r != LB_E_TRUNCATED)
      return r;
  }
  reader->has_paths = true;
  return 0;
}

/* ---- the plan ---- */

static void places_reverse(uint64_t *places, size_t count)
{
  for (size_t i = 0; i < count / 2; i++) {
    uint64_t place = places[i];

    places[i] = places[count - 1 - i];
    places[count - 1 - i] = place;
  }
}

/* Adds the stream's chunks, from the last one backwards, until they hold `count` branches. */
static int plan_stream(struct lb_trace_reader *reader, uint32_t stream, uint64_t count)
{
  struct reader_plan *plan = &reader->plan;
  uint64_t place = reader->streams[stream].last, have = 0;

  while (place && have < count) {
    struct chunk_position position;
    struct chunk_head head;
    int r = chunk_find_position(reader, place, &head, &position);

    if (r == LB_E_DAMAGED || r == LB_E_TRUNCATED || (r >= 0 && position.stream != stream)) {
      plan->is_broken = true;
      break;
    }
    if (r < 0)
      return r;
    if (places_add(&plan->list, place) < 0)
      return -ENOMEM;
    have += position.count;
    if (position.previous >= place) {
      plan->is_broken = true;
      break;
    }
    place = position.previous;
  }
  if (plan->list.count > plan->described)
    places_reverse(plan->list.places + plan->described, plan->list.count - plan->described);
  plan->skip = have > count ? have - count : 0;
  return 0;
}

int lb_trace_reader_tail(struct lb_trace_reader *reader, uint32_t stream, uint64_t count)
{
  struct reader_plan *plan = &reader->plan;
  int r;

  reader_rewind(reader, stream);
  r = places_find(reader);
  if (r >= 0)
    r = paths_load(reader);
  if (r < 0)
    return r;
  plan->is_on = true;
  plan->is_broken = false;
  plan->skip = 0;
  if (stream == LB_TRACE_ALL)
    return 0;
  if (stream >= reader->count)
    return LB_E_NO_ENTRY;
  return plan_stream(reader, stream, count);
}

void lb_trace_reader_skip(struct lb_trace_reader *reader)
{
  if (reader->plan.is_on && reader->plan.at < reader->plan.described)
    reader->plan.at = reader->plan.described;
  reader->names.is_due = false;
}
