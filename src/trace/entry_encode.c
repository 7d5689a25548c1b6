/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries to bytes: see entries.h.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "trace/entries.h"
#include "trace/vector.h"

#define SYMBOL_BYTES 6u /* more than a symbol of 32 bits needs */
#define EVENT_BYTES (1u + 5u + 2u * VARINT_MAX)
#define PIECE_BYTES 9u /* three numbers below 2^21; a piece but the first has at least one entry */

void entry_encoder_begin(struct entry_encoder *encoder)
{
  memset(&encoder->model, 0, sizeof(encoder->model));
  memset(encoder->words, 0, sizeof(encoder->words));
  encoder->contexts[0] = encoder->count = 0;
  encoder->piece = (struct entry_piece){0};
  encoder->missed = encoder->seconds = 0;
  encoder->bit_count = 0;
  encoder->pieces.size = encoder->misses.size = encoder->symbols.size = encoder->events.size = 0;
}

void entry_encoder_done(struct entry_encoder *encoder)
{
  buffer_done(&encoder->pieces);
  buffer_done(&encoder->misses);
  buffer_done(&encoder->symbols);
  buffer_done(&encoder->events);
}

int entry_encoder_reserve(struct entry_encoder *encoder, size_t count)
{
  if (buffer_reserve(&encoder->pieces, (count + 2) * PIECE_BYTES) < 0 ||
      buffer_reserve(&encoder->misses, count / 4 + 4 * sizeof(encoder->missed)) < 0 ||
      buffer_reserve(&encoder->symbols, count * SYMBOL_BYTES) < 0)
    return -ENOMEM;
  return buffer_reserve(&encoder->events, (count / (1 + LB_ENTRY_EVENT_WORDS) + 1) * EVENT_BYTES);
}

static void number_put(struct buffer *buffer, uint64_t number)
{
  buffer->size = (size_t)(varint_put(buffer->bytes + buffer->size, number) - buffer->bytes);
}

/* ---- plain entries ---- */

#define HALVES UINT64_C(0x0F0F0F0F0F0F0F0F)

/* Writes a block of miss bits. A byte has both bits of four entries, so that zstd sees related bits together. */
static void misses_write(struct entry_encoder *encoder, uint64_t missed, uint64_t seconds)
{
  uint8_t *at = encoder->misses.bytes + encoder->misses.size;

  bytes_put_u64(at, (missed & HALVES) | (seconds & HALVES) << 4);
  bytes_put_u64(at + 8, (missed >> 4 & HALVES) | (seconds & ~HALVES));
  encoder->misses.size += 16;
}

/* Appends bits, at most 64 of each. */
static void misses_put(struct entry_encoder *encoder, uint64_t missed, uint64_t seconds, unsigned count)
{
  unsigned used = encoder->bit_count;

  encoder->missed |= missed << used;
  encoder->seconds |= seconds << used;
  encoder->bit_count += count;
  if (encoder->bit_count < 64)
    return;
  misses_write(encoder, encoder->missed, encoder->seconds);
  encoder->bit_count -= 64;
  encoder->missed = used ? missed >> (64 - used) : 0;
  encoder->seconds = used ? seconds >> (64 - used) : 0;
}

/* A difference of two entries, as a small number. */
static uint64_t entry_difference(uint32_t entry, uint32_t guess)
{
  return zigzag((uint64_t)(int64_t)(int32_t)(entry - guess));
}

/* Writes a number that mostly needs up to three bytes, without branches on its length. Stores four bytes in any case.
 * Returns the end of the number. */
static inline uint8_t *small_put(uint8_t *at, uint64_t number)
{
  uint32_t has_two = number > 0x7F, has_three = number > 0x3FFF, low = (uint32_t)number;

  if (number >= 1u << 21)
    return varint_put(at, number);
  low = (low & 0x7F) | has_two << 7 | (low & 0x3F80) << 1 | has_three << 15 | (low & 0x1FC000) << 2;
  bytes_put_u32(at, low);
  return at + 1 + has_two + has_three;
}

/* Writes the symbols of the entries that were not guessed. */
static void symbols_put(struct entry_encoder *encoder, uint64_t others)
{
  const uint32_t *words = encoder->words + ENTRIES_ORDER;
  uint8_t *at = encoder->symbols.bytes + encoder->symbols.size;

  for (; others; others &= others - 1) {
    int i = __builtin_ctzll(others);

    at = small_put(at, entry_difference(words[i], words[i - 1]));
  }
  encoder->symbols.size = (size_t)(at - encoder->symbols.bytes);
}

/* Makes the first guesses and learns the entries that came. */
static inline void words_guess(struct entry_encoder *encoder, unsigned count)
{
  const uint32_t *words = encoder->words + ENTRIES_ORDER;
  uint32_t context = encoder->contexts[0];

  for (unsigned i = 0; i < count; i++) {
    struct entry_guesses *guesses = entry_guesses(&encoder->model, context);

    encoder->guesses[i] = guesses->first;
    guesses->first = words[i];
    context = entry_context(context, words[i]);
    encoder->contexts[i + 1] = context;
  }
}

