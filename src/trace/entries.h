/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a chunk of entries (path.h): encoder and decoder. Four strings of bytes: pieces, misses, symbols,
 * events.
 *
 * A chunk is a sequence of pieces. A piece is a number of plain entries, then a number of entries that repeat earlier
 * entries of the chunk at some distance. Repetition in a program is compared, or copied, many entries at a time, and
 * costs next to nothing.
 *
 * Plain entries are guessed: the two guesses are the entries that last came in the same context, a hash of the last few
 * entries. The misses have two bits for each entry: the first guess was wrong; the second guess was right. If both were
 * wrong, a symbol says what came instead. The encoder does this for many entries at a time without a branch on the
 * result of each guess: in programs that are hard to guess, the processor would mispredict that branch as often as the
 * guess is wrong, and that would cost more than all the rest.
 *
 * The words of events are in a separate string; events are never guessed or repeated.
 */
#ifndef TRACE_ENTRIES_H
#define TRACE_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/branches.h"
#include "trace/format.h"
#include "trace/path.h"

#define CHUNK_ENTRIES_MAX (1u << 20) /* an event is one */

#define ENTRIES_BITS 15 /* of a context */
#define ENTRIES_CONTEXTS (1u << ENTRIES_BITS)
#define ENTRIES_ORDER 4u  /* entries that make a context; before the first entry, so many are taken as 0 */
#define ENTRIES_BLOCK 64u /* plain entries that are encoded at a time, and that share two words of the misses */

/* The last entry of the stream before the chunk. */
enum {
  BEFORE_NONE = 0,   /* none, or it is not known */
  BEFORE_EVENT = 1,  /* an event */
  BEFORE_NUMBER = 1, /* plus the number of a step or head: that step or head */
};

/* Replaces an entry that was invalid when it was written: no walker accepts it. */
#define ENTRY_BAD LB_ENTRY_ENTER

/* The state that encoder and decoder share. */
struct entry_model {
  uint64_t from, to; /* of the last event */
  struct entry_guesses {
    uint32_t first, second; /* 0: none */
  } guesses[ENTRIES_CONTEXTS];
};

/* The context after an entry. Bits above ENTRIES_BITS are ignored. */
static inline uint32_t entry_context(uint32_t context, uint32_t entry)
{
  return context << 4 ^ entry * 0x9E3779B1u >> (32 - ENTRIES_BITS);
}

static inline struct entry_guesses *entry_guesses(struct entry_model *model, uint32_t context)
{
  return &model->guesses[context & (ENTRIES_CONTEXTS - 1)];
}

/* The context of the entries up to, but not including, this one. */
static inline uint32_t entry_context_at(const uint32_t *words)
{
  uint32_t context = 0;

  for (unsigned i = ENTRIES_ORDER; i > 0; i--)
    context = entry_context(context, words[-(int)i]);
  return context;
}

/* ---- encoder ---- */

/* A piece: `plain` plain entries, then `repeated` entries that repeat those `distance` before them. */
struct entry_piece {
  uint32_t plain, repeated, distance;
};

/* Makes the strings of a chunk. */
struct entry_encoder {
  struct entry_model model;
  uint32_t words[ENTRIES_ORDER + ENTRIES_BLOCK]; /* the last entries, and room for the next ones */
  uint32_t guesses[ENTRIES_BLOCK];               /* for each entry of the last block, the first guess, */
  uint32_t contexts[1 + ENTRIES_BLOCK];          /* the context before it, and the one after all of them */
  uint32_t count;                                /* entries so far */
  struct entry_piece piece;                      /* that is being made */
  uint64_t missed, seconds;                      /* bits of the misses that do not fill a block yet */
  unsigned bit_count;
  struct buffer pieces, misses, symbols, events;
};

/* Starts as all zero. */
void entry_encoder_begin(struct entry_encoder *encoder);
void entry_encoder_done(struct entry_encoder *encoder);

/* Makes room for `count` further entries. Returns 0 or -ENOMEM. */
int entry_encoder_reserve(struct entry_encoder *encoder, size_t count);

/* The buffer into which the caller puts the next entries, at most ENTRIES_BLOCK. */
static inline uint32_t *entry_encoder_room(struct entry_encoder *encoder)
{
  return encoder->words + ENTRIES_ORDER;
}

/* Encodes the `count` entries that were put there, at least one, none of them an event. Returns which of them the first
 * guess missed: bit 0 is the first entry. */
uint64_t entry_encoder_plain(struct entry_encoder *encoder, unsigned count);

/* Encodes an event; `words` are the words that follow it. */
void entry_encoder_event(struct entry_encoder *encoder, const uint32_t words[LB_ENTRY_EVENT_WORDS]);

/* Encodes `count` entries that repeat those `distance` before, none of them an event. `last` are the last entries of
 * the chunk after that. */
void entry_encoder_repeat(struct entry_encoder *encoder, uint32_t count, uint32_t distance,
                          const uint32_t last[ENTRIES_ORDER]);

/* Appends the contents of the chunk. Returns 0 or -ENOMEM. */
int entry_encoder_end(struct entry_encoder *encoder, uint64_t before, struct buffer *raw);

/* ---- decoder ---- */

struct entry_decoder {
  struct entry_model model;
  uint32_t *words; /* the chunk's entries so far, from ENTRIES_ORDER on */
  uint32_t count;  /* the place of the next among them */
  uint32_t context;
  struct cursor pieces, misses, symbols, events, stamps;
  uint64_t bit;             /* plain entries so far: the index in the misses */
  struct entry_piece piece; /* what is left of it */
  uint32_t left;            /* entries; an event is one */
  uint64_t before;
  bool is_fresh; /* no entry was read; the guesses are those of another chunk */
};

/* Starts as all zero. `bytes` must stay good while entries are read. Returns 0 or LB_E_DAMAGED. */
int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size);
void entry_decoder_done(struct entry_decoder *decoder);

/* Reads the next words, at most `room`, which is at least 6; an event is never split. Returns the number of words, 0 at
 * the end, -ENOMEM, or LB_E_DAMAGED; after that the chunk gives no more. */
int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room);

/* Skips the rest of the chunk. */
void entry_decoder_skip(struct entry_decoder *decoder);

/* ---- whole chunks ---- */

#define ENTRY_PIECES_MAX (1u << 16)

/* The pieces of a chunk whose entries were decoded. */
struct entry_pieces {
  bool is_good; /* if not, the entries are unusable, and the decoder must begin again */
  uint32_t count;
  struct entry_piece pieces[ENTRY_PIECES_MAX];
};

/* Decodes all entries of the chunk that a decoder has begun with, into decoder->words. Only an entry of a known number
 * is valid: others can be 0. A chunk that has events or too many pieces is not good. */
void entry_whole_read(struct entry_decoder *decoder, struct entry_pieces *pieces);

/* The same for two chunks, in much less time than one after the other. */
void entry_whole_read_two(struct entry_decoder *one, struct entry_pieces *pieces, struct entry_decoder *other,
                          struct entry_pieces *other_pieces);

#endif
