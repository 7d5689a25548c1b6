/* SPDX-License-Identifier: Apache-2.0
 *
 * Grows the hash table of the targets of indirect branches, up to a limit.
 */
#include "trace/count_pair.h"

#include <stdlib.h>

#define PAIRS_LEAST 1024u
#define PAIRS_MOST (1u << 23)

bool count_pairs_grow(struct count_pairs *pairs)
{
  struct count_pairs next = {.count = pairs->count, .capacity = pairs->capacity ? 2 * pairs->capacity : PAIRS_LEAST};

  if (!pairs->is_full && next.capacity <= PAIRS_MOST)
    next.pairs = calloc(next.capacity, sizeof(*next.pairs));
  pairs->is_full = !next.pairs;
  if (pairs->is_full)
    return false;
  for (size_t i = 0; i < pairs->capacity; i++)
    if (pairs->pairs[i].key)
      *count_pair_place(&next, pairs->pairs[i].key) = pairs->pairs[i];
  free(pairs->pairs);
  *pairs = next;
  return true;
}
