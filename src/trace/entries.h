/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a chunk of entries (path.h): encoder and decoder. Four strings of bytes: pieces, misses, symbols,
 * events.
 *
 * A chunk is a row of pieces: so many plain entries, then so many that repeat what stood some way before in the chunk.
 * What programs do over and over is compared, or copied, many entries at a time, and costs next to nothing.
 *
 * Plain entries are guessed: by the two that came last in the same context, a hash of the last few. The misses have two
 * bits for each: the first guess was wrong; but the second was right. If both were wrong, a symbol says what came
 * instead. The encoder does this for many entries at a time without asking how each guess went: in programs that are
 * hard to guess, the processor would guess wrong as often as we do, and that costs more than all the rest.
 *
 * Events carry their words in a string of their own, and are never guessed or repeated.
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
#define ENTRIES_ORDER 4u  /* entries that make a context; so many are 0 before the first */
#define ENTRIES_BLOCK 64u /* plain entries that are encoded at a time, and that share two words of the misses */

/* What stands before the first entry of a chunk in its stream. */
enum {
  BEFORE_NONE = 0,   /* nothing, or it is not known what */
  BEFORE_EVENT = 1,  /* an event */
  BEFORE_NUMBER = 1, /* plus the number of a step or head: that one was the last */
};

/* An entry that stands for whatever made no sense when it was written: nothing that a walker could take. */
#define ENTRY_BAD LB_ENTRY_ENTER

/* What encoder and decoder both know. */
struct entry_model {
  uint64_t from, to; /* of the last event */
  struct entry_guesses {
    uint32_t first, second; /* 0: none */
  } guesses[ENTRIES_CONTEXTS];
};

/* The context behind an entry. Bits above ENTRIES_BITS do not count. */
static inline uint32_t entry_context(uint32_t context, uint32_t entry)
{
  return context << 4 ^ entry * 0x9E3779B1u >> (32 - ENTRIES_BITS);
}

static inline struct entry_guesses *entry_guesses(struct entry_model *model, uint32_t context)
{
  return &model->guesses[context & (ENTRIES_CONTEXTS - 1)];
}

/* That of the entries up to, not including, this one. */
static inline uint32_t entry_context_at(const uint32_t *words)
{
  uint32_t context = 0;

  for (unsigned i = ENTRIES_ORDER; i > 0; i--)
    context = entry_context(context, words[-(int)i]);
  return context;
}

/* ---- encoder ---- */

/* A piece: so many plain entries, then so many that repeat what stood so far before. */
struct entry_piece {
  uint32_t plain, repeated, distance;
};

/* Makes the strings of a chunk. */
struct entry_encoder {
  struct entry_model model;
  uint32_t words[ENTRIES_ORDER + ENTRIES_BLOCK]; /* the last ones, and room for those that come */
  uint32_t guesses[ENTRIES_BLOCK];               /* of each in the last block, the first, */
  uint32_t contexts[1 + ENTRIES_BLOCK];          /* the context before it, and the one behind all */
  uint32_t count;                                /* entries so far */
  struct entry_piece piece;                      /* that is being made */
  uint64_t missed, seconds;                      /* of the misses, what is not yet a block of them */
  unsigned bit_count;
  struct buffer pieces, misses, symbols, events;
};

/* Starts as all zero. */
void entry_encoder_begin(struct entry_encoder *encoder);
void entry_encoder_done(struct entry_encoder *encoder);

/* Makes room for so many further entries. Returns 0 or -ENOMEM. */
int entry_encoder_reserve(struct entry_encoder *encoder, size_t count);

/* Where the next entries are to be put, at most ENTRIES_BLOCK. */
static inline uint32_t *entry_encoder_room(struct entry_encoder *encoder)
{
  return encoder->words + ENTRIES_ORDER;
}

/* So many were put there, at least one, and none is an event. Returns which the first guess did not tell: bit 0 is the
 * first. */
uint64_t entry_encoder_plain(struct entry_encoder *encoder, unsigned count);

/* The contexts behind each of those that were encoded last; the lower ENTRIES_BITS count. */
static inline const uint32_t *entry_encoder_contexts(const struct entry_encoder *encoder)
{
  return encoder->contexts + 1;
}

/* An event; these are the words behind it. */
void entry_encoder_event(struct entry_encoder *encoder, const uint32_t words[LB_ENTRY_EVENT_WORDS]);

/* The next ones are as those that stood `distance` before, none is an event, and the last of all are then these. */
void entry_encoder_repeat(struct entry_encoder *encoder, uint32_t count, uint32_t distance,
                          const uint32_t last[ENTRIES_ORDER]);

/* Appends the contents of the chunk. Returns 0 or -ENOMEM. */
int entry_encoder_end(struct entry_encoder *encoder, uint64_t before, struct buffer *raw);

/* ---- decoder ---- */

struct entry_decoder {
  struct entry_model model;
  uint32_t *words; /* the chunk's so far, from ENTRIES_ORDER on */
  uint32_t count;  /* the place of the next among them */
  uint32_t context;
  struct cursor pieces, misses, symbols, events;
  uint64_t bit;             /* plain entries so far: the place in the misses */
  struct entry_piece piece; /* what is left of it */
  uint32_t left;            /* entries; an event is one */
  uint64_t before;
};

/* Starts as all zero. `bytes` must stay good while entries are read. Returns 0, LB_E_DAMAGED or -ENOMEM. */
int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size);
void entry_decoder_done(struct entry_decoder *decoder);

/* The next words, at most `room`, of which there are at least 6; events are whole. Returns how many, 0 at the end, or
 * LB_E_DAMAGED; after that the chunk gives no more. */
int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room);

#endif
