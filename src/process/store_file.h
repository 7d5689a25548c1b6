/* SPDX-License-Identifier: Apache-2.0
 *
 * The first bytes of a file of the store, which the runtime writes and both sides read.
 */
#ifndef PROCESS_STORE_FILE_H
#define PROCESS_STORE_FILE_H

#include <stdint.h>

#define STORE_SUFFIX ".code"
#define STORE_SUFFIX_NEW ".new" /* of a file that is being written */

enum { STORE_MAGIC = 0x4B53424C, STORE_PROGRAM = 240 };

struct store_header {
  uint64_t sum; /* of the bytes after the first four words */
  uint64_t magic, size, epoch;
  uint32_t number_next, unit_count; /* its steps have numbers below number_next */
  uint64_t unused;
  char program[STORE_PROGRAM]; /* path, cut to this size, ends with 0 */
};

_Static_assert(sizeof(struct store_header) % 32 == 0, "sums are made of 32 bytes at a time");

#endif
