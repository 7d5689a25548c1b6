/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to entries: the reverse of entry_encode.c. The bytes are untrusted: every number is checked. The result is a
 * list of words other than 0, in which events are complete. The walker (path.c) checks whether the list makes sense.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/entry_read.h"
#include "trace/sparse.h"

#define WORDS_SIZE ((ENTRIES_ORDER + CHUNK_ENTRIES_MAX + COPY_BLOCK) * sizeof(uint32_t))
#define MISSES_BLOCK (ENTRIES_BLOCK / 4) /* bytes of the misses of that many entries */
#define HALVES UINT64_C(0x0F0F0F0F0F0F0F0F)

/* ---- begin ---- */

static int strings_find(struct entry_decoder *decoder, struct cursor *cursor)
{
  struct cursor *strings[] = {&decoder->pieces, &decoder->misses, &decoder->symbols, &decoder->events};
  uint64_t sizes[4];

  for (unsigned i = 0; i < 4; i++)
    sizes[i] = cursor_varint(cursor);
  for (unsigned i = 0; i < 4; i++) {
    const uint8_t *string = cursor_bytes(cursor, sizes[i]);

    if (!string)
      return LB_E_DAMAGED;
    *strings[i] = (struct cursor){string, string + sizes[i], false};
  }
  decoder->stamps = *cursor;
  return cursor->is_short ? LB_E_DAMAGED : 0;
}

int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size)
{
  struct cursor cursor = {bytes, bytes + size, false};
  uint64_t count;

  decoder->left = 0;
  decoder->before = cursor_varint(&cursor);
  count = cursor_varint(&cursor);
  if (strings_find(decoder, &cursor) < 0 || (!count && !cursor_left(&cursor)) || count > CHUNK_ENTRIES_MAX)
    return LB_E_DAMAGED;
  decoder->is_fresh = true;
  decoder->count = ENTRIES_ORDER;
  decoder->context = 0;
  decoder->bit = 0;
  decoder->piece = (struct entry_piece){0};
  decoder->left = (uint32_t)count;
  return 0;
}

int entry_decoder_prepare(struct entry_decoder *decoder)
{
  if (!decoder->words)
    decoder->words = sparse_grow(NULL, 0, WORDS_SIZE);
  if (!decoder->words)
    return -ENOMEM;
  memset(&decoder->model, 0, sizeof(decoder->model));
  memset(decoder->words, 0, ENTRIES_ORDER * sizeof(*decoder->words));
  decoder->is_fresh = false;
  return 0;
}

void entry_decoder_done(struct entry_decoder *decoder)
{
  sparse_free(decoder->words, WORDS_SIZE);
  decoder->words = NULL;
}

bool piece_read(struct entry_decoder *decoder)
{
  uint64_t plain = cursor_varint(&decoder->pieces), repeated = 0, distance = 0;

  if (plain > decoder->left ||
      plain > cursor_left(&decoder->misses) / MISSES_BLOCK * (uint64_t)ENTRIES_BLOCK - decoder->bit)
    return false;
  if (plain < decoder->left) {
    repeated = cursor_varint(&decoder->pieces);
    distance = cursor_varint(&decoder->pieces);
    if (!repeated || repeated > decoder->left - plain || !distance || distance > decoder->count - ENTRIES_ORDER + plain)
      return false;
  }
  decoder->piece = (struct entry_piece){(uint32_t)plain, (uint32_t)repeated, (uint32_t)distance};
  return !decoder->pieces.is_short;
}

/* ---- repeated entries ---- */

/* Returns false if there is an event. */
static bool entries_copy(uint32_t *to, uint32_t distance, size_t count)
{
  uint32_t has_event = 0;

  words_copy(to, distance, count);
  for (size_t i = 0; i < count; i++)
    has_event |= to[i] == LB_ENTRY_EVENT;
  return !has_event;
}

/* Returns the number of entries, or 0 if the piece is invalid. */
static size_t repeated_take(struct entry_decoder *decoder, uint32_t *words, size_t room)
{
  struct entry_piece *piece = &decoder->piece;
  size_t count = piece->repeated < room ? piece->repeated : room;
  uint32_t *at = decoder->words + decoder->count;

  if (!entries_copy(at, piece->distance, count))
    return 0;
  memcpy(words, at, count * sizeof(*words));
  decoder->count += (uint32_t)count;
  decoder->left -= (uint32_t)count;
  piece->repeated -= (uint32_t)count;
  if (!piece->repeated)
    decoder->context = entry_context_at(at + count);
  return count;
}

/* ---- plain entries ---- */

uint64_t misses_read(const struct entry_decoder *decoder, uint64_t *ret_seconds)
{
  const uint8_t *at = decoder->misses.at + decoder->bit / ENTRIES_BLOCK * MISSES_BLOCK;
  uint64_t low = bytes_get_u64(at), high = bytes_get_u64(at + 8);

  *ret_seconds = ((low >> 4 & HALVES) | (high & ~HALVES)) >> decoder->bit % ENTRIES_BLOCK;
  return ((low & HALVES) | (high & HALVES) << 4) >> decoder->bit % ENTRIES_BLOCK;
}

