/* SPDX-License-Identifier: Apache-2.0
 *
 * Heads of chunks, their checksums, and the numbers in them, to and from bytes.
 */
#include "trace/format.h"

#include "base/base.h"

static uint32_t head_checksum(const uint8_t *bytes, uint64_t offset)
{
  uint8_t place[8];

  bytes_put_u64(place, offset);
  return checksum_add(checksum_add(0, bytes, CHUNK_HEAD_SIZE - 4), place, sizeof(place));
}

void chunk_head_put(const struct chunk_head *head, uint64_t offset, uint8_t bytes[CHUNK_HEAD_SIZE])
{
  bytes_put_u32(bytes, CHUNK_MAGIC);
  bytes_put_u32(bytes + 4, head->type | (uint32_t)head->flags << 16);
  bytes_put_u32(bytes + 8, head->stored);
  bytes_put_u32(bytes + 12, head->raw);
  bytes_put_u32(bytes + 16, head->checksum);
  bytes_put_u32(bytes + 20, head_checksum(bytes, offset));
}

bool chunk_head_get(const uint8_t bytes[CHUNK_HEAD_SIZE], uint64_t offset, struct chunk_head *ret_head)
{
  struct chunk_head head = {
    .type = (uint16_t)bytes_get_u32(bytes + 4),
    .flags = (uint16_t)(bytes_get_u32(bytes + 4) >> 16),
    .stored = bytes_get_u32(bytes + 8),
    .raw = bytes_get_u32(bytes + 12),
    .checksum = bytes_get_u32(bytes + 16),
  };

  if (bytes_get_u32(bytes) != CHUNK_MAGIC || bytes_get_u32(bytes + 20) != head_checksum(bytes, offset) ||
      head.stored > CHUNK_STORED_MAX || head.raw > CHUNK_RAW_MAX)
    return false;
  *ret_head = head;
  return true;
}

void chunk_position_put(const struct chunk_position *position, uint8_t bytes[POSITION_SIZE])
{
  bytes_put_u64(bytes, position->first);
  bytes_put_u64(bytes + 8, position->previous);
  bytes_put_u32(bytes + 16, position->stream);
  bytes_put_u32(bytes + 20, position->count);
}

struct chunk_position chunk_position_get(const uint8_t bytes[POSITION_SIZE])
{
  return (struct chunk_position){
    .first = bytes_get_u64(bytes),
    .previous = bytes_get_u64(bytes + 8),
    .stream = bytes_get_u32(bytes + 16),
    .count = bytes_get_u32(bytes + 20),
  };
}

/* ---- reading numbers ---- */

static uint64_t cursor_end(struct cursor *cursor)
{
  cursor->at = cursor->end;
  cursor->is_short = true;
  return 0;
}

uint64_t cursor_varint(struct cursor *cursor)
{
  uint64_t value = 0;

  for (unsigned shift = 0; shift < 64 && cursor->at < cursor->end; shift += 7) {
    uint8_t byte = *cursor->at++;

    if (shift == 63 && byte > 1)
      break;
    value |= (uint64_t)(byte & 0x7F) << shift;
    if (!(byte & 0x80))
      return value;
  }
  return cursor_end(cursor);
}

uint8_t cursor_u8(struct cursor *cursor)
{
  return cursor->at < cursor->end ? *cursor->at++ : (uint8_t)cursor_end(cursor);
}

const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t size)
{
  const uint8_t *bytes = cursor->at;

  if (size > cursor_left(cursor)) {
    cursor_end(cursor);
    return NULL;
  }
  cursor->at += size;
  return bytes;
}
