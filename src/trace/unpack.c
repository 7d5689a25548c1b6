/* SPDX-License-Identifier: Apache-2.0
 *
 * Unpacks a loaded chunk into a record. Unknown bytes after the known fields are ignored: later versions may add
 * fields.
 */
#include <string.h>

#include "base/base.h"
#include "trace/reader.h"

static struct cursor contents(const struct lb_trace_reader *reader)
{
  return (struct cursor){reader->raw.bytes, reader->raw.bytes + reader->raw.size, false};
}

/* Copies a text and terminates it with a zero byte. A text that contains one, or is too long, is invalid. */
static const char *text_unpack(struct cursor *cursor, char copy[LB_TRACE_TEXT_MAX + 1])
{
  uint64_t size = cursor_varint(cursor);
  const uint8_t *bytes = size <= LB_TRACE_TEXT_MAX ? cursor_bytes(cursor, size) : NULL;

  copy[0] = '\0';
  if (!bytes || memchr(bytes, 0, (size_t)size)) {
    cursor->is_short = true;
    return copy;
  }
  memcpy(copy, bytes, (size_t)size);
  copy[size] = '\0';
  return copy;
}

static uint32_t number_unpack(struct cursor *cursor)
{
  uint64_t number = cursor_varint(cursor);

  if (number > UINT32_MAX)
    cursor->is_short = true;
  return (uint32_t)number;
}

static void meta_unpack(struct lb_trace_reader *reader, struct cursor *cursor, struct lb_trace_meta *meta)
{
  meta->key = text_unpack(cursor, reader->texts[0]);
  meta->value = text_unpack(cursor, reader->texts[1]);
}

static void module_unpack(struct lb_trace_reader *reader, struct cursor *cursor, struct lb_trace_module *module)
{
  module->space = number_unpack(cursor);
  module->is_gone = cursor_varint(cursor) & 1;
  module->address = cursor_varint(cursor);
  module->size = cursor_varint(cursor);
  module->offset = cursor_varint(cursor);
  module->name = text_unpack(cursor, reader->texts[0]);
  module->build_id_size = number_unpack(cursor);
  if (module->build_id_size > LB_TRACE_BUILD_ID_MAX)
    cursor->is_short = true;
  module->build_id = cursor_bytes(cursor, module->build_id_size);
}

static void code_unpack(struct cursor *cursor, struct lb_trace_code *code)
{
  code->space = number_unpack(cursor);
  code->address = cursor_varint(cursor);
  code->size = number_unpack(cursor);
  code->bytes = cursor_bytes(cursor, code->size);
}

static void stream_unpack(struct lb_trace_reader *reader, struct cursor *cursor, struct lb_trace_stream *stream)
{
  stream->number = number_unpack(cursor);
  stream->space = number_unpack(cursor);
  stream->process = number_unpack(cursor);
  stream->thread = number_unpack(cursor);
  stream->name = text_unpack(cursor, reader->texts[0]);
  if (stream->number >= LB_TRACE_STREAMS_MAX)
    cursor->is_short = true;
}

bool chunk_describes(unsigned type)
{
  return type == CHUNK_META || type == CHUNK_MODULE || type == CHUNK_CODE || type == CHUNK_STREAM;
}

int record_unpack(struct lb_trace_reader *reader, struct lb_trace_record *ret_record)
{
  struct cursor cursor = contents(reader);
  struct lb_trace_record record;

  switch (reader->head.type) {
  case CHUNK_META:
    record.type = LB_TRACE_META;
    meta_unpack(reader, &cursor, &record.meta);
    break;
  case CHUNK_MODULE:
    record.type = LB_TRACE_MODULE;
    module_unpack(reader, &cursor, &record.module);
    break;
  case CHUNK_CODE:
    record.type = LB_TRACE_CODE;
    code_unpack(&cursor, &record.code);
    break;
  case CHUNK_STREAM:
    record.type = LB_TRACE_STREAM;
    stream_unpack(reader, &cursor, &record.stream);
    break;
  default:
    return LB_E_DAMAGED;
  }
  if (cursor.is_short)
    return LB_E_DAMAGED;
  *ret_record = record;
  return 0;
}

int gap_unpack(struct lb_trace_reader *reader, struct lb_trace_gap *ret_gap)
{
  struct cursor cursor = contents(reader);
  struct lb_trace_gap gap = {.stream = reader->position.stream, .first = reader->position.first};
  uint64_t reason = cursor_varint(&cursor);

  gap.count = cursor_varint(&cursor);
  gap.reason = reason < LB_TRACE_GAP_REASONS ? (uint8_t)reason : LB_TRACE_LOST;
  if (cursor.is_short || gap.count > UINT64_MAX - gap.first)
    return LB_E_DAMAGED;
  *ret_gap = gap;
  return 0;
}
