/* SPDX-License-Identifier: Apache-2.0
 *
 * Stamps to bytes and back. The bytes are untrusted: every number is checked.
 */
#include "trace/stamp.h"

#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/error.h"

enum { HAS_CPU = 1 << 4, HAS_USED = 1 << 5, TYPE_MASK = HAS_CPU - 1 };

_Static_assert((int)TRACE_STAMP_TYPES <= (int)HAS_CPU, "");

const char *trace_stamp_name(unsigned type)
{
  static const char *const names[TRACE_STAMP_TYPES] = {
    [TRACE_STAMP_TIME] = "time",     [TRACE_STAMP_START] = "start",   [TRACE_STAMP_CALL] = "call",
    [TRACE_STAMP_RETURN] = "return", [TRACE_STAMP_SIGNAL] = "signal", [TRACE_STAMP_END] = "end",
    [TRACE_STAMP_HELD] = "held",
  };

  return type < TRACE_STAMP_TYPES ? names[type] : "?";
}

/* ---- to bytes ---- */

void stamp_encoder_begin(struct stamp_encoder *encoder)
{
  encoder->model = (struct stamp_model){0};
  encoder->bytes.size = 0;
  encoder->count = 0;
}

static void number_put(struct buffer *bytes, uint64_t value)
{
  bytes->size = (size_t)(varint_put(bytes->bytes + bytes->size, value) - bytes->bytes);
}

static size_t path_size(const char *path)
{
  return path ? strnlen(path, TRACE_PATH_MAX) : 0;
}

static void path_put(struct buffer *bytes, const char *path)
{
  size_t size = path_size(path);

  number_put(bytes, path ? size + 1 : 0);
  if (size)
    memcpy(bytes->bytes + bytes->size, path, size);
  bytes->size += size;
}

static void call_put(struct buffer *bytes, const struct trace_stamp *stamp)
{
  number_put(bytes, stamp->code);
  number_put(bytes, stamp->argument_count);
  for (unsigned i = 0; i < stamp->argument_count; i++)
    number_put(bytes, zigzag(stamp->arguments[i]));
  path_put(bytes, stamp->paths[0]);
  path_put(bytes, stamp->paths[1]);
}

int stamp_encoder_add(struct stamp_encoder *encoder, const struct trace_stamp *stamp, uint64_t number)
{
  enum { NUMBERS_MOST = 16 };
  struct stamp_model *model = &encoder->model;
  struct buffer *bytes = &encoder->bytes;

  if (stamp->type >= TRACE_STAMP_TYPES || stamp->argument_count > TRACE_ARGUMENTS_MAX)
    return -EINVAL;
  if (buffer_reserve(bytes, NUMBERS_MOST * VARINT_MAX + path_size(stamp->paths[0]) + path_size(stamp->paths[1])) < 0)
    return -ENOMEM;
  bytes->bytes[bytes->size++] =
    (uint8_t)(stamp->type | (stamp->has_cpu ? HAS_CPU : 0) | (stamp->has_used ? HAS_USED : 0));
  number_put(bytes, number - model->number);
  number_put(bytes, zigzag(stamp->time - model->time));
  if (stamp->has_cpu)
    number_put(bytes, stamp->cpu);
  if (stamp->has_used)
    number_put(bytes, zigzag(stamp->used - model->used));
  if (stamp->type == TRACE_STAMP_CALL)
    call_put(bytes, stamp);
  if (stamp->type == TRACE_STAMP_SIGNAL)
    number_put(bytes, stamp->code);
  if (stamp->type >= TRACE_STAMP_RETURN)
    number_put(bytes, zigzag((uint64_t)stamp->result));
  if (stamp->type == TRACE_STAMP_SIGNAL)
    number_put(bytes, stamp->value);
  *model = (struct stamp_model){number, stamp->time, stamp->has_used ? stamp->used : model->used};
  encoder->count++;
  return 0;
}

/* ---- from bytes ---- */

void stamp_decoder_begin(struct stamp_decoder *decoder, struct cursor bytes)
{
  decoder->model = (struct stamp_model){0};
  decoder->cursor = bytes;
}

/* A number that must not be larger than `most`. */
static uint64_t number_read(struct cursor *cursor, uint64_t most)
{
  uint64_t value = cursor_varint(cursor);

  cursor->is_short |= value > most;
  return value;
}

static const char *path_read(struct stamp_decoder *decoder, unsigned index)
{
  uint64_t size = cursor_varint(&decoder->cursor);
  const uint8_t *bytes = size ? cursor_bytes(&decoder->cursor, size - 1) : NULL;
  char *path = decoder->paths[index];

  if (!bytes || size - 1 > TRACE_PATH_MAX || memchr(bytes, 0, size - 1)) {
    decoder->cursor.is_short |= size > 0;
    return NULL;
  }
  memcpy(path, bytes, size - 1);
  path[size - 1] = 0;
  return path;
}

static void call_read(struct stamp_decoder *decoder, struct trace_stamp *stamp)
{
  struct cursor *cursor = &decoder->cursor;
  uint64_t count;

  stamp->code = (uint32_t)number_read(cursor, UINT32_MAX);
  count = number_read(cursor, TRACE_ARGUMENTS_MAX);
  if (cursor->is_short)
    return;
  stamp->argument_count = (uint8_t)count;
  for (unsigned i = 0; i < count; i++)
    stamp->arguments[i] = zagzig(cursor_varint(cursor));
  stamp->paths[0] = path_read(decoder, 0);
  stamp->paths[1] = path_read(decoder, 1);
}

int stamp_decoder_next(struct stamp_decoder *decoder, struct trace_stamp *ret_stamp)
{
  struct cursor *cursor = &decoder->cursor;
  struct stamp_model *model = &decoder->model;
  struct trace_stamp stamp = {0};
  uint64_t ahead;
  unsigned flags;

  if (!cursor_left(cursor))
    return 0;
  flags = cursor_u8(cursor);
  stamp.type = flags & TYPE_MASK;
  ahead = cursor_varint(cursor);
  stamp.number = model->number + ahead;
  stamp.time = model->time + zagzig(cursor_varint(cursor));
  stamp.has_cpu = flags & HAS_CPU;
  stamp.has_used = flags & HAS_USED;
  stamp.cpu = stamp.has_cpu ? (uint16_t)number_read(cursor, UINT16_MAX) : 0;
  stamp.used = stamp.has_used ? model->used + zagzig(cursor_varint(cursor)) : 0;
  if (stamp.type == TRACE_STAMP_CALL)
    call_read(decoder, &stamp);
  if (stamp.type == TRACE_STAMP_SIGNAL)
    stamp.code = (uint32_t)number_read(cursor, UINT32_MAX);
  if (stamp.type >= TRACE_STAMP_RETURN)
    stamp.result = (int64_t)zagzig(cursor_varint(cursor));
  if (stamp.type == TRACE_STAMP_SIGNAL)
    stamp.value = cursor_varint(cursor);
  if (cursor->is_short || stamp.type >= TRACE_STAMP_TYPES || flags >= HAS_USED << 1 || stamp.number < ahead) {
    cursor->at = cursor->end;
    return LB_E_DAMAGED;
  }
  *model = (struct stamp_model){stamp.number, stamp.time, stamp.has_used ? stamp.used : model->used};
  *ret_stamp = stamp;
  return 1;
}
