/* SPDX-License-Identifier: Apache-2.0
 *
 * An interval map: the mappings in address spaces. Intervals do not overlap: a new one cuts those that it covers.
 */
#ifndef BASE_INTERVAL_H
#define BASE_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval {
  uint32_t space;
  uint32_t value;       /* set by the caller: for example the number of a file */
  uint64_t first, last; /* addresses, both inclusive: the last page of a space can be mapped too; first <= last */
  uint64_t offset;      /* of `first` in the mapped object: a cut at the front adds to it */
};

/* Starts as all zero. */
struct interval_map {
  struct interval *list; /* sorted by space and address */
  size_t count, capacity;
};

/* Empties the addresses from `first` to `last`. The map never holds more than `most` intervals. Returns 0; LB_E_TOO_BIG
 * if a cut would make more of them, or -ENOMEM: nothing has changed then. */
int interval_map_clear(struct interval_map *map, uint32_t space, uint64_t first, uint64_t last, size_t most);

/* Adds an interval over the existing ones. Returns the same values as interval_map_clear. */
int interval_map_add(struct interval_map *map, const struct interval *interval, size_t most);

/* The interval at an address, or NULL. It is valid until the map changes. */
const struct interval *interval_map_find(const struct interval_map *map, uint32_t space, uint64_t address);

/* Whether any interval has an address from `first` to `last`. */
bool interval_map_overlaps(const struct interval_map *map, uint32_t space, uint64_t first, uint64_t last);

/* Copies into an empty map. Returns 0, or -ENOMEM: the copy stays empty then. */
int interval_map_copy(const struct interval_map *map, struct interval_map *ret_map);

/* Frees; the map is then empty and may be used again. */
void interval_map_done(struct interval_map *map);

#endif
