/* SPDX-License-Identifier: Apache-2.0
 *
 * gzip without compression.
 */
#include "export/pprof.h"

/* The polynomial of RFC 1952, four bits at a time. */
static uint32_t crc_update(uint32_t crc, const uint8_t *bytes, size_t size)
{
  static const uint32_t table[16] = {
    0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4, 0x4DB26158, 0x5005713C,
    0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C, 0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C,
  };

  crc = ~crc;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

/* An uncompressed block. */
static void block_put(struct gzip *gzip, struct export_job *job, bool is_last)
{
  export_u8(job, is_last);
  export_u16(job, (unsigned)gzip->count);
  export_u16(job, ~(unsigned)gzip->count & 0xffff);
  export_put(job, gzip->bytes, gzip->count);
  gzip->crc = crc_update(gzip->crc, gzip->bytes, gzip->count);
  gzip->size += (uint32_t)gzip->count;
  gzip->count = 0;
}

void gzip_begin(struct gzip *gzip, struct export_job *job)
{
  static const uint8_t head[10] = {0x1f, 0x8b, 8, [9] = 255}; /* deflate; no time; unknown system */

  export_put(job, head, sizeof(head));
  gzip->count = 0;
  gzip->crc = gzip->size = 0;
}

void gzip_put(struct gzip *gzip, struct export_job *job, const void *bytes, size_t size)
{
  while (size) {
    size_t part = GZIP_BLOCK - gzip->count < size ? GZIP_BLOCK - gzip->count : size;

    memcpy(gzip->bytes + gzip->count, bytes, part);
    gzip->count += part;
    bytes = (const uint8_t *)bytes + part;
    size -= part;
    if (gzip->count == GZIP_BLOCK)
      block_put(gzip, job, false);
  }
}

void gzip_end(struct gzip *gzip, struct export_job *job)
{
  block_put(gzip, job, true);
  export_u32(job, gzip->crc);
  export_u32(job, gzip->size);
}
