/* SPDX-License-Identifier: Apache-2.0
 *
 * The data caches. See cache.h.
 */
#include "cpu/cache.h"

#include <stdbool.h>

/* Puts a line into its place. Returns whether it was there. */
static bool line_take(uint32_t *lines, unsigned count, uint64_t line)
{
  uint32_t *place = &lines[line % count];
  uint32_t tag = (uint32_t)(line / count) + 1;
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
    progress->cache_misses += !line_take(cache->last, CACHE_LAST_LINES, line);
  }
}
