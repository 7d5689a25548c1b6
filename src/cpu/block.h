/* SPDX-License-Identifier: Apache-2.0
 *
 * Cached blocks: sequences of decoded instructions, found by their location (physical address, offset, base and limit
 * of CS) and by the mode that they were decoded for. A write to their bytes discards them. Links between blocks, and
 * the table that finds blocks for indirect branches, are valid only while cpu->generation stays the same: every change
 * that could make them wrong (translations, code) increments it.
 */
#ifndef CPU_BLOCK_H
#define CPU_BLOCK_H

#include "cpu/insn.h"

#define BLOCK_MAX 32 /* instructions; an end marker follows them */

struct block {
  uint64_t rip;
  uint64_t cs_base;
  uint64_t code_limit; /* bytes beyond it are not part of the block */
  uint64_t linear;
  uint64_t last;        /* offset of its last byte */
  uint64_t physical[2]; /* of its first byte; of the page that its last instruction reaches into: -1 for none */
  struct block *next_in_hash;
  struct block *next_in_page[2];
  uint32_t mode;
  uint16_t count;
  uint8_t reach; /* bytes after the last that could turn the invalid bytes at its end into an instruction */
  bool is_dead;
  struct insn insns[];
};

/* Returns 0 or -ENOMEM. */
int block_cache_new(const struct memory *memory, struct block_cache **ret_cache);
void block_cache_free(struct block_cache *cache);

/* For cpu->jumps. */
struct block_jump *block_cache_jumps(struct block_cache *cache);

/* Returns the block at cpu->rip, and decodes it if necessary. Raises faults of fetching. */
struct block *block_get(struct cpu *cpu);

/* Returns the block at cpu->rip if it is cached, else NULL. Raises no fault. */
struct block *block_peek(struct cpu *cpu);

/* A small table for indirect branches: it holds the block that was last found at an offset. */
#define BLOCK_JUMPS 4096u
struct block_jump {
  uint64_t rip;
  uint32_t generation; /* 0 for none */
  uint32_t mode;
  const struct block *block;
};

/* The table's entry for an offset, which may be that of another offset. */
static inline struct block_jump *block_jump_at(const struct cpu *cpu, uint64_t rip)
{
  return &cpu->jumps[(rip ^ rip >> 12) % BLOCK_JUMPS];
}

/* Whether this is the block at this offset, in the current code segment and mode. */
static inline bool block_is_at(const struct cpu *cpu, const struct block *block, uint64_t rip)
{
  return block->rip == rip && block->mode == cpu->mode && block->cs_base == cpu->segment[CS].linear_base &&
         block->code_limit == cpu->code_limit;
}

/* Makes every processor discard its blocks in physical [address, address + size), which lies within a page and was or
 * will be written. */
void block_invalidate(struct cpu *cpu, uint64_t address, unsigned size);

/* Discards every block of all processors that share the memory. Must be called between blocks. */
void block_flush(struct cpu *cpu);

/* Discards only the translations of fetches. */
void block_flush_fetches(struct cpu *cpu);

/* Translations of linear pages of code that fetching has cached; for save.c. */
#define FETCH_SIZE 256u
struct fetch {
  uint64_t linear; /* bit 0: supervisor or user; bit 1: no entry */
  uint64_t physical;
};
struct fetch *block_fetches(struct cpu *cpu);

/* Whether the instruction's block was discarded while it runs: its own bytes may have changed. */
bool block_is_forgotten(const struct insn *insn);

#endif
