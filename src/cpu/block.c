/* SPDX-License-Identifier: Apache-2.0
 *
 * The cache of blocks. Blocks are allocated in one arena, which is emptied when it is full. This happens only between
 * blocks, so that the running block stays valid. See block.h.
 */
#include "cpu/block_inside.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "cpu/decode.h"
#include "cpu/paging.h"
#include "cpu/pair.h"
#include "cpu/point.h"
#include "cpu/transfer.h"
#include "isa/isa.h"

#define ARENA_SIZE (UINT64_C(96) << 20)

int block_cache_new(const struct memory *memory, struct block_cache **ret_cache)
{
  struct block_cache *cache = calloc(1, sizeof(*cache));

  if (!cache)
    return -ENOMEM;
  void *arena = mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  cache->arena = arena == MAP_FAILED ? NULL : arena;
  cache->pages = calloc(memory->size / PAGE_SIZE, sizeof(struct block *));
  if (!cache->arena || !cache->pages) {
    block_cache_free(cache);
    return -ENOMEM;
  }
  for (unsigned i = 0; i < FETCH_SIZE; i++)
    cache->fetches[i].linear = 2;
  *ret_cache = cache;
  return 0;
}

struct block_jump *block_cache_jumps(struct block_cache *cache)
{
  return cache->jumps;
}

void block_cache_free(struct block_cache *cache)
{
  if (!cache)
    return;
  if (cache->arena)
    munmap(cache->arena, ARENA_SIZE);
  free(cache->pages);
  free(cache);
}

/* ---- finding ---- */

struct fetch *block_fetches(struct cpu *cpu)
{
  return cpu->blocks->fetches;
}

static struct fetch *fetch_entry(struct cpu *cpu, uint64_t page)
{
  return &cpu->blocks->fetches[page / PAGE_SIZE % FETCH_SIZE];
}

static uint64_t fetch_tag(const struct cpu *cpu, uint64_t page)
{
  return page | (cpu->mode & MODE_USER ? 1 : 0);
}

/* Physical address of a page of code. Raises #PF, or #GP for an address that is not canonical. */
static uint64_t fetch_page(struct cpu *cpu, uint64_t linear)
{
  uint64_t page = linear & ~PAGE_MASK;
  struct fetch *entry = fetch_entry(cpu, page);

  if (entry->linear != fetch_tag(cpu, page)) {
    unsigned user = cpu->mode & MODE_USER ? PAGING_USER : 0;

    if ((cpu->mode & MODE_BITS) == MODE_64 && (uint64_t)((int64_t)(linear << 16) >> 16) != linear)
      fault_gp(cpu, 0);
    entry->physical = paging_translate(cpu, linear, PAGING_FETCH | user).physical;
    entry->linear = fetch_tag(cpu, page);
  }
  return entry->physical;
}

static uint64_t code_base(const struct cpu *cpu)
{
  return cpu->segment[CS].linear_base;
}

/* Whether the page that the block's single instruction extends into is still the same. If its translation is not
 * cached, the answer is no, unless `may` allows faults: then the page is fetched, as the instruction would do. */
static bool second_page_matches(struct cpu *cpu, const struct block *block, bool may)
{
  if (block->physical[1] == NO_PAGE)
    return true;
  uint64_t page = ((block->cs_base + block->last) & cpu->linear_mask) & ~PAGE_MASK;
  const struct fetch *entry = fetch_entry(cpu, page);
  if (entry->linear != fetch_tag(cpu, page))
    return may && fetch_page(cpu, page) == block->physical[1];
  return entry->physical == block->physical[1];
}

static struct block *block_find(struct cpu *cpu, uint64_t linear, uint64_t physical, bool may_fault)
{
  struct block *block = cpu->blocks->hash[block_hash(linear, cpu->mode)];

