/* SPDX-License-Identifier: Apache-2.0
 *
 * The bytes of a trace file that writer and reader share: the head, the frame around every chunk, the numbers inside.
 * doc/trace-format.md describes the format in words. All numbers are little-endian.
 */
#ifndef TRACE_FORMAT_H
#define TRACE_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- the head of the file ---- */

#define TRACE_MAGIC "\x89LBR\r\n\x1a\n" /* like PNG's: reveals a file that was treated as text */
#define TRACE_MAGIC_SIZE 8u
#define TRACE_HEAD_SIZE 16u /* magic, version u16, least version of a reader u16, checksum of these 12 bytes u32 */
#define TRACE_VERSION 5u    /* version that is written, and the highest that can be read */
#define TRACE_LEAST 5u      /* an older reader takes chunks with stamps for damaged */
#define TRACE_NAMED 4u      /* traces of this version may have names */
#define TRACE_EARLY 2u      /* its form of entries is not read any more */

/* ---- the frame of a chunk ---- */

#define CHUNK_MAGIC 0x4B4E4843u /* "CHNK" */
#define CHUNK_HEAD_SIZE 24u
#define CHUNK_STORED_MAX (17u << 20) /* bytes in the file */
#define CHUNK_RAW_MAX (16u << 20)    /* the same, not compressed */

enum chunk_type {
  CHUNK_META = 1,
  CHUNK_MODULE,
  CHUNK_CODE,
  CHUNK_STREAM,
  CHUNK_BRANCHES,
  CHUNK_GAP,
  CHUNK_INDEX,
  CHUNK_END,
  CHUNK_STEPS, /* since version 2 */
  CHUNK_LINKS,
  CHUNK_ENTRIES,
  CHUNK_NAMES, /* since version 4 */
};

enum { CHUNK_ZSTD = 1u << 0 }; /* flags: what follows the position, if there is one, is a zstd frame */

/* magic u32, type u16, flags u16, stored u32, raw u32, checksum of what is stored u32, checksum of these 20 bytes and
 * of the chunk's place in the file (u64) u32. The place is included so that a chunk inside another chunk's data is not
 * taken for a chunk. */
struct chunk_head {
  uint16_t type;
  uint16_t flags;
  uint32_t stored; /* bytes that follow the head */
  uint32_t raw;    /* their size when unpacked, without the position */
  uint32_t checksum;
};

void chunk_head_put(const struct chunk_head *head, uint64_t offset, uint8_t bytes[CHUNK_HEAD_SIZE]);

/* Returns false when these bytes are no head of a chunk at this place, or its sizes are beyond the limits. */
bool chunk_head_get(const uint8_t bytes[CHUNK_HEAD_SIZE], uint64_t offset, struct chunk_head *ret_head);

/* The position comes before the contents of branches, entries and gaps. It is never compressed, so that a stream can be
 * followed without unpacking it. */
#define POSITION_SIZE 24u

struct chunk_position {
  uint64_t first;    /* number of the first branch */
  uint64_t previous; /* place of the previous chunk of the stream; 0: none */
  uint32_t stream;
  uint32_t count; /* branches in it; in a gap 0 */
};

void chunk_position_put(const struct chunk_position *position, uint8_t bytes[POSITION_SIZE]);
struct chunk_position chunk_position_get(const uint8_t bytes[POSITION_SIZE]);

static inline bool chunk_has_position(unsigned type)
{
  return type == CHUNK_BRANCHES || type == CHUNK_ENTRIES || type == CHUNK_GAP;
}

/* ---- numbers inside a chunk ---- */

#define VARINT_MAX 10u /* bytes of the longest */

/* Writes seven bits per byte, the lowest first; the top bit says that more follow. Returns the address after it. */
static inline uint8_t *varint_put(uint8_t *at, uint64_t value)
{
  for (; value > 0x7F; value >>= 7)
    *at++ = (uint8_t)(value | 0x80);
  *at++ = (uint8_t)value;
  return at;
}

/* Encodes a difference so that small ones of either sign become small numbers. */
static inline uint64_t zigzag(uint64_t difference)
{
  return difference << 1 ^ (0 - (difference >> 63));
}

static inline uint64_t zagzig(uint64_t value)
{
  return value >> 1 ^ (0 - (value & 1));
}

/* Bytes that are read from front to end; past the end, everything is 0 and `is_short` says so. */
struct cursor {
  const uint8_t *at, *end;
  bool is_short;
};

uint64_t cursor_varint(struct cursor *cursor); /* a number that does not fit 64 bits makes it short, too */
uint8_t cursor_u8(struct cursor *cursor);
/* The next `size` bytes, or NULL. */
const uint8_t *cursor_bytes(struct cursor *cursor, uint64_t size);

static inline size_t cursor_left(const struct cursor *cursor)
{
  return (size_t)(cursor->end - cursor->at);
}

#endif
