/* SPDX-License-Identifier: Apache-2.0
 *
 * What lies where in the address spaces of a trace: a sorted list of pieces; a new one cuts those that it covers.
 */
#include "analysis/mapping.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* How many pieces end before an address. */
static size_t mappings_before(const struct mapping_list *list, uint32_t space, uint64_t address)
{
  size_t low = 0, high = list->count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const struct mapping *mapping = &list->mappings[middle];

    if (mapping->space < space || (mapping->space == space && mapping->last < address))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static int mapping_insert(struct mapping_list *list, size_t at, const struct mapping *mapping)
{
  struct mapping *mappings;

  if (list->count >= MAPPINGS_MAX)
    return LB_E_TOO_BIG;
  mappings = array_grow(list->mappings, sizeof(*mappings), list->count, &list->capacity);
  if (!mappings)
    return -ENOMEM;
  list->mappings = mappings;
  memmove(mappings + at + 1, mappings + at, (list->count - at) * sizeof(*mappings));
  mappings[at] = *mapping;
  list->count++;
  return 0;
}

/* Lets a piece begin later. */
static void mapping_begin_at(struct mapping *mapping, uint64_t first)
{
  mapping->offset += first - mapping->first;
  mapping->first = first;
}

static bool mapping_is_below(const struct mapping_list *list, size_t at, uint32_t space, uint64_t address)
{
  return at < list->count && list->mappings[at].space == space && list->mappings[at].first < address;
}

/* A piece that begins before `first` and ends behind `last` becomes two. */
static int mapping_split(struct mapping_list *list, size_t at, uint64_t first, uint64_t last)
{
  struct mapping rest = list->mappings[at];
  int r;

  mapping_begin_at(&rest, last + 1);
  r = mapping_insert(list, at + 1, &rest);
  if (r >= 0)
    list->mappings[at].last = first - 1;
  return r;
}

int mapping_list_clear(struct mapping_list *list, uint32_t space, uint64_t first, uint64_t last)
{
  size_t at = mappings_before(list, space, first), end;

  if (mapping_is_below(list, at, space, first)) {
    if (list->mappings[at].last > last)
      return mapping_split(list, at, first, last);
    list->mappings[at++].last = first - 1;
  }
  for (end = at; end < list->count && list->mappings[end].space == space && list->mappings[end].last <= last;)
    end++;
  if (end < list->count && list->mappings[end].space == space && list->mappings[end].first <= last)
    mapping_begin_at(&list->mappings[end], last + 1);
  if (end > at) {
    memmove(list->mappings + at, list->mappings + end, (list->count - end) * sizeof(*list->mappings));
    list->count -= end - at;
  }
  return 0;
}

int mapping_list_add(struct mapping_list *list, const struct mapping *mapping)
{
  int r = mapping_list_clear(list, mapping->space, mapping->first, mapping->last);

  if (r < 0)
    return r;
  return mapping_insert(list, mappings_before(list, mapping->space, mapping->first), mapping);
}

const struct mapping *mapping_list_find(const struct mapping_list *list, uint32_t space, uint64_t address)
{
  size_t at = mappings_before(list, space, address);
  const struct mapping *mapping = at < list->count ? &list->mappings[at] : NULL;

  return mapping && mapping->space == space && mapping->first <= address ? mapping : NULL;
}

bool mapping_list_overlaps(const struct mapping_list *list, uint32_t space, uint64_t first, uint64_t last)
{
  size_t at = mappings_before(list, space, first);

  return at < list->count && list->mappings[at].space == space && list->mappings[at].first <= last;
}

void mapping_list_done(struct mapping_list *list)
{
  free(list->mappings);
  *list = (struct mapping_list){0};
}
