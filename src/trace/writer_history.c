/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds repetitions among the entries of a chunk. It keeps all entries so far, in the producer's numbers, and a table
 * of the places of plain entries by their key, a hash of the HISTORY_KEY entries that begin there. Before entries are
 * encoded, the same keys are looked for among the next ones. Entries inside a repetition are not in the table: the
 * earlier ones that they repeat are. Only the writer searches; the file stores the result.
 */
#include <string.h>

#include "base/base.h"
#include "trace/vector.h"
#include "trace/writer.h"

#define REPEAT_LEAST HISTORY_KEY /* a shorter repetition costs more to store than to guess */

/* An element of the table: the number of a place, and bits of its key, so that most places with other keys are rejected
 * without a comparison of entries. */
#define PLACE_BITS 21u
#define PLACE_MOST (1u << PLACE_BITS)
#define PLACE_CHECK_BITS (32u - PLACE_BITS)

_Static_assert(HISTORY_KEY >= VECTOR_WORDS, "place_follow compares so many");
_Static_assert(HISTORY_SIZE < PLACE_MOST, "");

void history_begin(struct writer_history *history)
{
  memset(history->places, 0, sizeof(history->places));
  memset(history->entries, 0, HISTORY_FIRST * sizeof(*history->entries));
  history->count = HISTORY_FIRST;
  history_leave(history);
}

/* ---- adding ---- */

uint64_t history_add(struct writer_history *history, unsigned count)
{
  uint8_t *counts = history->counts + history->count;
  uint64_t made = 0;
  unsigned i = 0;

  history->count += count;
  for (; i + VECTOR_WORDS <= count; i += VECTOR_WORDS)
    made += bytes_copy_sum(counts + i, counts + i);
  for (; i < count; i++)
    made += counts[i];
  return made;
}

/* ---- searching ---- */

/* The key of HISTORY_KEY entries after the next one came. Each shift moves the oldest one out. */
static inline uint64_t key_roll(uint64_t key, uint32_t entry)
{
  return key << (64 / HISTORY_KEY) ^ entry * UINT64_C(0x9E3779B97F4A7C15);
}

static inline uint32_t key_check(uint64_t key)
{
  return (uint32_t)(key >> (64 - HISTORY_PLACES_BITS - PLACE_CHECK_BITS)) << PLACE_BITS;
}

/* Enters this position into the table. Returns the previous one with the same key, or 0 if there was none. */
static inline uint32_t place_put(struct writer_history *history, uint64_t key, uint32_t place)
{
  uint32_t *slot = &history->places[key >> (64 - HISTORY_PLACES_BITS)];
  uint32_t word = key_check(key) | place, before = *slot;

  *slot = word;
  return (before ^ word) >> PLACE_BITS ? 0 : before & (PLACE_MOST - 1);
}

/* Sets `follow`, if the entries at `at` may repeat those at `place`, which have the same key. history_repeat compares
 * them later, when they are in the processor's cache. Overlapping words cannot be compared many at a time, so the place
 * moves back by a multiple of the distance. The entries there may differ, and are compared now. */
static bool place_follow(struct writer_history *history, uint32_t place, uint32_t at)
{
  const uint32_t *entries = history->entries;
  uint32_t distance = at - place, apart = (VECTOR_WORDS + distance - 1) / distance * distance;

  if (distance < VECTOR_WORDS) {
    if (at < HISTORY_FIRST + apart || words_differ(entries + at - apart, entries + at))
      return false;
    place = at - apart;
  }
  __builtin_prefetch(entries + place);
  __builtin_prefetch(entries + place + VECTOR_WORDS);
  history->follow = place;
  return true;
}

/* Fetches the data about an entry into the processor's cache; for an invalid entry, this has no effect. */
static inline void info_fetch(const struct path_info *infos, uint32_t entry)
{
  __builtin_prefetch((const void *)((uintptr_t)infos + entry * sizeof(*infos)));
}

unsigned history_search(struct writer_history *history, unsigned count, const struct path_info *infos)
{
  const uint32_t *next = history->entries + history->count;
  unsigned last = count < HISTORY_KEY ? 0 : count - HISTORY_KEY + 1;
  uint64_t key = 0;

  history_leave(history);
  if (last > ENTRIES_BLOCK)
    last = ENTRIES_BLOCK;
  for (unsigned i = 0; last && i < HISTORY_KEY - 1; i++)
    key = key_roll(key, next[i]);
  for (unsigned i = 0; i < last; i++) {
    uint32_t at = history->count + i, place;

    info_fetch(infos, next[i]);
    key = key_roll(key, next[i + HISTORY_KEY - 1]);
    place = place_put(history, key, at);
    if (place && place < at && place_follow(history, place, at)) /* a later place is from an earlier search */
      return i;
  }
  return count < ENTRIES_BLOCK ? count : ENTRIES_BLOCK;
}

/* ---- repeating ---- */

size_t history_repeat(struct writer_history *history, const uint32_t *entries, size_t most, uint8_t first,
                      uint32_t *ret_distance, uint64_t *ret_made)
{
  uint32_t distance = history->count - history->follow, *to = history->entries + history->count;
  uint8_t *counts = history->counts + history->count;
  const uint8_t *counts_from = counts - distance;
  const uint32_t *from = to - distance;
  uint64_t made = first;
  size_t done = entries[0] == from[0] ? 1 : 0;

  to[0] = from[0];
  counts[0] = first;
  for (; done && done + VECTOR_WORDS <= most; done += VECTOR_WORDS) {
    if (!words_copy_same(to + done, from + done, entries + done))
      break;
    made += bytes_copy_sum(counts + done, counts_from + done);
  }
  for (; done && done < most && entries[done] == from[done]; done++) {
    to[done] = from[done];
    counts[done] = counts_from[done];
    made += counts[done];
  }
  if (done < REPEAT_LEAST && !history->is_followed)
    done = 0;
  history->is_followed = done && done == most;
  history->follow = history->is_followed ? history->follow + (uint32_t)done : 0;
  history->count += (uint32_t)done;
  *ret_distance = distance;
  *ret_made = made;
  return done;
}