  for (; block; block = block->next_in_hash)
    if (block_is_at(cpu, block, cpu->rip) && block->physical[0] == physical &&
        second_page_matches(cpu, block, may_fault))
      return block;
  return NULL;
}

struct block *block_peek(struct cpu *cpu)
{
  uint64_t linear = (code_base(cpu) + cpu->rip) & cpu->linear_mask;
  uint64_t page = linear & ~PAGE_MASK;
  const struct fetch *entry = fetch_entry(cpu, page);

  if (entry->linear != fetch_tag(cpu, page))
    return NULL;
  return block_find(cpu, linear, entry->physical | (linear & PAGE_MASK), false);
}

/* ---- building ---- */

/* The end of a block that did not jump: continues with the next block. */
static const struct insn *run_end(struct cpu *cpu, const struct insn *insn)
{
  return transfer_sequential(cpu, insn);
}

/* Fetches up to 15 bytes and returns their number. Without `wants_more` it stops at the end of the page. With it, it
 * continues in the next page if necessary, and raises the faults of fetching there. */
static unsigned fetch_bytes(struct cpu *cpu, uint64_t linear, uint64_t physical, uint8_t *bytes, bool wants_more,
                            uint64_t *ret_second)
{
  unsigned size = (unsigned)(PAGE_SIZE - (linear & PAGE_MASK));

  size = size < ISA_LENGTH_MAX ? size : ISA_LENGTH_MAX;
  for (unsigned i = 0; i < size; i++)
    bytes[i] = (uint8_t)access_load_physical(cpu, physical + i, 1);
  *ret_second = NO_PAGE;
  if (!wants_more || size == ISA_LENGTH_MAX)
    return size;
  uint64_t next = (linear + size) & cpu->linear_mask;
  *ret_second = fetch_page(cpu, next);
  for (unsigned i = size; i < ISA_LENGTH_MAX; i++)
    bytes[i] = (uint8_t)access_load_physical(cpu, *ret_second + (i - size), 1);
  return ISA_LENGTH_MAX;
}

/* How many of these bytes are within the limit of CS. The first one is. */
static unsigned inside_limit(const struct cpu *cpu, uint64_t rip, unsigned size)
{
  uint64_t behind = cpu->code_limit - rip;

  return behind < size ? (unsigned)behind + 1 : size;
}

/* Builds the block's part at a code point: the block ends before it, or consists of the instruction that ends the
 * run. */
static unsigned build_point(struct block *block, bool *ret_ends)
{
  *ret_ends = true;
  if (block->count)
    return 0;
  block->insns[0] = (struct insn){.run = point_run, .rip = block->rip};
  return 1;
}

/* Decodes the instruction at `offset` bytes from the block's start. Returns its length, or 0 if the block must end
 * before it because fetching it may fault: a block that begins there raises the fault. */
static unsigned build_one(struct cpu *cpu, struct block *block, unsigned offset, bool *ret_ends)
{
  uint64_t rip = block->rip + offset;
  uint64_t linear = (block->cs_base + rip) & cpu->linear_mask;
  uint64_t physical = block->physical[0] + offset;
  struct insn *insn = &block->insns[block->count];
  bool is_rom = memory_is_rom(cpu->memory, physical);
  uint8_t bytes[ISA_LENGTH_MAX];
  uint64_t second;

  if (rip > cpu->code_limit)
    return 0;
  if (__builtin_expect(cpu->code_points && !(block->mode & MODE_STEP), 0) && point_is_at(cpu, linear))
    return build_point(block, ret_ends);
  unsigned size = fetch_bytes(cpu, linear, physical, bytes, false, &second);
  int length = decode_insn(cpu, rip, bytes, inside_limit(cpu, rip, size), is_rom, insn, ret_ends);
  if (length < 0 && block->count)
    return 0;
  if (length < 0 && cpu->code_limit - rip >= size) {
    size = fetch_bytes(cpu, linear, physical, bytes, true, &second);
    length = decode_insn(cpu, rip, bytes, inside_limit(cpu, rip, size), is_rom, insn, ret_ends);
    *ret_ends = true;
    block->physical[1] = second;
  }
  if (length < 0) /* it extends beyond the limit */
    fault_gp(cpu, 0);
  return (unsigned)length;
}

