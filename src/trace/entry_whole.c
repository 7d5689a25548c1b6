/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes whole chunks of entries, which have no events. The bytes are untrusted: every number is checked, as in
 * entry_decode.c.
 *
 * The context of an entry depends on the entry before it, so a processor that decodes one chunk mostly waits for its
 * table of guesses. It decodes two chunks in that time: chunks do not depend on each other. There is a branch on the
 * misses: they are known before the guess is, so that a mispredicted branch costs little, and the processor continues
 * with the first guess without waiting for the other values that an entry can have.
 */
#include <string.h>

#include "trace/entry_read.h"

#define CONTEXT_MASK (ENTRIES_CONTEXTS - 1)

/* A chunk that is being decoded. */
struct lane {
  struct entry_decoder *decoder;
  struct entry_pieces *pieces;
  unsigned left;                      /* plain entries that are prepared: */
  uint64_t missed, seconds;           /* their misses, the next entry first */
  const uint32_t *delta;              /* the next of the block's symbols */
  uint32_t deltas[ENTRIES_BLOCK + 1]; /* one more is read than there is */
  bool is_over, is_bad;
};

/* ---- symbols ---- */

/* A varint of at most five bytes out of the eight that are there; its size is 0 if it is longer. */
static inline uint64_t varint_take(const uint8_t *bytes, unsigned *ret_size)
{
  uint64_t word = bytes_get_u64(bytes), ends = ~word & UINT64_C(0x8080808080);

  if (!ends) {
    *ret_size = 0;
    return 0;
  }
  *ret_size = ((unsigned)__builtin_ctzll(ends) >> 3) + 1;
  word &= (ends ^ (ends - 1));
  return (word & 0x7F) | (word >> 1 & 0x3F80) | (word >> 2 & 0x1FC000) | (word >> 3 & 0xFE00000) |
         (word >> 4 & UINT64_C(0x7F0000000));
}

/* Reads a symbol for each bit that is set. */
static bool symbols_read(struct cursor *symbols, uint32_t *deltas, uint64_t wanted)
{
  struct cursor cursor = *symbols; /* a copy can be kept in registers */

  for (; wanted; wanted &= wanted - 1) {
    unsigned size = 0;
    uint64_t symbol = cursor_left(&cursor) >= 8 ? varint_take(cursor.at, &size) : 0;

    if (!size) {
      *symbols = cursor;
      symbol = cursor_varint(symbols);
      cursor = *symbols;
    }
    cursor.at += size;
    if (symbol > UINT32_MAX || cursor.is_short)
      return false;
    *deltas++ = (uint32_t)zagzig(symbol);
  }
  *symbols = cursor;
  return true;
}

/* ---- pieces ---- */

/* Prepares the plain entries that share the next block of misses. */
static bool lane_block(struct lane *lane)
{
  struct entry_decoder *decoder = lane->decoder;
  uint32_t block = ENTRIES_BLOCK - decoder->bit % ENTRIES_BLOCK;
  uint32_t count = decoder->piece.plain < block ? decoder->piece.plain : block;
  uint64_t all = count < ENTRIES_BLOCK ? (UINT64_C(1) << count) - 1 : UINT64_MAX;

  lane->missed = misses_read(decoder, &lane->seconds);
  lane->left = count;
  lane->delta = lane->deltas;
  decoder->bit += count;
  decoder->piece.plain -= count;
  return symbols_read(&decoder->symbols, lane->deltas, lane->missed & ~lane->seconds & all);
}

static void lane_repeat(struct entry_decoder *decoder)
{
  uint32_t *at = decoder->words + decoder->count, count = decoder->piece.repeated;

  words_copy(at, decoder->piece.distance, count);
  decoder->count += count;
  decoder->piece.repeated = 0;
  decoder->context = entry_context_at(at + count);
}

static bool lane_piece(struct lane *lane)
{
  struct entry_decoder *decoder = lane->decoder;

  if (lane->pieces->count == ENTRY_PIECES_MAX || !piece_read(decoder))
    return false;
  decoder->left -= decoder->piece.plain + decoder->piece.repeated;
  lane->pieces->pieces[lane->pieces->count++] = decoder->piece;
  return true;
}

/* Advances to the next plain entries, or to the end. */
static void lane_prepare(struct lane *lane)
{
  struct entry_decoder *decoder = lane->decoder;

  while (!lane->left && !lane->is_over) {
    if (decoder->piece.plain)
      lane->is_bad = !lane_block(lane);
    else if (decoder->piece.repeated)
      lane_repeat(decoder);
    else if (decoder->left)
      lane->is_bad = !lane_piece(lane);
    else
      lane->is_over = true;
    if (lane->is_bad) {
      lane->is_over = true;
      lane->left = 0;
    }
  }
}

