/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads chunks of a file that may be truncated, damaged or malicious: sizes are checked before anything is read or
 * allocated, checksums before anything is unpacked.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/reader.h"

int reader_read(struct lb_trace_reader *reader, uint64_t offset, void *bytes, size_t size)
{
  char *at = bytes;

  if (offset > reader->size || size > reader->size - offset)
    return LB_E_TRUNCATED;
  if (reader->fd < 0) {
    memcpy(bytes, reader->bytes + offset, size);
    return 0;
  }
  while (size > 0) {
    ssize_t done = pread(reader->fd, at, size, (off_t)offset);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return -errno;
    if (done == 0)
      return LB_E_TRUNCATED; /* the file was truncated while we read */
    at += done;
    size -= (size_t)done;
    offset += (uint64_t)done;
  }
  return 0;
}

int chunk_find(struct lb_trace_reader *reader, uint64_t offset, struct chunk_head *ret_head)
{
  uint8_t bytes[CHUNK_HEAD_SIZE];
  struct chunk_head head;
  int r = reader_read(reader, offset, bytes, sizeof(bytes));

  if (r < 0)
    return r;
  if (!chunk_head_get(bytes, offset, &head))
    return LB_E_DAMAGED;
  if (head.stored > reader->size - offset - CHUNK_HEAD_SIZE)
    return LB_E_TRUNCATED;
  if (chunk_has_position(head.type) && head.stored < POSITION_SIZE)
    return LB_E_DAMAGED;
  *ret_head = head;
  return 0;
}

int chunk_find_position(struct lb_trace_reader *reader, uint64_t offset, struct chunk_head *ret_head,
                        struct chunk_position *ret_position)
{
  uint8_t bytes[POSITION_SIZE];
  struct chunk_head head;
  int r = chunk_find(reader, offset, &head);

  if (r < 0)
    return r;
  if (!chunk_has_position(head.type))
    return LB_E_DAMAGED;
  r = reader_read(reader, offset + CHUNK_HEAD_SIZE, bytes, sizeof(bytes));
  if (r < 0)
    return r;
  *ret_head = head;
  *ret_position = chunk_position_get(bytes);
  return 0;
}

/* The first magic number in the bytes from `at` on, or `size`. */
static size_t magic_search(const uint8_t *bytes, size_t size, size_t at)
{
  uint8_t magic[4];
  const uint8_t *found;

  bytes_put_u32(magic, CHUNK_MAGIC);
  found = at < size ? memmem(bytes + at, size - at, magic, sizeof(magic)) : NULL;
  return found ? (size_t)(found - bytes) : size;
}

int chunk_search(struct lb_trace_reader *reader, uint64_t offset, uint64_t *ret_offset)
{
  uint8_t window[4096];

  offset++;
  while (offset < reader->size && reader->size - offset >= CHUNK_HEAD_SIZE) {
    size_t size = reader->size - offset < sizeof(window) ? (size_t)(reader->size - offset) : sizeof(window);
    int r = reader_read(reader, offset, window, size);

    if (r < 0)
      return r;
    for (size_t at = 0; (at = magic_search(window, size, at)) < size; at++) {
      struct chunk_head head;

      r = chunk_find(reader, offset + at, &head);
      if (r >= 0) {
        *ret_offset = offset + at;
        return 0;
      }
      if (r != LB_E_DAMAGED && r != LB_E_TRUNCATED)
        return r;
    }
    offset += size - 3; /* a magic number may span two blocks */
  }
  return LB_E_TRUNCATED;
}

/* ---- contents ---- */

/* Unpacks the contents after the position. */
static int contents_unpack(struct lb_trace_reader *reader, const uint8_t *bytes, size_t size)
{
  struct buffer *raw = &reader->raw;
  size_t done;

  raw->size = 0;
  if (buffer_reserve(raw, reader->head.raw + 1u) < 0)
    return -ENOMEM;
  if (!(reader->head.flags & CHUNK_ZSTD)) {
    if (size != reader->head.raw)
      return LB_E_DAMAGED;
    memcpy(raw->bytes, bytes, size);
    raw->size = size;
    return 0;
  }
  done = ZSTD_decompressDCtx(reader->zstd, raw->bytes, reader->head.raw, bytes, size);
  if (ZSTD_isError(done) || done != reader->head.raw)
    return LB_E_DAMAGED;
  raw->size = done;
  return 0;
}

int chunk_load(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head)
{
  struct buffer *stored = &reader->stored;
  size_t before = chunk_has_position(head->type) ? POSITION_SIZE : 0;
  int r;

  if (ahead_take(reader, offset, head))
    return 0;
  stored->size = 0;
  if (buffer_reserve(stored, head->stored + 1u) < 0)
    return -ENOMEM;
  r = reader_read(reader, offset + CHUNK_HEAD_SIZE, stored->bytes, head->stored);
  if (r < 0)
    return r;
  if (checksum_add(0, stored->bytes, head->stored) != head->checksum)
    return LB_E_DAMAGED;
  reader->place = offset;
  reader->head = *head;
  if (before)
    reader->position = chunk_position_get(stored->bytes);
  return contents_unpack(reader, stored->bytes + before, head->stored - before);
}
