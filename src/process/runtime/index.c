/* SPDX-License-Identifier: Apache-2.0
 *
 * The index of the cache: a hash table from addresses in the application to the newest unit of each. It begins small,
 * because most programs are, and each page of it costs time and memory. When a quarter of it is used, a table of twice
 * the size takes its place. Room for the tables of all sizes is reserved at the start: the table of 2^n slots follows
 * the smaller ones, which have as many slots together.
 */
#include <asm/unistd.h>
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum { SLOTS_LEAST = 1 << 13, SPARE = 4 }; /* one slot of SPARE is taken at most */

static const uint64_t index_size = 2 * (uint64_t)CACHE_INDEX * sizeof(uint32_t);

int index_init(struct runtime *runtime)
{
  int64_t memory = place_map(index_size, -1, 0);

  if (is_failure(memory))
    return (int)memory;
  runtime->index = (uint32_t *)memory;
  runtime->counts.index_slots = SLOTS_LEAST;
  return 0;
}

uint64_t index_memory(void)
{
  return index_size;
}

static uint32_t *table_of(const struct runtime *runtime, uint32_t slots)
{
  return runtime->index + slots;
}

/* The slot of the newest unit at the address, or the free one where it would be. */
static uint32_t *slot_find(const struct runtime *runtime, uint64_t address)
{
  uint32_t slots = runtime->counts.index_slots, *table = table_of(runtime, slots);
  uint64_t at = address * 0x9E3779B97F4A7C15 >> 41 & (slots - 1);

  while (table[at] && runtime->units[table[at] - 1].address != address)
    at = (at + 1) & (slots - 1);
  return &table[at];
}

struct unit *index_find(const struct runtime *runtime, uint64_t address)
{
  uint32_t number = *slot_find(runtime, address);

  return number ? &runtime->units[number - 1] : NULL;
}

/* The kernel refuses to discard memory that the program has locked. */
static bool table_give_back(const struct runtime *runtime, uint32_t slots)
{
  uint64_t start = (uint64_t)table_of(runtime, slots);

  return !runtime->is_confined &&
         !is_failure(kernel_call(__NR_madvise, start, slots * sizeof(uint32_t), MADV_DONTNEED, 0, 0, 0));
}

static void index_grow(struct runtime *runtime)
{
  uint32_t slots = runtime->counts.index_slots;
  const uint32_t *old = table_of(runtime, slots);

  runtime->counts.index_slots = 2 * slots;
  for (uint32_t i = 0; i < slots; i++)
    if (old[i])
      *slot_find(runtime, runtime->units[old[i] - 1].address) = old[i];
  table_give_back(runtime, slots);
}

void index_put(struct runtime *runtime, uint32_t number)
{
  uint32_t *slot = slot_find(runtime, runtime->units[number].address);

  runtime->counts.index_used += !*slot;
  *slot = number + 1;
  if (runtime->counts.index_used > runtime->counts.index_slots / SPARE && runtime->counts.index_slots < CACHE_INDEX)
    index_grow(runtime);
}

/* The index is enlarged first if needed, so that a process that begins with the snapshot need not do so at once. */
void index_save(struct runtime *runtime, struct piece_list *pieces)
{
  if (runtime->counts.index_used > runtime->counts.index_slots / SPARE / 2 && runtime->counts.index_slots < CACHE_INDEX)
    index_grow(runtime);
  uint32_t slots = runtime->counts.index_slots;
  piece_add(pieces, table_of(runtime, slots), slots * sizeof(uint32_t));
}

/* The index keeps its size, because about as much code will be translated again. Memory of a snapshot is not given
 * back: its old contents would reappear. */
void index_clear(struct runtime *runtime)
{
  enum { SMALL = 1 << 16 }; /* slots: a table of at most this size is cleared faster than it is mapped again */
  uint32_t slots = runtime->counts.index_slots;

  runtime->counts.index_used = 0;
  if (slots <= SMALL || slots == runtime->index_inherited || !table_give_back(runtime, slots))
    memset(table_of(runtime, slots), 0, slots * sizeof(uint32_t));
}
