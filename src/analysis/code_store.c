/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that is in no file, as the trace has it: pieces of 64 bytes, found by a hash. What comes later is written over
 * what was there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names_inside.h"
#include "base/base.h"

#define SLOTS_LEAST 256u

/* Where the number of a granule stands in the hash, plus 1; 0 there: it is not known. */
static uint32_t *granule_slot(const struct code_store *store, const struct analysis_location *location)
{
  uint64_t place = location->address / GRANULE;
  uint64_t hash =
    (place ^ (uint64_t)location->file << 40 ^ (uint64_t)location->space << 20) * UINT64_C(0x9E3779B97F4A7C15);
  size_t i = (size_t)(hash >> 32) & (store->slot_count - 1);

  for (;; i = (i + 1) & (store->slot_count - 1)) {
    const struct granule *granule = store->slots[i] ? &store->granules[store->slots[i] - 1] : NULL;

    if (!granule || (granule->place == place && granule->file == location->file && granule->space == location->space))
      return &store->slots[i];
  }
}

static int slots_grow(struct code_store *store)
{
  struct code_store next = *store;

  next.slot_count = store->slot_count ? 2 * store->slot_count : SLOTS_LEAST;
  next.slots = calloc(next.slot_count, sizeof(*next.slots));
  if (!next.slots)
    return -ENOMEM;
  for (size_t i = 0; i < store->count; i++) {
    const struct granule *granule = &store->granules[i];
    struct analysis_location location = {granule->file, granule->space, granule->place * GRANULE};

    *granule_slot(&next, &location) = (uint32_t)i + 1;
  }
  free(store->slots);
  store->slots = next.slots;
  store->slot_count = next.slot_count;
  return 0;
}

/* The granule of a location, which is there from now on. Returns 0, with NULL beyond the limit; or -ENOMEM. */
static int granule_get(struct code_store *store, const struct analysis_location *location, struct granule **ret_granule)
{
  struct granule *granules;
  uint32_t *slot;

  if (2 * (store->count + 1) > store->slot_count && store->count < GRANULES_MAX && slots_grow(store) < 0)
    return -ENOMEM;
  slot = granule_slot(store, location);
  if (!*slot && store->count >= GRANULES_MAX) {
    *ret_granule = NULL;
    return 0;
  }
  if (!*slot) {
    granules = array_grow(store->granules, sizeof(*granules), store->count, &store->capacity);
    if (!granules)
      return -ENOMEM;
    store->granules = granules;
    granules[store->count] =
      (struct granule){.place = location->address / GRANULE, .file = location->file, .space = location->space};
    *slot = (uint32_t)++store->count;
  }
  *ret_granule = &store->granules[*slot - 1];
  return 0;
}

/* Bytes that lie in one granule. Beyond the limit they are left out. */
static int granule_add(struct code_store *store, const struct analysis_location *location, const uint8_t *bytes,
                       size_t size)
{
  unsigned first = location->address % GRANULE;
  uint64_t mask = (size == GRANULE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << first;
  struct granule *granule;
  int r = granule_get(store, location, &granule);

  if (r < 0 || !granule)
    return r;
  granule->known |= mask;
  memcpy(granule->bytes + first, bytes, size);
  return 0;
}

int code_store_add(struct code_store *store, const struct analysis_location *location, const uint8_t *bytes,
                   size_t size)
{
  struct analysis_location at = *location;
  int r = 0;

  while (size && r >= 0) {
    size_t part = GRANULE - at.address % GRANULE;

    part = part < size ? part : size;
    r = granule_add(store, &at, bytes, part);
    at.address += part;
    bytes += part;
    size -= part;
  }
  return r;
}

size_t code_store_get(const struct code_store *store, const struct analysis_location *location, uint8_t *bytes,
                      size_t size)
{
  struct analysis_location at = *location;
  size_t done = 0;

  for (; store->count && done < size; done++, at.address++) {
    uint32_t slot = *granule_slot(store, &at);
    const struct granule *granule = slot ? &store->granules[slot - 1] : NULL;
    unsigned byte = at.address % GRANULE;

    if (!granule || !(granule->known >> byte & 1))
      break;
    bytes[done] = granule->bytes[byte];
  }
  return done;
}

void code_store_done(struct code_store *store)
{
  free(store->granules);
  free(store->slots);
  *store = (struct code_store){0};
}
