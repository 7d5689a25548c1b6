/* SPDX-License-Identifier: Apache-2.0
 *
 * The executable addresses of the application and the properties of their memory: a sorted list of ranges.
 */
#include "process/runtime/runtime.h"

/* The first range that ends after the address. */
static unsigned range_at(const struct range_list *list, uint64_t address)
{
  unsigned low = 0, high = list->count;

  while (low < high) {
    unsigned middle = (low + high) / 2;

    if (list->ranges[middle].end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static void range_delete(struct range_list *list, unsigned at)
{
  for (unsigned i = at; i + 1 < list->count; i++)
    list->ranges[i] = list->ranges[i + 1];
  list->count--;
}

static bool range_insert(struct range_list *list, unsigned at, struct range range)
{
  if (list->count == RANGES)
    return false;
  for (unsigned i = list->count; i > at; i--)
    list->ranges[i] = list->ranges[i - 1];
  list->ranges[at] = range;
  list->count++;
  return true;
}

bool range_add(struct range_list *list, uint64_t start, uint64_t end, uint32_t flags)
{
  if (start >= end)
    return true;
  range_remove(list, start, end);
  unsigned at = range_at(list, start);
  if (at < list->count && list->ranges[at].start == end && list->ranges[at].flags == flags) {
    end = list->ranges[at].end;
    range_delete(list, at);
  }
  if (at && list->ranges[at - 1].end == start && list->ranges[at - 1].flags == flags) {
    list->ranges[at - 1].end = end;
    return true;
  }
  return range_insert(list, at, (struct range){start, end, flags});
}

bool range_remove(struct range_list *list, uint64_t start, uint64_t end)
{
  bool is_changed = false;

  if (start >= end)
    return false;
  for (unsigned at = range_at(list, start); at < list->count && list->ranges[at].start < end;) {
    struct range old = list->ranges[at];

    is_changed = true;
    range_delete(list, at);
    if (old.start < start)
      range_insert(list, at++, (struct range){old.start, start, old.flags});
    if (old.end > end)
      range_insert(list, at++, (struct range){end, old.end, old.flags});
  }
  return is_changed;
}

const struct range *range_find(const struct range_list *list, uint64_t address)
{
  unsigned at = range_at(list, address);

  return at < list->count && list->ranges[at].start <= address ? &list->ranges[at] : NULL;
}
