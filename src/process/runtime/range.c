/* SPDX-License-Identifier: Apache-2.0
 *
 * Which addresses of the application may be executed: a sorted list of ranges that do not touch.
 */
#include "process/runtime.h"

/* The first range that ends behind the address. */
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

static bool range_insert(struct range_list *list, unsigned at, uint64_t start, uint64_t end)
{
  if (list->count == RANGES)
    return false;
  for (unsigned i = list->count; i > at; i--)
    list->ranges[i] = list->ranges[i - 1];
  list->ranges[at] = (struct range){start, end};
  list->count++;
  return true;
}

bool range_add(struct range_list *list, uint64_t start, uint64_t end)
{
  if (start >= end)
    return true;
  unsigned at = range_at(list, start ? start - 1 : 0); /* one that ends at `start` is joined */
  while (at < list->count && list->ranges[at].start <= end) {
    if (list->ranges[at].start < start)
      start = list->ranges[at].start;
    if (list->ranges[at].end > end)
      end = list->ranges[at].end;
    range_delete(list, at);
  }
  return range_insert(list, at, start, end);
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
      range_insert(list, at++, old.start, start);
    if (old.end > end)
      range_insert(list, at++, end, old.end);
  }
  return is_changed;
}

uint64_t range_end(const struct range_list *list, uint64_t address)
{
  unsigned at = range_at(list, address);
  return at < list->count && list->ranges[at].start <= address ? list->ranges[at].end : 0;
}
