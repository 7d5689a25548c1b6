/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a chunk of entries (path.h): encoder and decoder, which guess what comes next by the same rule. Three
 * strings of bytes: runs, symbols, events.
 *
 * At first the guess is what came last in the same context, a hash of the last few entries. When that was right often
 * enough in a row, and the chunk has been here before, it is what followed there, entry by entry, until it is wrong
 * once: what repeats itself costs next to nothing, for it is compared, or copied, many entries at a time.
 *
 * A byte of the runs says how often the guess was right in a row, and what then came instead: another guess (the second
 * in the context; or, if the entries were followed, the first), or what the next of the symbols says. Symbols guess
 * again, from what followed the last entry alone. Events carry their words in a string of their own, and are never
 * guessed.
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

#define ENTRIES_BITS 16 /* of a context */
#define ENTRIES_CONTEXTS (1u << ENTRIES_BITS)
#define ENTRIES_ORDER 4u /* entries that make a context; so many are 0 before the first */
#define ENTRIES_SURE 24u /* right guesses before entries are followed */
#define PLACES_BITS 12   /* of the hash of a place where that was tried */

/* A byte of the runs. */
enum {
  RUN_OTHER = 1,     /* bit 0: what came is in the symbols; not set: it is the other guess */
  RUN_MOST = 127,    /* so many in a row, and nothing behind them, are */
  RUN_ON = 255,      /* this byte; otherwise bits 7:1 count */
  SYMBOL_FIRST = 0,  /* what followed the last entry most recently, as far as symbols told */
  SYMBOL_SECOND = 1, /* the one before that */
  SYMBOL_OTHER = 2,  /* plus the difference to SYMBOL_FIRST, or to the last entry if there is none */
};

/* What stands before the first entry of a chunk in its stream. */
enum {
  BEFORE_NONE = 0,   /* nothing, or it is not known what */
  BEFORE_EVENT = 1,  /* an event */
  BEFORE_NUMBER = 1, /* plus the number of a step or head: that one was the last */
};

/* An entry that stands for whatever made no sense when it was written: nothing that a walker could take. */
#define ENTRY_BAD PATH_ENTER

/* Two guesses, 0: none. */
struct entry_pair {
  uint32_t first, second;
};

/* What encoder and decoder both know. `words` are the chunk's so far, from ENTRIES_ORDER on; places count likewise. */
struct entry_model {
  uint32_t *words;
  uint32_t count;    /* the place of the next entry */
  uint32_t guess;    /* the place that is followed, 0: none */
  uint32_t context;  /* if none is */
  uint32_t right;    /* guesses in a row since the last that was wrong, or since following was tried */
  uint64_t from, to; /* of the last event */
  struct entry_pair contexts[ENTRIES_CONTEXTS];
  struct entry_pair symbols[ENTRIES_CONTEXTS];
  uint32_t places[1u << PLACES_BITS];
};

void entry_model_begin(struct entry_model *model);

static inline uint32_t entry_hash(uint32_t entry, unsigned bits)
{
  return entry * 0x9E3779B1u >> (32 - bits);
}

static inline uint32_t entry_context(uint32_t context, uint32_t entry)
{
  return (context << 4 ^ entry_hash(entry, ENTRIES_BITS)) & (ENTRIES_CONTEXTS - 1);
}

/* Entries were followed, and the guess was wrong: the context again. */
static inline void entry_model_leave(struct entry_model *model)
{
  model->guess = 0;
  model->right = 0;
  model->context = 0;
  for (unsigned i = ENTRIES_ORDER; i > 0; i--)
    model->context = entry_context(model->context, model->words[model->count - i]);
}

/* The entry at the end of the words has come, in the context. */
static inline void entry_model_step(struct entry_model *model)
{
  model->context = entry_context(model->context, model->words[model->count++]);
}

/* The guess was right for long. Were we here before? */
static inline void entry_model_follow(struct entry_model *model)
{
  const uint32_t *words = model->words;
  uint32_t *slot = &model->places[entry_hash(words[model->count - 1] + words[model->count - 2] * 5, PLACES_BITS)];
  uint32_t place = *slot;

  *slot = model->count;
  model->right = 0;
  if (place && words[place - 1] == words[model->count - 1] && words[place - 2] == words[model->count - 2])
    model->guess = place;
}

/* ---- encoder ---- */

/* Makes the strings of a chunk, one entry after another. */
struct entry_encoder {
  struct entry_model model;
  uint32_t run; /* guessed right so far */
  struct buffer runs, symbols, events;
};

/* The model's words must be there. */
void entry_encoder_begin(struct entry_encoder *encoder);
void entry_encoder_done(struct entry_encoder *encoder);

/* Makes room for so many further entries. Returns 0 or -ENOMEM. */
int entry_encoder_reserve(struct entry_encoder *encoder, size_t count);

/* Entries are followed, and so many were right; they are in the model's words. */
void entry_encoder_run(struct entry_encoder *encoder, size_t count);

/* The next is this one; an event's words are behind it. */
void entry_encoder_add(struct entry_encoder *encoder, const uint32_t *word);

/* Appends the contents of the chunk. Returns 0 or -ENOMEM. */
int entry_encoder_end(struct entry_encoder *encoder, uint64_t before, struct buffer *raw);

/* ---- decoder ---- */

struct entry_decoder {
  struct entry_model model;
  struct cursor runs, symbols, events;
  uint32_t run;  /* how often the guess is right yet */
  int what;      /* and what comes then: RUN_ON nothing, else bit 0 of the byte */
  uint32_t left; /* entries; an event is one */
  uint64_t before;
};

/* Starts as all zero. `bytes` must stay good while entries are read. Returns 0, LB_E_DAMAGED or -ENOMEM. */
int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size);
void entry_decoder_done(struct entry_decoder *decoder);

/* The next words, at most `room`, of which there are at least 6; events are whole. Returns how many, 0 at the end, or
 * LB_E_DAMAGED; after that the chunk gives no more. */
int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room);

#endif
