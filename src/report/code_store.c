/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that is in no file, as the trace has it: pieces of 64 bytes in a hash. What comes later is written over what was
 * there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "report/names.h"

#define GRANULES_LEAST 256u

static struct granule *granule_place(const struct code_store *store, const struct report_location *location)
{
  uint64_t place = location->address / GRANULE;
  uint64_t hash =
    (place ^ (uint64_t)location->file << 40 ^ (uint64_t)location->space << 20) * UINT64_C(0x9E3779B97F4A7C15);
  size_t i = (size_t)(hash >> 32) & (store->capacity - 1);

  for (;; i = (i + 1) & (store->capacity - 1)) {
    struct granule *granule = &store->granules[i];

    if (!granule->known ||
        (granule->place == place && granule->file == location->file && granule->space == location->space))
      return granule;
  }
}

static int store_grow(struct code_store *store)
{
  struct code_store next = {.count = store->count, .capacity = store->capacity ? 2 * store->capacity : GRANULES_LEAST};

  next.granules = calloc(next.capacity, sizeof(*next.granules));
  if (!next.granules)
    return -ENOMEM;
  for (size_t i = 0; i < store->capacity; i++) {
    const struct granule *granule = &store->granules[i];
    struct report_location location = {granule->file, granule->space, granule->place * GRANULE};

    if (granule->known)
      *granule_place(&next, &location) = *granule;
  }
  free(store->granules);
  *store = next;
  return 0;
}

/* Bytes that lie in one granule. Beyond the limit they are left out. */
static int granule_add(struct code_store *store, const struct report_location *location, const uint8_t *bytes,
                       size_t size)
{
  unsigned first = location->address % GRANULE;
  uint64_t mask = (size == GRANULE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << first;
  struct granule *granule;

  if (2 * (store->count + 1) > store->capacity && store->count < GRANULES_MAX && store_grow(store) < 0)
    return -ENOMEM;
  granule = granule_place(store, location);
  if (!granule->known) {
    if (store->count >= GRANULES_MAX)
      return 0;
    *granule = (struct granule){.place = location->address / GRANULE, .file = location->file, .space = location->space};
    store->count++;
  }
  granule->known |= mask;
  memcpy(granule->bytes + first, bytes, size);
  return 0;
}

int code_store_add(struct code_store *store, const struct report_location *location, const uint8_t *bytes, size_t size)
{
  struct report_location at = *location;
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

size_t code_store_get(const struct code_store *store, const struct report_location *location, uint8_t *bytes,
                      size_t size)
{
  struct report_location at = *location;
  size_t done = 0;

  for (; store->count && done < size; done++, at.address++) {
    const struct granule *granule = granule_place(store, &at);
    unsigned byte = at.address % GRANULE;

    if (!(granule->known >> byte & 1))
      break;
    bytes[done] = granule->bytes[byte];
  }
  return done;
}

void code_store_done(struct code_store *store)
{
  free(store->granules);
  *store = (struct code_store){0};
}