/* Returns a mask of the wrong guesses. */
static inline uint64_t words_compare(const uint32_t *words, const uint32_t *guesses, unsigned count)
{
  uint64_t missed = 0;

  for (unsigned i = 0; i < count; i += VECTOR_WORDS)
    missed |= (uint64_t)words_differ(words + i, guesses + i) << i;
  return missed;
}

/* Where the first guess was wrong, it becomes the second. Returns a mask of the second guesses that were right. */
static uint64_t seconds_guess(struct entry_encoder *encoder, uint64_t missed)
{
  const uint32_t *words = encoder->words + ENTRIES_ORDER;
  uint64_t seconds = 0;

  for (; missed; missed &= missed - 1) {
    int i = __builtin_ctzll(missed);
    struct entry_guesses *guesses = entry_guesses(&encoder->model, encoder->contexts[i]);

    seconds |= (uint64_t)(guesses->second == words[i]) << i;
    guesses->second = encoder->guesses[i];
  }
  return seconds;
}

/* Removes the first `count` words, which are encoded. */
static void words_move(struct entry_encoder *encoder, unsigned count)
{
  uint32_t last[ENTRIES_ORDER];

  memcpy(last, encoder->words + count, sizeof(last));
  memcpy(encoder->words, last, sizeof(last));
  encoder->count += count;
  encoder->piece.plain += count;
  encoder->contexts[0] = encoder->contexts[count];
}

/* Writes the piece, which is complete: no more entries can be added to it. */
static void piece_put(struct entry_encoder *encoder)
{
  const struct entry_piece *piece = &encoder->piece;

  number_put(&encoder->pieces, piece->plain);
  if (piece->repeated) {
    number_put(&encoder->pieces, piece->repeated);
    number_put(&encoder->pieces, piece->distance);
  }
  encoder->piece = (struct entry_piece){0};
}

uint64_t entry_encoder_plain(struct entry_encoder *encoder, unsigned count)
{
  uint64_t missed, seconds;

  words_guess(encoder, count);
  missed = words_compare(encoder->words + ENTRIES_ORDER, encoder->guesses, count) & ~UINT64_C(0) >> (64 - count);
  seconds = seconds_guess(encoder, missed);
  if (encoder->piece.repeated)
    piece_put(encoder);
  misses_put(encoder, missed, seconds, count);
  symbols_put(encoder, missed & ~seconds);
  words_move(encoder, count);
  return missed;
}

/* ---- events ---- */

void entry_encoder_event(struct entry_encoder *encoder, const uint32_t words[LB_ENTRY_EVENT_WORDS])
{
  uint64_t from = words[1] | (uint64_t)words[2] << 32, to = words[3] | (uint64_t)words[4] << 32;
  struct buffer *events = &encoder->events;

  if (encoder->piece.repeated)
    piece_put(encoder);
  encoder->words[ENTRIES_ORDER] = LB_ENTRY_EVENT;
  words_guess(encoder, 1);
  seconds_guess(encoder, encoder->guesses[0] != LB_ENTRY_EVENT);
  misses_put(encoder, 1, 0, 1);
  symbols_put(encoder, 1);
  words_move(encoder, 1);
  events->bytes[events->size++] = (uint8_t)words[0];
  number_put(events, words[0] >> 8);
  number_put(events, zigzag(from - encoder->model.from));
  number_put(events, zigzag(to - encoder->model.to));
  encoder->model.from = from;
  encoder->model.to = to;
}

/* ---- pieces ---- */

void entry_encoder_repeat(struct entry_encoder *encoder, uint32_t count, uint32_t distance,
                          const uint32_t last[ENTRIES_ORDER])
{
  struct entry_piece *piece = &encoder->piece;

  if (piece->repeated && piece->distance != distance)
    piece_put(encoder);
  piece->distance = distance;
  piece->repeated += count;
  encoder->count += count;
  memcpy(encoder->words, last, ENTRIES_ORDER * sizeof(*last));
  encoder->contexts[0] = entry_context_at(encoder->words + ENTRIES_ORDER);
}

static void string_put(struct buffer *raw, const struct buffer *string)
{
  memcpy(raw->bytes + raw->size, string->bytes, string->size);
  raw->size += string->size;
}

int entry_encoder_end(struct entry_encoder *encoder, uint64_t before, struct buffer *raw)
{
  const struct buffer *strings[] = {&encoder->pieces, &encoder->misses, &encoder->symbols, &encoder->events};
  size_t size = 6 * VARINT_MAX;

  if (encoder->piece.plain || encoder->piece.repeated)
    piece_put(encoder);
  if (encoder->bit_count)
    misses_write(encoder, encoder->missed, encoder->seconds);
  for (unsigned i = 0; i < 4; i++)
    size += strings[i]->size;
  if (buffer_reserve(raw, size) < 0)
    return -ENOMEM;
  number_put(raw, before);
  number_put(raw, encoder->count);
  for (unsigned i = 0; i < 4; i++)
    number_put(raw, strings[i]->size);
  for (unsigned i = 0; i < 4; i++)
    string_put(raw, strings[i]);
  return 0;
}
