/* SPDX-License-Identifier: Apache-2.0
 *
 * Data caches as a model, for the events that count references and misses of the last level: two direct-mapped caches
 * of 64-byte lines by physical address. A reference is a miss of the first level (32 KiB), a miss one of the last level
 * (512 KiB) too. With a line that the last level misses it gets the other one of the 128 bytes, as by the spatial
 * prefetcher of Intel's optimization manual; that is no miss. Reads and writes are alike. Code, page tables and devices
 * are not looked at, and no access takes longer. While no counter counts such an event the model stands still: see
 * cpu->counts_cache.
 */
#ifndef CPU_CACHE_H
#define CPU_CACHE_H

#include <stdint.h>

#include "recorder/recorder.h"

#define CACHE_LINE 64u
#define CACHE_FIRST_LINES 512u
#define CACHE_LAST_LINES 8192u

/* Of each line: 1 + the part of its address that the place does not tell; 0: empty. */
struct cache {
  uint32_t first[CACHE_FIRST_LINES];
  uint32_t last[CACHE_LAST_LINES];
};

/* [physical, physical + size) is accessed. */
void cache_access(struct cache *cache, uint64_t physical, unsigned size, struct lb_progress *progress);

/* The line at this address leaves both. */
void cache_flush(struct cache *cache, uint64_t physical);

#endif
