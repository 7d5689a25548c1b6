/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that is in no file, as recorded in the trace: granules of 64 bytes, found by a hash. Later bytes overwrite
 * earlier ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names_inside.h"
#include "base/base.h"

static uint64_t granule_hash(const struct analysis_location *location)
{
  return hash_mix(hash_start(location->address / GRANULE), (uint64_t)location->file << 32 | location->space);
}

/* The granule of a location, or NULL. */
static struct granule *granule_find(const struct code_store *store, const struct analysis_location *location)
{
  uint64_t place = location->address / GRANULE, hash = granule_hash(location);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&store->index, hash, &at)) != HASH_NONE;) {
    struct granule *granule = &store->granules[number];

    if (granule->place == place && granule->file == location->file && granule->space == location->space)
      return granule;
  }
  return NULL;
}

/* The granule of a location, created if necessary. Returns 0, with NULL beyond the limit; or -ENOMEM. */
static int granule_get(struct code_store *store, const struct analysis_location *location, struct granule **ret_granule)
{
  struct granule *granule = granule_find(store, location);

  if (!granule && store->count < GRANULES_MAX) {
    granule = array_append(&store->granules, &store->count, &store->capacity);
    if (!granule)
      return -ENOMEM;
    if (hash_index_add(&store->index, granule_hash(location), store->count - 1) < 0) {
      store->count--;
      return -ENOMEM;
    }
    *granule = (struct granule){.place = location->address / GRANULE, .file = location->file, .space = location->space};
  }
  *ret_granule = granule;
  return 0;
}

/* Adds bytes that lie in one granule. Beyond the limit they are left out. */
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
  const struct granule *granule = NULL;
  size_t done = 0;

  for (; done < size; done++, at.address++) {
    unsigned byte = at.address % GRANULE;

    if (!done || !byte)
      granule = granule_find(store, &at);
    if (!granule || !(granule->known >> byte & 1))
      break;
    bytes[done] = granule->bytes[byte];
  }
  return done;
}

void code_store_done(struct code_store *store)
{
  free(store->granules);
  hash_index_done(&store->index);
  *store = (struct code_store){0};
}
