/* SPDX-License-Identifier: Apache-2.0
 *
 * Data caches as a model, for the events that count references and misses of the last level: two direct-mapped caches
 * of 64-byte lines by physical address. A reference is an access that misses the first level (32 KiB); a miss also
 * misses the last level (512 KiB). When the last level misses a line, it also loads the other line of the aligned 128
 * bytes, like the spatial prefetcher of Intel's optimization manual; that does not count as a miss. Reads and writes
 * are treated alike. Code, page tables and devices are not modelled, and no access takes longer. While no counter
 * counts such an event, the model is not updated: see cpu->counts_cache.
 */
#ifndef CPU_CACHE_H
#define CPU_CACHE_H

#include <stdint.h>

#include "recorder/recorder.h"

#define CACHE_LINE 64u
#define CACHE_FIRST_LINES 512u
#define CACHE_LAST_LINES 8192u

/* For each line: 1 + the part of its address that its index does not determine; 0: empty. */
struct cache {
  uint32_t first[CACHE_FIRST_LINES];
  uint32_t last[CACHE_LAST_LINES];
};

/* Accesses [physical, physical + size). */
void cache_access(struct cache *cache, uint64_t physical, unsigned size, struct lb_progress *progress);

/* Removes the line at this address from both caches. */
void cache_flush(struct cache *cache, uint64_t physical);

#endif
