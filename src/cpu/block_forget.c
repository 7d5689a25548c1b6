/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocks that are no longer valid: code was written to, translations of addresses changed, or the arena is full.
 */
#include "cpu/block_inside.h"

#include <string.h>

#include "cpu/transfer.h"

/* Invalidates all links and all jump targets found so far. Generation 0 marks links that were never made: when the
 * counter wraps around to it, old links are removed, so that none appears valid again. */
static void forget_links(struct cpu *cpu)
{
  struct block_cache *cache = cpu->blocks;

  if (++cpu->generation)
    return;
  cpu->generation = 1;
  for (unsigned i = 0; i < BLOCK_JUMPS; i++)
    cache->jumps[i].generation = 0;
  for (unsigned i = 0; i < HASH_SIZE; i++)
    for (struct block *block = cache->hash[i]; block; block = block->next_in_hash)
      for (unsigned k = 0; k <= block->count; k++)
        block->insns[k].link_generation = 0;
}

void block_flush_fetches(struct cpu *cpu)
{
  for (unsigned i = 0; i < FETCH_SIZE; i++)
    cpu->blocks->fetches[i].linear = 2;
  forget_links(cpu);
}

/* Handler of a block that was invalidated while it ran: the rest of it is looked up again. */
static const struct insn *run_forgotten(struct cpu *cpu, const struct insn *insn)
{
  return insn_before(cpu, insn);
}

bool block_is_forgotten(const struct insn *insn)
{
  return insn->run == run_forgotten;
}

static void hash_remove(struct block_cache *cache, struct block *block)
{
  struct block **at = &cache->hash[block_hash(block->linear, block->mode)];

  while (*at && *at != block)
    at = &(*at)->next_in_hash;
  if (*at)
    *at = block->next_in_hash;
}

static void block_kill(struct block_cache *cache, struct block *block)
{
  if (block->is_dead)
    return;
  block->is_dead = true;
  hash_remove(cache, block);
  for (unsigned i = 0; i <= block->count; i++)
    block->insns[i].run = run_forgotten;
}

/* First and last byte of a block inside one of its two pages. */
static void block_bytes_in(const struct block *block, unsigned which, unsigned *ret_first, unsigned *ret_last)
{
  unsigned first = (unsigned)(block->physical[0] & PAGE_MASK);
  unsigned size = (unsigned)(block->last - block->rip) + block->reach;

  if (which == 0) {
    *ret_first = first;
    *ret_last = first + size < PAGE_SIZE ? first + size : PAGE_SIZE - 1;
  } else {
    *ret_first = 0;
    *ret_last = (first + size) & PAGE_MASK;
  }
}

static uint64_t line_mask(unsigned first, unsigned last)
{
  unsigned low = first / 64, high = last / 64;

  return (UINT64_MAX << low) & (UINT64_MAX >> (63 - high));
}

uint64_t block_lines_in(const struct cpu *cpu, const struct block *block, uint64_t number,
                        const struct block_range *written, bool *ret_meets)
{
  uint64_t lines = 0;

  *ret_meets = false;
  for (unsigned which = 0; which < 2; which++) {
    struct block_range bytes;

    if (block->physical[which] == NO_PAGE || block_page(cpu->memory, block->physical[which]) != number)
      continue;
    block_bytes_in(block, which, &bytes.first, &bytes.last);
    lines |= line_mask(bytes.first, bytes.last);
    *ret_meets |= bytes.first <= written->last && written->first <= bytes.last;
  }
  return lines;
}

/* Removes the blocks whose bytes are written from a page's list. Data may share a line with code: blocks that do not
 * overlap stay, with their links. Returns the lines of the remaining blocks. */
static uint64_t page_forget(struct cpu *cpu, uint64_t number, const struct block_range *written)
{
  uint64_t kept = 0;
  bool is_any = false;
  struct block **at = &cpu->blocks->pages[number];

  while (*at) {
    struct block *block = *at;
    unsigned which = block_page(cpu->memory, block->physical[0]) == number ? 0 : 1;
    bool meets;
    uint64_t lines = block_lines_in(cpu, block, number, written, &meets);

    if (block->is_dead || meets) {
      *at = block->next_in_page[which];
      is_any |= !block->is_dead;
      block_kill(cpu->blocks, block);
    } else {
      kept |= lines;
      at = &block->next_in_page[which];
    }
  }
  if (is_any)
    forget_links(cpu);
  return kept;
}

void block_invalidate(struct cpu *cpu, uint64_t address, unsigned size)
{
  uint64_t number = block_page(cpu->memory, address);

  if (number == NO_PAGE || size == 0)
    return;
  unsigned first = (unsigned)(address & PAGE_MASK), last = first + size - 1;
  struct block_range written = {first, last < PAGE_SIZE ? last : PAGE_SIZE - 1};
  struct memory *memory = cpu->memory;
  if (!(memory->code[number] & line_mask(written.first, written.last)))
    return;
  uint64_t kept = 0;
  for (unsigned i = 0; i < memory->cpu_count; i++)
    kept |= page_forget(memory->cpus[i], number, &written);
  memory->code[number] = kept;
}

static void forget_blocks(struct cpu *cpu)
{
  struct block_cache *cache = cpu->blocks;

  for (unsigned i = 0; i < HASH_SIZE; i++)
    cache->hash[i] = NULL;
  uint64_t pages = cpu->memory->size / PAGE_SIZE;
  for (uint64_t i = 0; i < pages; i++)
    cache->pages[i] = NULL;
  for (unsigned i = 0; i < BLOCK_JUMPS; i++)
    cache->jumps[i].generation = 0;
  cache->used = 0;
  forget_links(cpu);
}

/* The lines with code are tracked for all processors together, so all of them drop their blocks. The others are between
 * blocks too, since processors run in turns. */
void block_flush(struct cpu *cpu)
{
  struct memory *memory = cpu->memory;

  for (unsigned i = 0; i < memory->cpu_count; i++)
    forget_blocks(memory->cpus[i]);
  memset(memory->code, 0, memory->size / PAGE_SIZE * sizeof(*memory->code));
  block_flush_fetches(cpu);
}