/* ---- plain entries ---- */

/* The part of a lane that changes with each entry. */
struct runner {
  struct entry_guesses *guesses;
  uint32_t *words;
  const uint32_t *delta;
  uint64_t missed, seconds;
  uint32_t context;
};

static inline struct runner runner_begin(const struct lane *lane)
{
  struct entry_decoder *decoder = lane->decoder;

  return (struct runner){.guesses = decoder->model.guesses,
                         .words = decoder->words + decoder->count,
                         .delta = lane->delta,
                         .missed = lane->missed,
                         .seconds = lane->seconds,
                         .context = decoder->context & CONTEXT_MASK};
}

static inline void runner_end(const struct runner *runner, struct lane *lane, unsigned count)
{
  lane->decoder->count += count;
  lane->decoder->context = runner->context;
  lane->delta = runner->delta;
  lane->missed = count < ENTRIES_BLOCK ? runner->missed >> count : 0;
  lane->seconds = count < ENTRIES_BLOCK ? runner->seconds >> count : 0;
  lane->left -= count;
}

/* Decodes entry `i` of the block. If the chunk refers to a guess that does not exist, the entry is 0, which is never
 * valid. */
static inline void runner_step(struct runner *runner, unsigned i)
{
  struct entry_guesses *guesses = &runner->guesses[runner->context];
  uint32_t first = guesses->first, entry = first;

  if (runner->missed >> i & 1) {
    uint32_t second = guesses->second, symbol = runner->words[(int)i - 1] + *runner->delta;
    bool is_second = runner->seconds >> i & 1;

    entry = is_second ? second : symbol;
    runner->delta += !is_second;
    guesses->first = entry;
    guesses->second = first != entry ? first : second;
  }
  runner->words[i] = entry;
  runner->context = entry_context(runner->context, entry) & CONTEXT_MASK;
}

static void lane_run(struct lane *lane)
{
  struct runner runner = runner_begin(lane);
  unsigned count = lane->left;

  for (unsigned i = 0; i < count; i++)
    runner_step(&runner, i);
  runner_end(&runner, lane, count);
}

static void lanes_run(struct lane *one, struct lane *other)
{
  struct runner first = runner_begin(one), second = runner_begin(other);
  unsigned count = one->left < other->left ? one->left : other->left;

  for (unsigned i = 0; i < count; i++) {
    runner_step(&first, i);
    runner_step(&second, i);
  }
  runner_end(&first, one, count);
  runner_end(&second, other, count);
}

/* ---- all ---- */

static void lane_begin(struct lane *lane, struct entry_decoder *decoder, struct entry_pieces *pieces)
{
  lane->decoder = decoder;
  lane->pieces = pieces;
  lane->left = 0;
  lane->deltas[0] = 0;
  lane->is_bad = cursor_left(&decoder->events) || entry_decoder_prepare(decoder) < 0;
  lane->is_over = lane->is_bad;
  pieces->count = 0;
  pieces->is_good = false;
}

static void lane_end(const struct lane *lane)
{
  lane->pieces->is_good = !lane->is_bad && entry_strings_are_used(lane->decoder);
}

void entry_whole_read(struct entry_decoder *decoder, struct entry_pieces *pieces)
{
  struct lane lane;

  lane_begin(&lane, decoder, pieces);
  for (lane_prepare(&lane); !lane.is_over; lane_prepare(&lane))
    lane_run(&lane);
  lane_end(&lane);
}

void entry_whole_read_two(struct entry_decoder *one, struct entry_pieces *pieces, struct entry_decoder *other,
                          struct entry_pieces *other_pieces)
{
  struct lane lanes[2];

  lane_begin(&lanes[0], one, pieces);
  lane_begin(&lanes[1], other, other_pieces);
  for (;;) {
    lane_prepare(&lanes[0]);
    lane_prepare(&lanes[1]);
    if (lanes[0].is_over || lanes[1].is_over)
      break;
    lanes_run(&lanes[0], &lanes[1]);
  }
  for (unsigned i = 0; i < 2; i++) {
    for (; !lanes[i].is_over; lane_prepare(&lanes[i]))
      lane_run(&lanes[i]);
    lane_end(&lanes[i]);
  }
}
