/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps an address in the cache back to the application's address, for signals and faults. It does not take the lock: a
 * pool is not reused while a thread is in it.
 */
#include "process/runtime/runtime.h"

struct area *cache_area_of(struct runtime *runtime, uint64_t pc)
{
  for (struct pool *pool = runtime->pools; pool < runtime->pools + CACHE_POOLS; pool++)
    for (struct area *area = pool->areas; area < pool->areas + CACHE_AREAS; area++)
      if (area->code && pc - (uint64_t)area->code < CACHE_AREA_SIZE)
        return area;
  return NULL;
}

bool cache_has(struct runtime *runtime, uint64_t pc)
{
  return cache_area_of(runtime, pc) != NULL;
}

/* The last unit of the area that begins at or before the address, or NULL. */
static const struct unit *unit_before(const struct runtime *runtime, const struct area *area, uint64_t pc)
{
  uint32_t low = 0, high = __atomic_load_n(&area->unit_count, __ATOMIC_ACQUIRE);

  while (low < high) {
    uint32_t middle = low + (high - low) / 2;

    if ((uint64_t)runtime->units[area->units[middle]].code <= pc)
      low = middle + 1;
    else
      high = middle;
  }
  return low ? &runtime->units[area->units[low - 1]] : NULL;
}

/* Walks along the path up to the instruction whose translation holds the offset. */
static void walk_to(const struct runtime *runtime, const struct unit *unit, uint32_t offset, struct location *location)
{
  const struct place *place = runtime->places + unit->place;
  const struct lb_step *step = runtime->steps + unit->head;

  location->address = unit->address;
  for (unsigned i = 1; i < unit->place_count && place[1].code <= offset; i++, place++) {
    bool is_branch = place->spilled & PLACE_BRANCH;

    if (is_branch)
      location->passed++;
    step += is_branch;
    location->address = is_branch && step->flags & LB_STEP_FOLLOW ? step->to : location->address + place->length;
  }
  bool is_before = offset < place->code; /* before the first instruction, R11 is restored */
  location->is_boundary = is_before ? !offset : offset == place->code;
  location->spilled = offset >= place->code + 9u ? place->spilled & ~(unsigned)PLACE_BRANCH : 0;
  if (!unit->uses_r11 || is_before)
    location->spilled |= PLACE_R11;
}

bool cache_locate(struct runtime *runtime, uint64_t pc, struct location *ret_location)
{
  const struct area *area = cache_area_of(runtime, pc);
  const struct unit *unit = area ? unit_before(runtime, area, pc) : NULL;

  *ret_location = (struct location){.is_stub = true};
  if (!unit || pc - (uint64_t)unit->code >= unit->size)
    return false;
  uint32_t offset = (uint32_t)(pc - (uint64_t)unit->code);
  ret_location->is_stub = false;
  walk_to(runtime, unit, offset, ret_location);
  return true;
}
