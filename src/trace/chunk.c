/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a chunk to the file: compressed if that makes it smaller, framed, and in one piece.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"

#include "trace/writer.h"
#include <assert.h>

#define COMPRESS_MIN 64u /* bytes; for fewer, a zstd frame only adds to the size */

/* Measured with entries of gcc, gzip and bzip2: level 3 takes three times as long and makes them 2 % smaller to 8 %
 * larger. Steps at level 6 would make the trace of gcc, which has a million of them, 2 % smaller. */
#define LEVEL 3
#define LEVEL_ENTRIES 1
#define LEVEL_STEPS 1

/* Entries have few repetitions left that zstd could find, and with a smaller table it searches less. Measured with five
 * programs of bench/process: the writer takes some 3 % less time, and the size grows by up to 1 %. With 10 bits, long
 * loops are twice as large. */
#define HASH_BITS_ENTRIES 12

int raw_varint(struct lb_trace_writer *writer, uint64_t value)
{
  struct buffer *raw = &writer->raw;

  if (buffer_reserve(raw, VARINT_MAX) < 0)
    return -ENOMEM;
  raw->size = (size_t)(varint_put(raw->bytes + raw->size, value) - raw->bytes);
  return 0;
}

int raw_bytes(struct lb_trace_writer *writer, const void *bytes, size_t size)
{
  struct buffer *raw = &writer->raw;

  if (raw_varint(writer, size) < 0 || buffer_reserve(raw, size) < 0)
    return -ENOMEM;
  if (size)
    memcpy(raw->bytes + raw->size, bytes, size);
  raw->size += size;
  return 0;
}

static int chunk_level(unsigned type)
{
  return type == CHUNK_ENTRIES ? LEVEL_ENTRIES : type == CHUNK_STEPS ? LEVEL_STEPS : LEVEL;
}

/* Appends the contents to the head, compressed or not. Returns 0 or -ENOMEM. */
static int chunk_pack(struct lb_trace_writer *writer, struct chunk_head *head, size_t least)
{
  struct buffer *packed = &writer->packed;
  const struct buffer *raw = &writer->raw;
  size_t size;

  if (buffer_reserve(packed, ZSTD_compressBound(raw->size)) < 0)
    return -ENOMEM;
  head->raw = (uint32_t)raw->size;
  if (raw->size >= COMPRESS_MIN) {
    ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_compressionLevel, chunk_level(head->type));
    ZSTD_CCtx_setParameter(writer->zstd, ZSTD_c_hashLog, head->type == CHUNK_ENTRIES ? HASH_BITS_ENTRIES : 0);
    size = ZSTD_compress2(writer->zstd, packed->bytes + packed->size, packed->capacity - packed->size, raw->bytes,
                          raw->size);
    if (!ZSTD_isError(size) && size < raw->size && size >= least) {
      head->flags |= CHUNK_ZSTD;
      packed->size += size;
      return 0;
    }
  }
  if (raw->size)
    memcpy(packed->bytes + packed->size, raw->bytes, raw->size);
  packed->size += raw->size;
  return 0;
}

static int chunk_frame(struct lb_trace_writer *writer, struct chunk_head *head, const struct chunk_position *position,
                       size_t least)
{
  struct buffer *packed = &writer->packed;

  packed->size = 0;
  if (buffer_reserve(packed, CHUNK_HEAD_SIZE + POSITION_SIZE) < 0)
    return -ENOMEM;
  packed->size = CHUNK_HEAD_SIZE;
  if (position) {
    chunk_position_put(position, packed->bytes + packed->size);
    packed->size += POSITION_SIZE;
  }
  if (chunk_pack(writer, head, least) < 0)
    return -ENOMEM;
  head->stored = (uint32_t)(packed->size - CHUNK_HEAD_SIZE);
  head->checksum = checksum_add(0, packed->bytes + CHUNK_HEAD_SIZE, head->stored);
  chunk_head_put(head, writer->file.size, packed->bytes);
  return 0;
}

/* The index lists every chunk that belongs to no stream. */
static int chunk_note(struct lb_trace_writer *writer, struct writer_places *list)
{
  uint64_t *place = array_append(&list->places, &list->count, &list->capacity);

  if (!place)
    return -ENOMEM;
  *place = writer->file.size;
  return 0;
}

int chunk_write_least(struct lb_trace_writer *writer, enum chunk_type type, const struct chunk_position *position,
                      size_t least)
{
  struct chunk_head head = {.type = (uint16_t)type};

  if (writer->error < 0)
    return writer->error;
  assert(writer->raw.size <= CHUNK_RAW_MAX); /* the reader refuses more */
  writer->error = chunk_frame(writer, &head, position, least);
  if (writer->error >= 0 && type < CHUNK_BRANCHES)
    writer->error = chunk_note(writer, &writer->described);
  if (writer->error >= 0 && (type == CHUNK_STEPS || type == CHUNK_LINKS))
    writer->error = chunk_note(writer, &writer->paths_at);
  if (writer->error >= 0 && type == CHUNK_NAMES)
    writer->error = chunk_note(writer, &writer->names_at);
  if (writer->error >= 0)
    writer->error = trace_file_write(&writer->file, writer->packed.bytes, writer->packed.size);
  return writer->error;
}

/* ---- the end of the file ---- */

/* With too many describing chunks (a program that generates code all the time) there is no index, and a reader must
 * walk through the file. */
static bool index_fits(const struct lb_trace_writer *writer)
{
  size_t places = writer->described.count + writer->paths_at.count + writer->names_at.count;

  return (places + 2 * writer->count + 4) * VARINT_MAX <= CHUNK_RAW_MAX;
}

static int index_places(struct lb_trace_writer *writer, const struct writer_places *list)
{
  uint64_t before = 0;
  int r = raw_varint(writer, list->count);

  for (size_t i = 0; r >= 0 && i < list->count; i++) {
    r = raw_varint(writer, list->places[i] - before);
    before = list->places[i];
  }
  return r;
}

static int index_fill(struct lb_trace_writer *writer)
{
  int r = index_places(writer, &writer->described);

  if (r >= 0)
    r = raw_varint(writer, writer->count);
  for (size_t i = 0; r >= 0 && i < writer->count; i++) {
    r = raw_varint(writer, writer->streams[i].previous);
    if (r >= 0)
      r = raw_varint(writer, writer->streams[i].next);
  }
  if (r >= 0)
    r = index_places(writer, &writer->paths_at);
  return r < 0 ? r : index_places(writer, &writer->names_at);
}

int index_write(struct lb_trace_writer *writer)
{
  uint64_t place = writer->file.size;
  bool has_index = index_fits(writer);

  writer->raw.size = 0;
  if (has_index && (index_fill(writer) < 0 || chunk_write(writer, CHUNK_INDEX, NULL) < 0))
    return writer->error < 0 ? writer->error : -ENOMEM;
  writer->raw.size = 0;
  if (buffer_reserve(&writer->raw, 8) < 0)
    return -ENOMEM;
  bytes_put_u64(writer->raw.bytes, has_index ? place : 0);
  writer->raw.size = 8;
  return chunk_write(writer, CHUNK_END, NULL);
}
