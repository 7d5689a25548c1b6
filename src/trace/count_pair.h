/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash table that counts how often each indirect branch went to each head.
 */
#ifndef TRACE_COUNT_PAIR_H
#define TRACE_COUNT_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct count_pair {
  uint64_t key; /* number of the step << 32 | number of the head; 0: the place is empty */
  uint64_t count;
};

struct count_pairs {
  struct count_pair *pairs;
  size_t count, capacity;
  bool is_full; /* it could not grow, and does not try again */
};

/* Returns false if there is no memory, or there are too many already. */
bool count_pairs_grow(struct count_pairs *pairs);

static inline uint64_t count_pair_key(uint32_t step, uint32_t head)
{
  return (uint64_t)step << 32 | head;
}

static inline size_t count_pair_index(const struct count_pairs *pairs, uint64_t key)
{
  return (size_t)(hash_start(key) >> 32) & (pairs->capacity - 1);
}

/* The place of a key, or the empty place where it belongs. */
static inline struct count_pair *count_pair_place(const struct count_pairs *pairs, uint64_t key)
{
  size_t i = count_pair_index(pairs, key);

  while (pairs->pairs[i].key && pairs->pairs[i].key != key)
    i = (i + 1) & (pairs->capacity - 1);
  return &pairs->pairs[i];
}

/* Returns false if there is no room for another pair, or no memory. A pair that is there already has room. */
static inline bool count_pair_add(struct count_pairs *pairs, uint64_t key, uint64_t times)
{
  struct count_pair *pair = pairs->capacity ? count_pair_place(pairs, key) : NULL;

  if (!pair || !pair->key) {
    if (4 * (pairs->count + 1) > 3 * pairs->capacity && !count_pairs_grow(pairs))
      return false;
    pair = count_pair_place(pairs, key);
    pair->key = key;
    pairs->count++;
  }
  pair->count += times;
  return true;
}

#endif
