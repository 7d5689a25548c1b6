/* SPDX-License-Identifier: Apache-2.0
 *
 * A hash index: finds the elements of a caller's array by key. The index holds the number and the hash of each element;
 * the caller holds the keys and compares them. Elements keep the order in which they were appended, so no output
 * depends on hashes.
 *
 * Keys come from traces and programs that may be hostile. Hashes are therefore mixed with two random numbers of the
 * process, so that an attacker cannot prepare keys that collide.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- hashes ---- */

/* Chosen before main; hash_key[1] is odd. */
extern uint64_t hash_key[2];

/* Mixes one more value into a hash. The first product depends on a secret; the second breaks up the regular distances
 * that one product leaves between consecutive keys. */
static inline uint64_t hash_mix(uint64_t hash, uint64_t value)
{
  hash = (hash ^ value) * hash_key[1];
  hash = (hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 32;
}

/* The hash of one value, to which hash_mix adds the rest of a key. */
static inline uint64_t hash_start(uint64_t value)
{
  return hash_mix(hash_key[0], value);
}

/* Mixes in a string and its end, so that "a", "bc" and "ab", "c" differ. NULL differs from "". */
uint64_t hash_mix_string(uint64_t hash, const char *string);

/* ---- the index ---- */

#define HASH_NONE UINT32_MAX

struct hash_slot {
  uint32_t tag;    /* the upper half of the hash; its upper bits give the preferred slot */
  uint32_t number; /* of the element, plus 1; 0: the slot is empty */
};

/* Starts as all zero. At most half of the slots are filled. */
struct hash_index {
  struct hash_slot *slots;
  size_t capacity; /* a power of two, or 0 */
  size_t count;
  unsigned shift; /* a tag shifted by this is a slot's number */
};

/* Goes through the elements whose hash may be this one; `at` is 0 at first. Returns the number of one, or HASH_NONE
 * when there are no more:
 *
 *   for (size_t at = 0; (number = hash_index_next(index, hash, &at)) != HASH_NONE;)
 *     if (key_is(&items[number], key))
 *       break;
 */
static inline uint32_t hash_index_next(const struct hash_index *index, uint64_t hash, size_t *at)
{
  uint32_t tag = (uint32_t)(hash >> 32);

  if (!index->capacity)
    return HASH_NONE;
  for (;;) {
    const struct hash_slot *slot = &index->slots[((tag >> index->shift) + (*at)++) & (index->capacity - 1)];

    if (!slot->number)
      return HASH_NONE;
    if (slot->tag == tag)
      return slot->number - 1;
  }
}

/* Adds an element, which must not be there. Returns 0; -ENOMEM without memory or for a number of 2^31 and more: nothing
 * has changed then. */
int hash_index_add(struct hash_index *index, uint64_t hash, size_t number);

/* Removes an element, which must be there. */
void hash_index_remove(struct hash_index *index, uint64_t hash, uint32_t number);

/* Changes the number of an element, which must be there. */
void hash_index_renumber(struct hash_index *index, uint64_t hash, uint32_t number, uint32_t wanted);

/* Removes all elements; keeps the memory. */
void hash_index_clear(struct hash_index *index);

/* Frees; the index is then empty and may be used again. */
void hash_index_done(struct hash_index *index);

#endif
