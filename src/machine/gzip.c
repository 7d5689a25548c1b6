/* SPDX-License-Identifier: Apache-2.0
 *
 * Kernels and modules that are compressed with gzip (RFC 1952), as multiboot's loaders take them. zlib unpacks them;
 * the bytes are hostile: the result is bounded by the caller's limit, memory grows with what was really unpacked, and
 * damaged data ends the work.
 */
#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/base.h"
#include "machine/kernel.h"

#define ROOM_FIRST ((size_t)64 << 10)
#define PART_MAX ((size_t)1 << 30) /* zlib counts in unsigned int */
#define WINDOW_GZIP (15 + 16)      /* inflateInit2: the largest window, with a gzip header */

struct unpacker {
  z_stream stream;
  const uint8_t *at, *end; /* the compressed bytes that are left */
  uint8_t *bytes;
  size_t size, capacity, limit;
  const char *why;
};

bool gzip_is(const struct machine_image *image)
{
  return image->size >= 2 && image->bytes[0] == 0x1F && image->bytes[1] == 0x8B;
}

/* Makes room for up to one byte more than the limit: that byte shows that the limit is exceeded. */
static int room_make(struct unpacker *u)
{
  size_t capacity = u->capacity ? 2 * u->capacity : ROOM_FIRST;

  if (u->size < u->capacity)
    return 0;
  if (capacity > u->limit + 1)
    capacity = u->limit + 1;
  uint8_t *bytes = realloc(u->bytes, capacity);
  if (!bytes)
    return -ENOMEM;
  u->bytes = bytes;
  u->capacity = capacity;
  return 0;
}

static int refuse(struct unpacker *u, int error, const char *why)
{
  u->why = why;
  return error;
}

/* A file may have several members, one after the other, and padding of zeros. Returns 1 at its end. */
static int member_next(struct unpacker *u)
{
  struct machine_image rest = {u->at, (size_t)(u->end - u->at)};

  if (gzip_is(&rest))
    return inflateReset(&u->stream) == Z_OK ? 0 : -ENOMEM;
  for (size_t i = 0; i < rest.size; i++)
    if (rest.bytes[i] != 0)
      return refuse(u, LB_E_BAD_IMAGE, "its gzip data is followed by other bytes");
  return 1;
}

/* Returns 0 to continue, 1 at the end. Every call that returns 0 consumes or produces at least a byte. */
static int unpack_part(struct unpacker *u)
{
  size_t left = (size_t)(u->end - u->at), room = u->capacity - u->size;
  z_stream *z = &u->stream;
  unsigned in = (unsigned)(left < PART_MAX ? left : PART_MAX), out = (unsigned)(room < PART_MAX ? room : PART_MAX);

  z->next_in = (Bytef *)(uintptr_t)u->at;
  z->avail_in = in;
  z->next_out = u->bytes + u->size;
  z->avail_out = out;
  int code = inflate(z, Z_NO_FLUSH);
  u->at += in - z->avail_in;
  u->size += out - z->avail_out;
  if (u->size > u->limit)
    return refuse(u, LB_E_TOO_BIG, "unpacked, it is larger than the guest's memory");
  switch (code) {
  case Z_OK:
    return 0;
  case Z_STREAM_END:
    return member_next(u);
  case Z_BUF_ERROR:
    return refuse(u, LB_E_BAD_IMAGE, "its gzip data ends too early");
  case Z_MEM_ERROR:
    return -ENOMEM;
  default:
    return refuse(u, LB_E_BAD_IMAGE, "its gzip data is damaged");
  }
}

int gzip_unpack(const struct machine_image *image, uint64_t limit, struct machine_image *ret_image,
                const char **ret_why)
{
  struct unpacker u = {.at = image->bytes, .end = image->bytes + image->size, .limit = (size_t)limit};

  if (inflateInit2(&u.stream, WINDOW_GZIP) != Z_OK)
    return -ENOMEM;
  int r = 0;
  while (r == 0) {
    r = room_make(&u);
    if (r == 0)
      r = unpack_part(&u);
  }
  inflateEnd(&u.stream);
  if (r < 0) {
    free(u.bytes);
    *ret_why = u.why ? u.why : lb_strerror(r);
    return r;
  }
  *ret_image = (struct machine_image){u.bytes, u.size};
  return 0;
}
