/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts durations in buckets whose width grows with the duration. See latency.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/latency.h"

#define PARTS_BITS 4u
_Static_assert(ANALYSIS_LATENCY_PARTS == 1u << PARTS_BITS, "a bucket is found by shifting");

uint32_t analysis_bucket_of(uint64_t duration)
{
  unsigned power;

  if (duration < ANALYSIS_LATENCY_PARTS)
    return (uint32_t)duration;
  power = 63u - (unsigned)__builtin_clzll(duration);
  return (power - PARTS_BITS + 1) * ANALYSIS_LATENCY_PARTS +
         (uint32_t)(duration >> (power - PARTS_BITS) & (ANALYSIS_LATENCY_PARTS - 1));
}

uint64_t analysis_bucket_least(uint32_t bucket)
{
  if (bucket < ANALYSIS_LATENCY_PARTS)
    return bucket;
  if (bucket >= ANALYSIS_LATENCY_BUCKETS)
    return UINT64_MAX;
  return (uint64_t)(ANALYSIS_LATENCY_PARTS + bucket % ANALYSIS_LATENCY_PARTS) << (bucket / ANALYSIS_LATENCY_PARTS - 1);
}

/* Extends the buckets so that they include this one. Returns as analysis_histogram_add. */
static int buckets_extend(struct analysis_histogram *histogram, uint32_t bucket, size_t *room)
{
  uint32_t end = histogram->first + histogram->count;
  uint32_t first = histogram->count && histogram->first < bucket ? histogram->first : bucket;
  uint32_t count = (histogram->count && end > bucket ? end : bucket + 1) - first;
  uint64_t *counts;

  if (count - histogram->count > *room)
    return 0;
  counts = calloc(count, sizeof(*counts));
  if (!counts)
    return -ENOMEM;
  if (histogram->count)
    memcpy(counts + (histogram->first - first), histogram->counts, histogram->count * sizeof(*counts));
  *room -= count - histogram->count;
  free(histogram->counts);
  histogram->counts = counts;
  histogram->first = first;
  histogram->count = count;
  return 1;
}

int analysis_histogram_add(struct analysis_histogram *histogram, uint64_t duration, size_t *room)
{
  uint32_t bucket = analysis_bucket_of(duration);

  if (bucket < histogram->first || bucket >= histogram->first + histogram->count) {
    int r = buckets_extend(histogram, bucket, room);

    if (r <= 0)
      return r;
  }
  histogram->counts[bucket - histogram->first]++;
  histogram->total++;
  return 1;
}

uint64_t analysis_histogram_at(const struct analysis_histogram *histogram, double share)
{
  double wanted = share * (double)histogram->total;
  uint64_t below = 0;

  for (uint32_t i = 0; i < histogram->count; i++) {
    below += histogram->counts[i];
    if (below && (double)below >= wanted) {
      uint64_t least = analysis_bucket_least(histogram->first + i);

      return least + (analysis_bucket_least(histogram->first + i + 1) - least) / 2;
    }
  }
  return 0;
}
