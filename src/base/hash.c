/* SPDX-License-Identifier: Apache-2.0
 *
 * The hash index: open addressing with linear probing. A slot holds half of its hash, so that the index can grow and
 * close gaps without the keys.
 */
#include "base/hash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#define SLOTS_BITS_LEAST 6u
#define NUMBERS_MAX (UINT32_C(1) << 31)

/* Used if the kernel gives no random bytes. */
uint64_t hash_key[2] = {UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xD6E8FEB86659FD93)};

/* ---- hashes ---- */

/* getauxval(3): AT_RANDOM, sixteen bytes. */
__attribute__((constructor)) static void hash_key_choose(void)
{
  const void *random = (const void *)getauxval(AT_RANDOM);
  uint64_t bytes[2];

  if (!random)
    return;
  memcpy(bytes, random, sizeof(bytes));
  hash_key[0] = hash_mix(bytes[0], bytes[1]);
  hash_key[1] = hash_mix(bytes[1], bytes[0] + 1) | 1;
}

uint64_t hash_mix_string(uint64_t hash, const char *string)
{
  size_t left = string ? strlen(string) : 0;
  uint64_t word = 0;

  hash = hash_mix(hash, string ? left : UINT64_MAX);
  for (; left > sizeof(word); left -= sizeof(word), string += sizeof(word)) {
    memcpy(&word, string, sizeof(word));
    hash = hash_mix(hash, word);
  }
  word = 0;
  if (left)
    memcpy(&word, string, left);
  return hash_mix(hash, word);
}

/* ---- the index ---- */

static size_t slot_first(const struct hash_index *index, uint32_t tag)
{
  return tag >> index->shift;
}

static void slot_put(struct hash_index *index, struct hash_slot slot)
{
  size_t mask = index->capacity - 1, i = slot_first(index, slot.tag);

  while (index->slots[i].number)
    i = (i + 1) & mask;
  index->slots[i] = slot;
}

static int index_grow(struct hash_index *index)
{
  unsigned bits = index->capacity ? 32 - index->shift + 1 : SLOTS_BITS_LEAST;
  struct hash_index next = {.capacity = (size_t)1 << bits, .count = index->count, .shift = 32 - bits};

  if (bits > 32)
    return -ENOMEM;
  next.slots = calloc(next.capacity, sizeof(*next.slots));
  if (!next.slots)
    return -ENOMEM;
  for (size_t i = 0; i < index->capacity; i++)
    if (index->slots[i].number)
      slot_put(&next, index->slots[i]);
  free(index->slots);
  *index = next;
  return 0;
}

int hash_index_add(struct hash_index *index, uint64_t hash, size_t number)
{
  if (number >= NUMBERS_MAX)
    return -ENOMEM;
  if (2 * (index->count + 1) > index->capacity && index_grow(index) < 0)
    return -ENOMEM;
  slot_put(index, (struct hash_slot){(uint32_t)(hash >> 32), (uint32_t)number + 1});
  index->count++;
  return 0;
}

/* The slot of an element that must be in the index. */
static size_t slot_find(const struct hash_index *index, uint64_t hash, uint32_t number)
{
  size_t mask = index->capacity - 1, i;

  assert(index->count);
  for (i = slot_first(index, (uint32_t)(hash >> 32)); index->slots[i].number != number + 1; i = (i + 1) & mask)
    assert(index->slots[i].number);
  return i;
}

/* Moves each later slot that a search could no longer reach into the gap, which then moves to that slot. */
void hash_index_remove(struct hash_index *index, uint64_t hash, uint32_t number)
{
  size_t mask = index->capacity - 1, gap = slot_find(index, hash, number);

  for (size_t next = (gap + 1) & mask; index->slots[next].number; next = (next + 1) & mask) {
    size_t wandered = (next - slot_first(index, index->slots[next].tag)) & mask;

    if (wandered < ((next - gap) & mask))
      continue;
    index->slots[gap] = index->slots[next];
    gap = next;
  }
  index->slots[gap] = (struct hash_slot){0};
  index->count--;
}

void hash_index_renumber(struct hash_index *index, uint64_t hash, uint32_t number, uint32_t wanted)
{
  index->slots[slot_find(index, hash, number)].number = wanted + 1;
}

void hash_index_clear(struct hash_index *index)
{
  if (index->count)
    memset(index->slots, 0, index->capacity * sizeof(*index->slots));
  index->count = 0;
}

void hash_index_done(struct hash_index *index)
{
  free(index->slots);
  *index = (struct hash_index){0};
}
