/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that is in no file, as far as the trace has it. Paths overlap: the same bytes are noted again and again, and go
 * into the trace once. Bytes that have changed, as just-in-time compilers change them, must not be in the trace before
 * what ran while the old ones were there: this finds that out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process/drain.h"

enum {
  GRANULE = 64, /* bytes: as many as a mask has bits */
  GRANULES_LEAST = 1 << 10,
  GRANULES_MOST = 1 << 20, /* beyond that, bytes are not remembered: they may be in the trace more than once */
};

/* `known` has a bit for each byte; 0: the place is empty. */
struct drain_granule {
  uint64_t place, known;
  uint32_t space;
  uint8_t bytes[GRANULE];
};

static struct drain_granule *granule_find(const struct drain_code *code, uint32_t space, uint64_t place)
{
  uint64_t hash = (place ^ (uint64_t)space << 44) * UINT64_C(0x9E3779B97F4A7C15);
  size_t i = (size_t)(hash >> 32) & (code->capacity - 1);

  while (code->granules[i].known && (code->granules[i].place != place || code->granules[i].space != space))
    i = (i + 1) & (code->capacity - 1);
  return &code->granules[i];
}

/* Returns false: no room for another one. */
static bool granules_reserve(struct drain_code *code)
{
  struct drain_code bigger = {.count = code->count, .capacity = code->capacity ? 2 * code->capacity : GRANULES_LEAST};

  if (2 * (code->count + 1) <= code->capacity)
    return true;
  if (code->count >= GRANULES_MOST)
    return false;
  bigger.granules = calloc(bigger.capacity, sizeof(*bigger.granules));
  if (!bigger.granules)
    return false;
  for (size_t i = 0; i < code->capacity; i++)
    if (code->granules[i].known)
      *granule_find(&bigger, code->granules[i].space, code->granules[i].place) = code->granules[i];
  free(code->granules);
  *code = bigger;
  return true;
}

/* Part of a note that lies in one granule. */
static enum code_news granule_take(struct drain_code *code, uint32_t space, uint64_t address, const uint8_t *bytes,
                                   unsigned size)
{
  unsigned first = address % GRANULE;
  uint64_t mask = (size == GRANULE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << first;
  enum code_news news = CODE_KNOWN;
  struct drain_granule *granule;

  if (!granules_reserve(code))
    return CODE_CHANGED;
  granule = granule_find(code, space, address / GRANULE);
  if (!granule->known) {
    *granule = (struct drain_granule){.place = address / GRANULE, .space = space};
    code->count++;
  }
  if (~granule->known & mask)
    news = CODE_NEW;
  for (unsigned i = 0; i < size; i++)
    if (granule->known >> (first + i) & 1 && granule->bytes[first + i] != bytes[i])
      news = CODE_CHANGED;
  granule->known |= mask;
  memcpy(granule->bytes + first, bytes, size);
  return news;
}

enum code_news drain_code_take(struct drain_code *code, uint32_t space, uint64_t address, const uint8_t *bytes,
                               size_t size)
{
  enum code_news news = CODE_KNOWN;

  for (size_t done = 0; done < size;) {
    size_t piece = GRANULE - (address + done) % GRANULE;
    enum code_news here;

    if (piece > size - done)
      piece = size - done;
    here = granule_take(code, space, address + done, bytes + done, (unsigned)piece);
    news = here > news ? here : news;
    done += piece;
  }
  return news;
}

void drain_code_done(struct drain_code *code)
{
  free(code->granules);
}
