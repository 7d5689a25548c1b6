/* SPDX-License-Identifier: Apache-2.0
 *
 * The strings of a chunk of entries, as both of its readers take them: the decoder, which gives the entries
 * some at a time (entry_decode.c), and the one that decodes a whole chunk (entry_whole.c).
 */
#ifndef TRACE_ENTRY_READ_H
#define TRACE_ENTRY_READ_H

#include <string.h>

#include "base/base.h"
#include "trace/entries.h"

#define COPY_BLOCK 8u /* words that are copied at once, even past the last one */

/* Makes room for the entries and forgets all guesses, before the first entry is read. Returns 0 or -ENOMEM. */
int entry_decoder_prepare(struct entry_decoder *decoder);

/* Reads the next piece and checks it: there are misses for its plain entries, and originals of its repeated ones. */
bool piece_read(struct entry_decoder *decoder);

/* The misses of the entries up to the end of a block, the next entry first, and the entries whose second guess was
 * right. piece_read has checked that the block is there. */
uint64_t misses_read(const struct entry_decoder *decoder, uint64_t *ret_seconds);

/* Nothing may be left of the strings when all entries were read. */
bool entry_strings_are_used(const struct entry_decoder *decoder);

/* The entry that the next symbol stands for, 0 if there is none. */
static inline uint32_t symbol_read(struct cursor *symbols, uint32_t last)
{
  uint64_t symbol;

  if (symbols->at < symbols->end && *symbols->at < 0x80)
    symbol = *symbols->at++;
  else
    symbol = cursor_varint(symbols);
  if (symbols->is_short || symbol > UINT32_MAX)
    return 0;
  return last + (uint32_t)zagzig(symbol);
}

/* Copies words forward; the copy may overlap the words that it copies. Writes up to COPY_BLOCK - 1 words past the
 * copy. */
static inline void words_copy(uint32_t *to, uint32_t distance, size_t count)
{
  const uint32_t *from = to - distance;

  if (distance >= COPY_BLOCK) {
    for (size_t i = 0; i < count; i += COPY_BLOCK)
      memcpy(to + i, from + i, COPY_BLOCK * sizeof(*to));
  } else {
    for (size_t i = 0; i < count; i++)
      to[i] = from[i];
  }
}

#endif
