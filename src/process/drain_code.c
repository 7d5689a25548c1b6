/* SPDX-License-Identifier: Apache-2.0
 *
 * The code outside of files that the trace already has. Paths overlap, so the runtime notes the same bytes again and
 * again; the trace gets them once. Just-in-time compilers change code. Changed bytes must not go into the trace before
 * the branches that ran in the old ones; this file detects the change.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "process/drain.h"

enum {
  GRANULE = 64,            /* bytes: one for each bit of a mask */
  GRANULES_MOST = 1 << 20, /* with more, further bytes are not remembered, and may be in the trace more than once */
};

/* `known` has a bit for each byte. */
struct drain_granule {
  uint64_t place, known;
  uint32_t space;
  uint8_t bytes[GRANULE];
};

static uint64_t granule_hash(uint32_t space, uint64_t place)
{
  return hash_mix(hash_start(place), space);
}

static struct drain_granule *granule_find(const struct drain_code *code, uint32_t space, uint64_t place)
{
  uint64_t hash = granule_hash(space, place);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&code->index, hash, &at)) != HASH_NONE;)
    if (code->granules[number].place == place && code->granules[number].space == space)
      return &code->granules[number];
  return NULL;
}

/* Drops the granules of spaces that are over. */
static void granules_drop(struct process_drain *drain)
{
  struct drain_code *code = &drain->code;
  size_t kept = 0;

  hash_index_clear(&code->index);
  for (size_t i = 0; i < code->count; i++) {
    const struct drain_granule *granule = &code->granules[i];
    int r;

    if (drain_space_is_over(drain, granule->space))
      continue;
    r = hash_index_add(&code->index, granule_hash(granule->space, granule->place), kept);
    assert(r >= 0); /* it had more */
    (void)r;
    code->granules[kept++] = *granule;
  }
  code->count = kept;
  code->spaces_over = drain->spaces_over;
}

/* Returns NULL if the table is full or there is no memory. */
static struct drain_granule *granule_add(struct process_drain *drain, uint32_t space, uint64_t place)
{
  struct drain_code *code = &drain->code;
  struct drain_granule *granule;

  if (code->count == code->capacity && code->spaces_over != drain->spaces_over)
    granules_drop(drain);
  granule = code->count < GRANULES_MOST ? array_append(&code->granules, &code->count, &code->capacity) : NULL;
  if (!granule)
    return NULL;
  if (hash_index_add(&code->index, granule_hash(space, place), code->count - 1) < 0) {
    code->count--;
    return NULL;
  }
  *granule = (struct drain_granule){.place = place, .space = space};
  return granule;
}

static void extent_add(struct drain_extent *extent, uint64_t address)
{
  extent->first = extent->end && extent->first < address ? extent->first : address;
  extent->end = address + 1;
}

/* Takes the part of a note that lies in one granule. */
static enum code_news granule_take(struct process_drain *drain, uint32_t space, uint64_t address, const uint8_t *bytes,
                                   unsigned size)
{
  unsigned first = address % GRANULE;
  uint64_t mask = (size == GRANULE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << first;
  struct drain_granule *granule = granule_find(&drain->code, space, address / GRANULE);
  enum code_news news = CODE_KNOWN;

  if (!granule)
    granule = granule_add(drain, space, address / GRANULE);
  if (!granule)
    return CODE_CHANGED;
  if (~granule->known & mask)
    news = CODE_NEW;
  for (unsigned i = 0; i < size; i++) {
    if (!(granule->known >> (first + i) & 1)) {
      extent_add(&drain->code.added, address + i);
    } else if (granule->bytes[first + i] != bytes[i]) {
      extent_add(&drain->code.changed, address + i);
      news = CODE_CHANGED;
    }
  }
  granule->known |= mask;
  memcpy(granule->bytes + first, bytes, size);
  return news;
}

enum code_news drain_code_take(struct process_drain *drain, uint32_t space, uint64_t address, const uint8_t *bytes,
                               size_t size)
{
  enum code_news news = CODE_KNOWN;

  drain->code.changed = drain->code.added = (struct drain_extent){0};
  for (size_t done = 0; done < size;) {
    size_t piece = GRANULE - (address + done) % GRANULE;
    enum code_news here;

    if (piece > size - done)
      piece = size - done;
    here = granule_take(drain, space, address + done, bytes + done, (unsigned)piece);
    news = here > news ? here : news;
    done += piece;
  }
  return news;
}

void drain_code_done(struct drain_code *code)
{
  free(code->granules);
  hash_index_done(&code->index);
}
