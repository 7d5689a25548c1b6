/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the code cache, the index from application addresses to blocks, and the small table in the region that
 * indirect branches look into by themselves.
 */
#include <linux/mman.h>

#include "process/runtime.h"

static const uint64_t index_size = CACHE_INDEX * sizeof(struct cache_entry);

int cache_init(struct cache *cache)
{
  enum { ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
  int64_t code = kernel_map(0, CACHE_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, ANONYMOUS, -1, 0);
  if (is_failure(code))
    return (int)code;
  int64_t index = kernel_map(0, index_size, PROT_READ | PROT_WRITE, ANONYMOUS, -1, 0);
  if (is_failure(index))
    return (int)index;
  cache->code = (uint8_t *)code;
  cache->index = (struct cache_entry *)index;
  return 0;
}

static uint64_t hash(uint64_t address)
{
  return address * 0x9E3779B97F4A7C15 >> 44 & (CACHE_INDEX - 1);
}

const struct cache_entry *cache_find(const struct cache *cache, uint64_t address)
{
  for (uint64_t at = hash(address);; at = (at + 1) & (CACHE_INDEX - 1)) {
    const struct cache_entry *entry = &cache->index[at];
    if (entry->address == address && entry->direct)
      return entry;
    if (!entry->direct)
      return NULL;
  }
}

/* There is always a free place: cache_make_room sees to it. */
void cache_add(struct cache *cache, const struct cache_entry *entry)
{
  uint64_t at = hash(entry->address);
  while (cache->index[at].direct)
    at = (at + 1) & (CACHE_INDEX - 1);
  cache->index[at] = *entry;
  cache->count++;
}

void cache_make_room(struct runtime *runtime)
{
  const struct cache *cache = &runtime->cache;
  if (cache->used + CACHE_BLOCK_MOST > CACHE_SIZE || cache->count > CACHE_INDEX / 4 * 3)
    cache_flush(runtime);
}

static uint64_t *lookup_from(const struct runtime *runtime)
{
  return (uint64_t *)((uint8_t *)runtime->state + REGION_LOOKUP_FROM);
}

static uint64_t *lookup_to(const struct runtime *runtime)
{
  return (uint64_t *)((uint8_t *)runtime->state + REGION_LOOKUP_TO);
}

/* Untouched pages are 0, and no address with an index other than 0 is 0. Entry 0 gets one that has another index. */
void cache_flush(struct runtime *runtime)
{
  struct cache *cache = &runtime->cache;
  kernel_call(28, (uint64_t)cache->index, index_size, MADV_DONTNEED, 0, 0, 0);
  kernel_call(28, (uint64_t)lookup_from(runtime), REGION_LOOKUP_TO - REGION_LOOKUP_FROM, MADV_DONTNEED, 0, 0, 0);
  lookup_from(runtime)[0] = 1;
  cache->used = 16; /* offset 0 means none */
  cache->count = 0;
  cache->generation++;
}

void cache_publish(struct runtime *runtime, const struct cache_entry *entry)
{
  uint16_t at = (uint16_t)entry->address;
  lookup_from(runtime)[at] = entry->address;
  lookup_to(runtime)[at] = (uint64_t)(runtime->cache.code + entry->indirect);
}
