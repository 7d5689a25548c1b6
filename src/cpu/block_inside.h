/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of the block cache: block.c finds and builds blocks, block_forget.c removes them. No other file includes
 * this.
 */
#ifndef CPU_BLOCK_INSIDE_H
#define CPU_BLOCK_INSIDE_H

#include "cpu/block.h"

#define HASH_SIZE 65536u
#define NO_PAGE UINT64_MAX

struct block_cache {
  uint8_t *arena;
  size_t used;
  struct block **pages; /* per page of RAM: blocks with code in it */
  struct block *hash[HASH_SIZE];
  struct fetch fetches[FETCH_SIZE];
  struct block_jump jumps[BLOCK_JUMPS];
};

static inline unsigned block_hash(uint64_t linear, uint32_t mode)
{
  return (unsigned)((linear ^ linear >> 15 ^ linear >> 31 ^ (uint64_t)mode << 9) % HASH_SIZE);
}

/* The number of a page of RAM, or NO_PAGE. */
static inline uint64_t block_page(const struct memory *memory, uint64_t physical)
{
  const uint8_t *at = memory_at(memory, physical);

  return at ? (uint64_t)(at - memory->ram) / PAGE_SIZE : NO_PAGE;
}

/* Bytes of a page. */
struct block_range {
  unsigned first, last;
};

/* The lines that a block has in a page of RAM (both of its pages may be the same one), and whether its bytes overlap
 * the written ones. */
uint64_t block_lines_in(const struct cpu *cpu, const struct block *block, uint64_t number,
                        const struct block_range *written, bool *ret_meets);

#endif
