/* SPDX-License-Identifier: Apache-2.0
 *
 * The contents of a chunk of entries (path.h): encoder and decoder, which guess the next entry from those before by the
 * same rule. Three strings of bytes: runs, symbols, events.
 *
 * Two entries that came in the same context, a hash of the last few entries, are the first and the second guess. A byte
 * of the runs says how often the first was right in a row, and what then came instead: the second, or what the next of
 * the symbols says. Symbols guess again, from what followed the last entry alone. Events carry their words in a string
 * of their own.
 */
#ifndef TRACE_ENTRIES_H
#define TRACE_ENTRIES_H

#include <stddef.h>
#include <stdint.h>

#include "trace/branches.h"
#include "trace/format.h"
#include "trace/path.h"

#define CHUNK_ENTRIES_MAX (1u << 21) /* words: an event has six */

#define ENTRIES_BITS 17
#define ENTRIES_CONTEXTS (1u << ENTRIES_BITS)

/* A byte of the runs. */
enum {
  RUN_OTHER = 1,     /* bit 0: what came is in the symbols; not set: it is the second guess */
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

/* Guesses by a hash, 0: none. The second ones lie apart: mostly nobody looks at them. */
struct entry_guesses {
  uint32_t first[ENTRIES_CONTEXTS];
  uint32_t second[ENTRIES_CONTEXTS];
};

struct entry_model {
  struct entry_guesses by_context, by_last;
  uint32_t context;
  uint32_t last;
  uint64_t from, to; /* of the last event */
};

void entry_model_begin(struct entry_model *model);

static inline uint32_t entry_hash(uint32_t entry)
{
  return entry * 0x9E3779B1u >> (32 - ENTRIES_BITS);
}

static inline uint32_t entry_context(uint32_t context, uint32_t entry)
{
  return (context << 5 ^ entry_hash(entry)) & (ENTRIES_CONTEXTS - 1);
}

/* Appends the contents of a chunk, `count` words of entries, none of them 0, events whole. `before`: BEFORE_....
 * Returns 0 or -ENOMEM. */
int entries_encode(struct entry_model *model, uint64_t before, const uint32_t *words, size_t count, struct buffer *raw);

struct entry_decoder {
  struct entry_model model;
  struct cursor runs, symbols, events;
  uint32_t run;  /* how often the first guess is right yet */
  int what;      /* and what comes then: RUN_ON nothing, else bit 0 of the byte */
  uint32_t left; /* entries; an event is one */
  uint64_t before;
};

/* `bytes` must stay good while entries are read. Returns 0 or LB_E_DAMAGED. */
int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size);

/* The next words, at most `room`, of which there are at least 6; events are whole. Returns how many, 0 at the end, or
 * LB_E_DAMAGED; after that the chunk gives no more. */
int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room);

#endif
