/* SPDX-License-Identifier: Apache-2.0
 *
 * The memory of the code cache: the arrays of units and places, and areas with room for two pools each. An area is near
 * the code that it is for.
 */
#include <linux/mman.h>

#include "process/runtime/runtime.h"

enum { ANONYMOUS = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
enum { BOTH_SIZE = CACHE_POOLS * CACHE_AREA_SIZE, AREA_START = 64 };

static const uint64_t area_units_size = CACHE_AREA_SIZE / CACHE_GRAIN / 2 * sizeof(uint32_t);
static const uint64_t units_size = CACHE_POOLS * (uint64_t)CACHE_UNITS * sizeof(struct unit);
static const uint64_t places_size = CACHE_POOLS * (uint64_t)CACHE_PLACES * sizeof(struct place);

static void *memory_for(uint64_t size)
{
  int64_t memory = place_map(size, -1, 0);

  return is_failure(memory) ? NULL : (void *)memory;
}

/* For tests, the cache can be so small that it is always full: one area, few units. */
static void limits_set(struct runtime *runtime, uint64_t size)
{
  enum { UNIT_SIZE = 512, UNITS_LEAST = 4 };
  bool is_small = size && size < CACHE_AREA_SIZE;

  runtime->area_size = !is_small ? CACHE_AREA_SIZE : size < CACHE_SIZE_LEAST ? CACHE_SIZE_LEAST : page_up(size);
  runtime->area_most = is_small ? 1 : CACHE_AREAS;
  runtime->unit_most = is_small ? (uint32_t)(size / UNIT_SIZE) + UNITS_LEAST : CACHE_UNITS;
}

int cache_init(struct runtime *runtime)
{
  limits_set(runtime, runtime->control->cache_size);
  runtime->age = 1;
  runtime->pool = runtime->pools;
  runtime->pool->age = 1;
  runtime->units = memory_for(units_size);
  runtime->places = memory_for(places_size);
  return runtime->units && runtime->places ? index_init(runtime) : -12;
}

uint64_t cache_memory(const struct runtime *runtime)
{
  uint64_t size = units_size + index_memory() + places_size;

  for (unsigned i = 0; i < CACHE_AREAS && runtime->pools[0].areas[i].code; i++)
    size += BOTH_SIZE + CACHE_POOLS * area_units_size;
  return size;
}

/* ---- areas ---- */

bool area_is_near(const uint8_t *code, uint64_t address)
{
  int64_t low = (int64_t)(address - (uint64_t)code), high = low - CACHE_AREA_SIZE;

  return low < CACHE_REACH && low > -CACHE_REACH && high < CACHE_REACH && high > -CACHE_REACH;
}

/* Maps memory at this address, if it is free. An old kernel takes the address as a hint. */
static int64_t area_map(uint64_t wish)
{
  int64_t code =
    kernel_map(wish, BOTH_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

  if (is_failure(code) || code == (int64_t)wish)
    return code;
  kernel_call(__NR_munmap, (uint64_t)code, BOTH_SIZE, 0, 0, 0, 0);
  return -EEXIST;
}

/* Tries addresses around this one, so that areas stay in reach of each other; then any address. */
static int64_t map_near(uint64_t address)
{
  enum { STEP = 64 << 20, TRIES = 16 };
  uint64_t base = address & ~(uint64_t)(STEP - 1);

  for (uint64_t i = 1; i <= TRIES; i++) {
    uint64_t wish = base - i * STEP - BOTH_SIZE;

    if (base < 4096 * (uint64_t)STEP) /* low addresses are left to the application */
      break;
    int64_t code = area_map(wish);
    if (!is_failure(code))
      return code;
  }
  return kernel_map(0, BOTH_SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, ANONYMOUS, -1, 0);
}

static void area_clear(const struct runtime *runtime, struct area *area)
{
  area->used = AREA_START;
  area->size = area->cold = runtime->area_size / 2;
  area->cold_end = runtime->area_size;
  area->kept = 0;
  __atomic_store_n(&area->unit_count, 0, __ATOMIC_RELEASE);
}

/* Initialises an area in both pools, whose memory is mapped at `code`. */
static bool area_fill(struct runtime *runtime, unsigned number, int64_t code)
{
  uint32_t *units = memory_for(CACHE_POOLS * area_units_size);

  if (is_failure(code) || !units)
    return false;
  kernel_call(__NR_madvise, (uint64_t)code, BOTH_SIZE, MADV_DONTDUMP, 0, 0, 0);
  for (unsigned i = 0; i < CACHE_POOLS; i++) {
    struct area *area = &runtime->pools[i].areas[number];

    *area = (struct area){.code = (uint8_t *)code + (uint64_t)i * CACHE_AREA_SIZE,
                          .units = units + i * area_units_size / sizeof(*units)};
    area_clear(runtime, area);
  }
  return true;
}

static bool area_open(struct runtime *runtime, unsigned number, uint64_t address)
{
  return area_fill(runtime, number, map_near(address));
}

void cache_unmap(struct runtime *runtime)
{
  for (const struct area *area = runtime->pools[0].areas; area < runtime->pools[0].areas + CACHE_AREAS; area++)
    if (area->code)
      kernel_call(__NR_munmap, (uint64_t)area->code, BOTH_SIZE, 0, 0, 0, 0);
}

/* The runtime will not be able to map more: opens an area near each piece of code that there is. */
void cache_open_all(struct runtime *runtime)
{
  uint32_t count = 0;

  for (uint32_t i = 0; i < runtime->executable.count; i++)
    cache_area(runtime, runtime->executable.ranges[i].start);
  while (count < CACHE_AREAS && runtime->pool->areas[count].code)
    count++;
  runtime->area_most = count;
}

/* ---- snapshots ---- */

void cache_save(struct runtime *runtime, struct piece_list *pieces)
{
  const struct pool *pool = runtime->pool;

  for (const struct area *area = pool->areas; area < pool->areas + CACHE_AREAS && area->code; area++) {
    piece_add(pieces, area->code, area->used);
    piece_add(pieces, area->code + area->size, area->cold - area->size);
    piece_add(pieces, area->units, area->unit_count * sizeof(*area->units));
  }
  piece_add(pieces, runtime->units, pool->unit_count * sizeof(*runtime->units));
  piece_add(pieces, runtime->places, pool->place_count * sizeof(*runtime->places));
  index_save(runtime, pieces);
}

/* Unmaps all areas. None of them is in use yet. */
static void areas_close(struct runtime *runtime)
{
  for (unsigned i = 0; i < CACHE_AREAS && runtime->pools[0].areas[i].code; i++) {
    kernel_call(__NR_munmap, (uint64_t)runtime->pools[0].areas[i].code, BOTH_SIZE, 0, 0, 0, 0);
    for (unsigned j = 0; j < CACHE_POOLS; j++)
      runtime->pools[j].areas[i] = (struct area){0};
  }
}

bool cache_reserve(struct runtime *runtime, const struct pool *pool)
{
  for (unsigned i = 0; i < CACHE_AREAS && pool->areas[i].code; i++) {
    int64_t code = area_map((uint64_t)pool->areas[i].code);
    bool is_there = code == (int64_t)pool->areas[i].code && area_fill(runtime, i, code) &&
                    runtime->pools[0].areas[i].units == pool->areas[i].units;

    if (!is_there) {
      areas_close(runtime);
      return false;
    }
  }
  runtime->pools[0] = *pool;
  for (unsigned i = 0; i < CACHE_AREAS; i++)
    runtime->pools[0].areas[i].is_huge = false;
  return true;
}

/* ---- areas with much code ---- */

/* Most programs need a small part of one huge page: only an area with more code than that gets them, in both pools.
 * There are fewer TLB misses then. The kernel may refuse. */
static void area_use_huge(struct runtime *runtime, unsigned number)
{
  enum { SMALL = 1 << 20 };
  const struct area *area = &runtime->pool->areas[number];
  struct area *first = &runtime->pools[0].areas[number];

  if (first->is_huge || area->used < SMALL || runtime->is_confined)
    return;
  first->is_huge = true;
  kernel_call(__NR_madvise, (uint64_t)first->code, BOTH_SIZE, MADV_HUGEPAGE, 0, 0, 0);
}

void pool_clear(struct runtime *runtime, struct pool *pool)
{
  pool->unit_count = pool->place_count = 0;
  for (unsigned i = 0; i < CACHE_AREAS && pool->areas[i].code; i++)
    area_clear(runtime, &pool->areas[i]);
}

bool area_has_room(const struct area *area, uint64_t size)
{
  return area->code && area->size - area->used >= size && area->cold_end - area->cold >= size + area->kept;
}

static bool pool_has_room(const struct runtime *runtime)
{
  const struct pool *pool = runtime->pool;

  return pool->unit_count < runtime->unit_most && pool->place_count < CACHE_PLACES - CACHE_PLACES_MOST;
}

/* Addresses below 2 GiB are in reach of every area. */
struct area *cache_area(struct runtime *runtime, uint64_t address)
{
  struct area *some = NULL;

  for (unsigned i = 0; i < runtime->area_most && pool_has_room(runtime); i++) {
    struct area *area = &runtime->pool->areas[i];
    bool is_new = !area->code;

    if (is_new && some && address < INT32_MAX)
      return some;
    if (is_new && !area_open(runtime, i, address))
      break;
    area_use_huge(runtime, i);
    if (area_has_room(area, CACHE_PATH_MOST)) {
      if (is_new || address < INT32_MAX || area_is_near(area->code, address))
        return area;
      some = area;
    }
  }
  if (!some && !runtime->pool->unit_count)
    runtime_fail(PROCESS_E_CACHE_FULL, 0, address);
  runtime->is_full |= !some;
  return some;
}