static void block_register(struct cpu *cpu, struct block *block)
{
  struct block_cache *cache = cpu->blocks;

  for (unsigned which = 0; which < 2; which++) {
    uint64_t number = block->physical[which] == NO_PAGE ? NO_PAGE : block_page(cpu->memory, block->physical[which]);

    if (number == NO_PAGE)
      continue;
    if (cache->pages[number] != block) { /* its second page may be the same as its first */
      block->next_in_page[which] = cache->pages[number];
      cache->pages[number] = block;
    }
    bool was_clean = cpu->memory->code[number] == 0;
    bool meets;
    cpu->memory->code[number] |= block_lines_in(cpu, block, number, &(struct block_range){1, 0}, &meets);
    if (was_clean)
      access_flush_writes(cpu, block->physical[which] & ~PAGE_MASK);
  }
  struct block **head = &cache->hash[block_hash(block->linear, block->mode)];
  block->next_in_hash = *head;
  *head = block;
}

static void block_close(const struct cpu *cpu, struct block *block, unsigned size)
{
  assert(block->count <= BLOCK_MAX);
  for (unsigned i = 0; i < block->count; i++) {
    block->insns[i].left = (uint8_t)(block->count - i);
    insn_handler *pair = i + 1 < block->count ? pair_handler(&block->insns[i]) : NULL;
    if (pair)
      block->insns[i].run = pair;
  }
  block->insns[block->count] = (struct insn){.run = run_end, .rip = (block->rip + size) & cpu->linear_mask};
  block->last = block->rip + size - 1;
  insn_handler *last = block->count ? block->insns[block->count - 1].run : NULL;
  block->reach = last == decode_run_ud || last == decode_run_gp ? ISA_LENGTH_MAX - 1 : 0;
}

static struct block *block_build(struct cpu *cpu, uint64_t physical)
{
  struct block_cache *cache = cpu->blocks;
  size_t most = sizeof(struct block) + (BLOCK_MAX + 1) * sizeof(struct insn);

  if (cache->used + most > ARENA_SIZE)
    block_flush(cpu);
  struct block *block = (struct block *)(void *)(cache->arena + cache->used);
  *block = (struct block){.rip = cpu->rip,
                          .cs_base = code_base(cpu),
                          .code_limit = cpu->code_limit,
                          .linear = (code_base(cpu) + cpu->rip) & cpu->linear_mask,
                          .mode = cpu->mode,
                          .physical = {physical, NO_PAGE}};
  unsigned most_count = cpu->mode & MODE_ONE ? 1 : BLOCK_MAX;
  unsigned size = 0;
  for (bool ends = false; !ends && block->count < most_count && (physical & PAGE_MASK) + size < PAGE_SIZE;) {
    unsigned length = build_one(cpu, block, size, &ends);

    if (!length)
      break;
    size += length;
    block->count++;
  }
  block_close(cpu, block, size);
  cache->used += sizeof(struct block) + (block->count + 1u) * sizeof(struct insn);
  cache->used = (cache->used + 63) & ~(size_t)63;
  assert(cache->used <= ARENA_SIZE);
  if (memory_at(cpu->memory, physical))
    block_register(cpu, block);
  return block;
}

struct block *block_get(struct cpu *cpu)
{
  uint64_t linear = (code_base(cpu) + cpu->rip) & cpu->linear_mask;

  if (cpu->rip > cpu->code_limit)
    fault_gp(cpu, 0);
  uint64_t physical = fetch_page(cpu, linear) | (linear & PAGE_MASK);
  struct block *block = block_find(cpu, linear, physical, true);
  return block ? block : block_build(cpu, physical);
}
