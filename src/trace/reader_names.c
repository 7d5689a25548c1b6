/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code that is in no file. A name may have been read after its code ran, and then holds for earlier branches,
 * too. So the reader gives all records of names ahead whenever it begins anew, and each again in its place, from which
 * on the name replaces an older one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/reader.h"

/* A type of records that the public header does not have: only a reader that was asked for names gives it. */
#define TYPE_NAMES ((enum lb_trace_type)(LB_TRACE_STOP + 1)) /* + 2: reader_stamps.c */

void trace_reader_want_names(struct lb_trace_reader *reader)
{
  reader->names.is_wanted = true;
  lb_trace_reader_rewind(reader);
}

const struct trace_names *trace_record_names(const struct lb_trace_record *record)
{
  return record->type == TYPE_NAMES ? (const struct trace_names *)(const void *)record->code.bytes : NULL;
}

static int record_give(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  record->type = TYPE_NAMES;
  record->code = (struct lb_trace_code){.bytes = (const uint8_t *)&reader->names.record};
  return 1;
}

/* ---- contents ---- */

static int list_reserve(struct reader_names *names, size_t count)
{
  struct trace_name *list;

  if (count <= names->capacity)
    return 0;
  list = realloc(names->list, count * sizeof(*list));
  if (!list)
    return -ENOMEM;
  names->list = list;
  names->capacity = count;
  return 0;
}

static void name_unpack(struct cursor *cursor, uint64_t *end, struct trace_name *name)
{
  name->address = *end + zagzig(cursor_varint(cursor));
  name->size = cursor_varint(cursor);
  name->length = (size_t)cursor_varint(cursor);
  name->text = name->length <= TRACE_NAME_MAX ? (const char *)cursor_bytes(cursor, name->length) : NULL;
  if (!name->text || memchr(name->text, 0, name->length))
    cursor->is_short = true;
  *end = name->address + name->size;
}

int names_unpack(struct lb_trace_reader *reader, struct lb_trace_record *ret_record)
{
  struct cursor cursor = {reader->raw.bytes, reader->raw.bytes + reader->raw.size, false};
  struct reader_names *names = &reader->names;
  uint64_t space = cursor_varint(&cursor), original = cursor_varint(&cursor), count = cursor_varint(&cursor), end = 0;

  if (cursor.is_short || space > UINT32_MAX || original > UINT32_MAX || count > TRACE_NAMES_MAX)
    return LB_E_DAMAGED;
  if (list_reserve(names, (size_t)count) < 0)
    return -ENOMEM;
  for (size_t i = 0; i < count && !cursor.is_short; i++)
    name_unpack(&cursor, &end, &names->list[i]);
  if (cursor.is_short)
    return LB_E_DAMAGED;
  names->record = (struct trace_names){
    .place = reader->place,
    .space = (uint32_t)space,
    .original = (uint32_t)original,
    .names = names->list,
    .count = (size_t)count,
  };
  return record_give(reader, ret_record);
}

/* ---- ahead ---- */

/* Damage shows when the chunk is read in its place. */
static int chunk_give(struct lb_trace_reader *reader, uint64_t place, struct lb_trace_record *record)
{
  struct chunk_head head;
  int r = chunk_find(reader, place, &head);

  if (r >= 0 && head.type != CHUNK_NAMES)
    r = LB_E_DAMAGED;
  if (r >= 0)
    r = chunk_load(reader, place, &head);
  if (r >= 0)
    r = names_unpack(reader, record);
  reader->names.record.is_ahead = true;
  return r == LB_E_DAMAGED || r == LB_E_TRUNCATED ? 0 : r;
}

int names_ahead(struct lb_trace_reader *reader, struct lb_trace_record *ret_record)
{
  struct reader_names *names = &reader->names;
  int r = reader->plan.has_places ? 0 : places_find(reader);

  if (r >= 0 && !names->is_begun && names->at.count) {
    names->is_begun = true;
    names->record = (struct trace_names){.is_begin = true};
    return record_give(reader, ret_record);
  }
  while (r == 0 && names->next < names->at.count)
    r = chunk_give(reader, names->at.places[names->next++], ret_record);
  if (r <= 0)
    names->is_due = false;
  return r;
}

int names_plan(struct lb_trace_reader *reader)
{
  struct reader_places *list = &reader->plan.list;
  const struct reader_places *names = &reader->names.at;
  size_t count = list->count, more = names->count;

  for (size_t i = 0; i < more; i++)
    if (!array_append(&list->places, &list->count, &list->capacity))
      return -ENOMEM;
  for (size_t at = count + more; more > 0;) { /* from the end: nothing is overwritten before it was moved */
    bool is_name = !count || names->places[more - 1] > list->places[count - 1];

    list->places[--at] = is_name ? names->places[--more] : list->places[--count];
  }
  return 0;
}
