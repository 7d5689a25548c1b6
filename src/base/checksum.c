/* SPDX-License-Identifier: Apache-2.0
 *
 * The checksum of traces and saved machines.
 */
#include "base/base.h"

/* CRC-32C (Castagnoli), four bits at a time, for processors without an instruction for it. */
static const uint32_t nibbles[16] = {
  0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
  0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
};

static uint32_t checksum_slow(uint32_t sum, const uint8_t *at, size_t size)
{
  for (size_t i = 0; i < size; i++) {
    sum ^= at[i];
    sum = sum >> 4 ^ nibbles[sum & 15];
    sum = sum >> 4 ^ nibbles[sum & 15];
  }
  return sum;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t checksum_fast(uint32_t sum, const uint8_t *at, size_t size)
{
  uint64_t wide = sum;

  for (; size >= 8; at += 8, size -= 8)
    wide = __builtin_ia32_crc32di(wide, bytes_get_u64(at));
  sum = (uint32_t)wide;
  for (; size; at++, size--)
    sum = __builtin_ia32_crc32qi(sum, *at);
  return sum;
}
#endif

uint32_t checksum_add(uint32_t sum, const void *bytes, size_t size)
{
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2"))
    return ~checksum_fast(~sum, bytes, size);
#endif
  return ~checksum_slow(~sum, bytes, size);
}
