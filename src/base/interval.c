/* SPDX-License-Identifier: Apache-2.0
 *
 * The interval map: a sorted array. Maps are searched far more often than changed.
 */
#include "base/interval.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* The number of intervals that end before an address. */
static size_t intervals_before(const struct interval_map *map, uint32_t space, uint64_t address)
{
  struct search search = {.end = map->count};

  while (search_next(&search)) {
    const struct interval *interval = &map->list[search.at];

    search_turn(&search, interval->space < space || (interval->space == space && interval->last < address));
  }
  return search.first;
}

/* Whether this interval exists and begins at or before an address. */
static bool interval_begins(const struct interval_map *map, size_t at, uint32_t space, uint64_t address)
{
  return at < map->count && map->list[at].space == space && map->list[at].first <= address;
}

static void interval_begin_at(struct interval *interval, uint64_t first)
{
  interval->offset += first - interval->first;
  interval->first = first;
}

/* Replaces `old` intervals by `new` ones, which the caller fills in. Returns 0, LB_E_TOO_BIG, or -ENOMEM. */
static int intervals_replace(struct interval_map *map, size_t at, size_t old, size_t new, size_t most)
{
  size_t count = map->count - old + new;
  struct interval *list = map->list;

  if (new > old && count > most)
    return LB_E_TOO_BIG;
  if (count > map->capacity && !(list = array_reserve(map->list, sizeof(*list), count, &map->capacity)))
    return -ENOMEM;
  map->list = list;
  if (old != new)
    memmove(list + at + new, list + at + old, (map->count - at - old) * sizeof(*list));
  map->count = count;
  return 0;
}

/* Puts an interval, or nothing, over `first` to `last`. The remainders of the intervals at both ends stay. */
static int map_put(struct interval_map *map, uint32_t space, uint64_t first, uint64_t last,
                   const struct interval *interval, size_t most)
{
  size_t at = intervals_before(map, space, first), end = at, new = 0;
  struct interval left[3];
  int r;

  assert(first <= last);
  if (interval_begins(map, at, space, first) && map->list[at].first < first) {
    left[new] = map->list[at];
    left[new ++].last = first - 1;
  }
  if (interval)
    left[new ++] = *interval;
  while (interval_begins(map, end, space, last) && map->list[end].last <= last)
    end++;
  if (interval_begins(map, end, space, last)) {
    left[new] = map->list[end++];
    interval_begin_at(&left[new ++], last + 1);
  }
  r = intervals_replace(map, at, end - at, new, most);
  for (size_t i = 0; r >= 0 && i < new; i++)
    map->list[at + i] = left[i];
  return r;
}

int interval_map_clear(struct interval_map *map, uint32_t space, uint64_t first, uint64_t last, size_t most)
{
  return map_put(map, space, first, last, NULL, most);
}

int interval_map_add(struct interval_map *map, const struct interval *interval, size_t most)
{
  return map_put(map, interval->space, interval->first, interval->last, interval, most);
}

const struct interval *interval_map_find(const struct interval_map *map, uint32_t space, uint64_t address)
{
  size_t at = intervals_before(map, space, address);

  return interval_begins(map, at, space, address) ? &map->list[at] : NULL;
}

bool interval_map_overlaps(const struct interval_map *map, uint32_t space, uint64_t first, uint64_t last)
{
  return interval_begins(map, intervals_before(map, space, first), space, last);
}

int interval_map_copy(const struct interval_map *map, struct interval_map *ret_map)
{
  struct interval_map copy = {.count = map->count, .capacity = map->count};

  if (!map->count)
    return 0;
  copy.list = malloc(map->count * sizeof(*copy.list));
  if (!copy.list)
    return -ENOMEM;
  memcpy(copy.list, map->list, map->count * sizeof(*copy.list));
  *ret_map = copy;
  return 0;
}

void interval_map_done(struct interval_map *map)
{
  free(map->list);
  *map = (struct interval_map){0};
}
