/* SPDX-License-Identifier: Apache-2.0
 *
 * The data caches. See cache.h.
 */
#include "cpu/cache.h"

#include <stdbool.h>

static uint32_t line_tag(unsigned count, uint64_t line)
{
  return (uint32_t)(line / count) + 1;
}

/* Puts a line into its slot. Returns whether it was there already. */
static bool line_take(uint32_t *lines, unsigned count, uint64_t line)
{
  uint32_t *place = &lines[line % count];
  uint32_t tag = line_tag(count, line);
  bool is_there = *place == tag;

  *place = tag;
  return is_there;
}

void cache_access(struct cache *cache, uint64_t physical, unsigned size, struct lb_progress *progress)
{
  uint64_t end = (physical + size - 1) / CACHE_LINE;

  for (uint64_t line = physical / CACHE_LINE; line <= end; line++) {
    if (line_take(cache->first, CACHE_FIRST_LINES, line))
      continue;
    progress->cache_references++;
    if (line_take(cache->last, CACHE_LAST_LINES, line))
      continue;
    progress->cache_misses++;
    line_take(cache->last, CACHE_LAST_LINES, line ^ 1);
  }
}

static void line_drop(uint32_t *lines, unsigned count, uint64_t line)
{
  if (lines[line % count] == line_tag(count, line))
    lines[line % count] = 0;
}

void cache_flush(struct cache *cache, uint64_t physical)
{
  line_drop(cache->first, CACHE_FIRST_LINES, physical / CACHE_LINE);
  line_drop(cache->last, CACHE_LAST_LINES, physical / CACHE_LINE);
}
