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

/* Those of spaces that are not over. */
static size_t granules_count(const struct process_drain *drain)
{
  const struct drain_code *code = &drain->code;
  size_t count = 0;

  for (size_t i = 0; i < code->capacity; i++)
    count += code->granules[i].known && !drain_space_is_over(drain, code->granules[i].space);
  return count;
}

/* Leaves out spaces that are over. Returns false: no memory. */
static bool granules_move(struct process_drain *drain, size_t capacity)
{
  struct drain_code *code = &drain->code, moved = {.capacity = capacity, .spaces_over = code->spaces_over};

  moved.granules = calloc(capacity, sizeof(*moved.granules));
  if (!moved.granules)
    return false;
  for (size_t i = 0; i < code->capacity; i++) {
    const struct drain_granule *granule = &code->granules[i];
    if (!granule->known || drain_space_is_over(drain, granule->space))
      continue;
    *granule_find(&moved, granule->space, granule->place) = *granule;
    moved.count++;
  }
  free(code->granules);
  *code = moved;
  return true;
}

/* Returns false: no room for another one. */
static bool granules_reserve(struct process_drain *drain)
{
  struct drain_code *code = &drain->code;
  size_t capacity = code->capacity ? code->capacity : GRANULES_LEAST, count;

  if (2 * (code->count + 1) <= code->capacity)
    return true;
  if (code->count >= GRANULES_MOST && code->spaces_over == drain->spaces_over)
    return false;
  count = granules_count(drain);
  code->spaces_over = drain->spaces_over;
  if (count >= GRANULES_MOST)
    return false;
  return granules_move(drain, 3 * (count + 1) > capacity ? 2 * capacity : capacity);
}

/* Part of a note that lies in one granule. */
static enum code_news granule_take(struct process_drain *drain, uint32_t space, uint64_t address, const uint8_t *bytes,
                                   unsigned size)
{
  unsigned first = address % GRANULE;
  uint64_t mask = (size == GRANULE ? UINT64_MAX : (UINT64_C(1) << size) - 1) << first;
  struct drain_code *code = &drain->code;
  enum code_news news = CODE_KNOWN;
  struct drain_granule *granule;

  if (!granules_reserve(drain))
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

enum code_news drain_code_take(struct process_drain *drain, uint32_t space, uint64_t address, const uint8_t *bytes,
                               size_t size)
{
  enum code_news news = CODE_KNOWN;

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
}