/* Reads the words of an event. */
static bool event_read(struct entry_decoder *decoder, uint32_t words[LB_ENTRY_EVENT_WORDS])
{
  struct cursor *events = &decoder->events;
  struct entry_model *model = &decoder->model;
  unsigned kind = cursor_u8(events);
  uint64_t passed = cursor_varint(events);

  model->from += zagzig(cursor_varint(events));
  model->to += zagzig(cursor_varint(events));
  words[0] = kind | (uint32_t)passed << 8;
  words[1] = (uint32_t)model->from;
  words[2] = (uint32_t)(model->from >> 32);
  words[3] = (uint32_t)model->to;
  words[4] = (uint32_t)(model->to >> 32);
  return !events->is_short && passed < 1u << 24;
}

/* True for an empty guess and for an event: neither is ever guessed. */
static inline uint32_t guess_is_wrong(uint32_t guess)
{
  return guess + 1 < 2;
}

/* Updates the guesses with the entry that came, which differs from the first guess unless it is an event. */
static inline void guesses_change(struct entry_guesses *guesses, uint32_t entry)
{
  guesses->second = guesses->first != entry ? guesses->first : guesses->second;
  guesses->first = entry;
}

/* Reads entries, at most up to and including an event. Returns their number, 0 if one is invalid. */
static inline unsigned words_read(struct entry_decoder *decoder, unsigned count)
{
  uint32_t *words = decoder->words + decoder->count, context = decoder->context, wrong = 0;
  uint64_t seconds, missed = misses_read(decoder, &seconds);
  unsigned done = 0;

  for (;;) {
    struct entry_guesses *guesses;
    unsigned stop = missed ? (unsigned)__builtin_ctzll(missed) : count;

    for (stop = stop < count ? stop : count; done < stop; done++) {
      words[done] = entry_guesses(&decoder->model, context)->first;
      wrong |= guess_is_wrong(words[done]);
      context = entry_context(context, words[done]);
    }
    if (done == count)
      break;
    missed &= missed - 1;
    guesses = entry_guesses(&decoder->model, context);
    if (seconds >> done & 1) {
      words[done] = guesses->second;
      wrong |= guess_is_wrong(words[done]);
    } else {
      words[done] = symbol_read(&decoder->symbols, words[(int)done - 1]);
      wrong |= !words[done];
    }
    guesses_change(guesses, words[done]);
    context = entry_context(context, words[done]);
    if (words[done++] == LB_ENTRY_EVENT)
      break;
  }
  decoder->context = context;
  return wrong ? 0 : done;
}

/* Returns the number of words, 0 if they are invalid. */
static size_t plain_take(struct entry_decoder *decoder, uint32_t *words, size_t room)
{
  size_t block = ENTRIES_BLOCK - decoder->bit % ENTRIES_BLOCK;
  size_t most = room - LB_ENTRY_EVENT_WORDS < block ? room - LB_ENTRY_EVENT_WORDS : block;
  unsigned count = words_read(decoder, decoder->piece.plain < most ? decoder->piece.plain : (unsigned)most);

  if (!count)
    return 0;
  memcpy(words, decoder->words + decoder->count, count * sizeof(*words));
  decoder->bit += count;
  decoder->count += count;
  decoder->left -= count;
  decoder->piece.plain -= count;
  if (words[count - 1] != LB_ENTRY_EVENT)
    return count;
  return event_read(decoder, words + count) ? count + LB_ENTRY_EVENT_WORDS : 0;
}

/* ---- all ---- */

bool entry_strings_are_used(const struct entry_decoder *decoder)
{
  return !cursor_left(&decoder->pieces) &&
         (decoder->bit + ENTRIES_BLOCK - 1) / ENTRIES_BLOCK * MISSES_BLOCK == cursor_left(&decoder->misses) &&
         !cursor_left(&decoder->symbols) && !cursor_left(&decoder->events);
}

void entry_decoder_skip(struct entry_decoder *decoder)
{
  struct cursor *strings[] = {&decoder->pieces, &decoder->misses, &decoder->symbols, &decoder->events};

  for (unsigned i = 0; i < 4; i++)
    strings[i]->at = strings[i]->end;
  decoder->bit = 0;
  decoder->left = 0;
}

int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room)
{
  const struct entry_piece *piece = &decoder->piece;
  size_t done = 0;

  if (decoder->left && decoder->is_fresh && entry_decoder_prepare(decoder) < 0)
    return -ENOMEM;
  while (decoder->left && room - done >= 1 + LB_ENTRY_EVENT_WORDS) {
    size_t more;

    if (!piece->plain && !piece->repeated && !piece_read(decoder))
      goto damaged;
    if (piece->plain)
      more = plain_take(decoder, ret_words + done, room - done);
    else
      more = repeated_take(decoder, ret_words + done, room - done);
    if (!more)
      goto damaged;
    done += more;
  }
  if (decoder->left || entry_strings_are_used(decoder))
    return (int)done;
damaged:
  decoder->left = 0;
  return LB_E_DAMAGED;
}
