/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds repetitions among the entries of a chunk. It keeps all entries so far, in the producer's numbers, and a table
 * of positions where the guesses failed. At such a position the program did something that it does only now and then;
 * if it does so again, a long run of the following entries may be the same. Only the writer searches; the file stores
 * the result.
 */
#include <string.h>

#include "base/base.h"
#include "trace/vector.h"
#include "trace/writer.h"

#define REPEAT_LEAST 20u /* a shorter repetition costs more to store than to guess */

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

/* ---- places ---- */

/* Enters this position into the table. Returns the previous one, or 0 if there was none. */
static inline uint32_t place_put(struct writer_history *history, uint32_t context, uint32_t place)
{
  uint32_t *slot = &history->places[context % (1u << HISTORY_PLACES_BITS)], before = *slot;

  *slot = place;
  return before;
}

/* Overlapping words cannot be compared many at a time. Goes back by a multiple of the distance that avoids an
 * overlap. */
static uint32_t place_apart(const struct writer_history *history, uint32_t place)
{
  uint32_t distance = history->count - place;
  uint32_t apart = distance < VECTOR_WORDS ? (VECTOR_WORDS + distance - 1) / distance * distance : distance;

  return history->count - HISTORY_FIRST >= apart + ENTRIES_ORDER ? history->count - apart : place;
}

void history_look(struct writer_history *history, unsigned count, uint64_t missed, const uint32_t *contexts)
{
  uint32_t first = history->count - count, place = 0, at = history->count;
  const uint32_t *end = history->entries + history->count;

  for (; missed; missed &= missed - 1) {
    int i = __builtin_ctzll(missed);

    at = first + (uint32_t)i + 1;
    place = place_put(history, contexts[i], at);
  }
  if (at == history->count && !place) /* all were guessed */
    place = place_put(history, contexts[count - 1], at);
  history_leave(history);
  if (!place || place >= at)
    return;
  place = place_apart(history, place + (history->count - at));
  if (place - HISTORY_FIRST >= ENTRIES_ORDER &&
      memcmp(history->entries + place - ENTRIES_ORDER, end - ENTRIES_ORDER, ENTRIES_ORDER * sizeof(*end)) == 0)
    history->follow = place;
}

/* ---- repeating ---- */

size_t history_repeat(struct writer_history *history, const uint32_t *entries, size_t most, uint32_t *ret_distance,
                      uint64_t *ret_made)
{
  uint32_t distance = history->count - history->follow, *to = history->entries + history->count;
  uint8_t *counts = history->counts + history->count;
  const uint8_t *counts_from = counts - distance;
  const uint32_t *from = to - distance;
  uint64_t made = 0;
  size_t done = 0;

  for (; distance >= VECTOR_WORDS && done + VECTOR_WORDS <= most; done += VECTOR_WORDS) {
    if (!words_copy_same(to + done, from + done, entries + done))
      break;
    made += bytes_copy_sum(counts + done, counts_from + done);
  }
  for (; done < most && entries[done] == from[done]; done++) {
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
