/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the checksums of a forged machine right, so that what stands behind them is looked at. Sizes and names are left
 * as they are; where they lead nowhere, sealing ends. For fuzz_save and test_save.
 */
#ifndef FUZZ_SEAL_H
#define FUZZ_SEAL_H

#include "base/base.h"
#include "machine/save.h"

static inline void seal(uint8_t *bytes, size_t size)
{
  size_t at = SAVE_HEAD_SIZE, end = at;

  if (size < SAVE_HEAD_SIZE)
    return;
  bytes_put_u32(bytes + 12, checksum_add(0, bytes, 12));
  while (size - at >= SAVE_SECTION_SIZE) {
    uint8_t *head = bytes + at;
    uint64_t length = bytes_get_u64(head + 8);

    end = at;
    at += SAVE_SECTION_SIZE;
    if (length > size - at)
      return;
    if (at + length == size && length == 4)
      bytes_put_u32(bytes + at, checksum_add(0, bytes, end));
    bytes_put_u32(head + 16, checksum_add(0, bytes + at, (size_t)length));
    bytes_put_u32(head + 20, checksum_add(0, head, 20));
    at += (size_t)length;
  }
}

#endif
