/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to entries: entry_encode.c the other way. The bytes come from a stranger: every number is checked. What comes
 * out is a list of any words but 0; whether it makes sense is for the walker to say (path.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/entries.h"

static int strings_find(struct entry_decoder *decoder, struct cursor *cursor)
{
  struct cursor *strings[] = {&decoder->runs, &decoder->symbols, &decoder->events};
  uint64_t sizes[3];

  for (unsigned i = 0; i < 3; i++)
    sizes[i] = cursor_varint(cursor);
  for (unsigned i = 0; i < 3; i++) {
    const uint8_t *string = cursor_bytes(cursor, sizes[i]);

    if (!string)
      return LB_E_DAMAGED;
    *strings[i] = (struct cursor){string, string + sizes[i], false};
  }
  return cursor->is_short || cursor_left(cursor) ? LB_E_DAMAGED : 0;
}

int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size)
{
  struct cursor cursor = {bytes, bytes + size, false};
  uint64_t count;

  decoder->left = 0;
  decoder->before = cursor_varint(&cursor);
  count = cursor_varint(&cursor);
  if (strings_find(decoder, &cursor) < 0 || !count || count > CHUNK_ENTRIES_MAX)
    return LB_E_DAMAGED;
  if (!decoder->model.words)
    decoder->model.words = malloc((ENTRIES_ORDER + CHUNK_ENTRIES_MAX) * sizeof(*decoder->model.words));
  if (!decoder->model.words)
    return -ENOMEM;
  entry_model_begin(&decoder->model);
  decoder->run = 0;
  decoder->what = RUN_ON;
  decoder->left = (uint32_t)count;
  return 0;
}

void entry_decoder_done(struct entry_decoder *decoder)
{
  free(decoder->model.words);
  decoder->model.words = NULL;
}

/* The next byte of the runs. */
static bool run_read(struct entry_decoder *decoder)
{
  unsigned byte = cursor_u8(&decoder->runs);

  decoder->what = byte == RUN_ON ? RUN_ON : (int)(byte & RUN_OTHER);
  decoder->run = byte >> 1;
  return !decoder->runs.is_short && byte != RUN_ON - 1;
}

/* Copies within the words: what is copied may be what was copied just now. Returns how many. */
static size_t follow_take(struct entry_decoder *decoder, size_t most)
{
  enum { BLOCK = 16 };
  struct entry_model *model = &decoder->model;
  const uint32_t *from = model->words + model->guess;
  uint32_t *to = model->words + model->count;
  size_t count = decoder->run < most ? decoder->run : most, done = 0;

  if (model->count - model->guess >= BLOCK)
    for (; done + BLOCK <= count; done += BLOCK)
      memcpy(to + done, from + done, BLOCK * sizeof(*to));
  for (; done < count; done++)
    to[done] = from[done];
  model->guess += (uint32_t)count;
  model->count += (uint32_t)count;
  return count;
}

/* By context, until entries are followed. Returns how many. */
static size_t context_take(struct entry_decoder *decoder, size_t most)
{
  struct entry_model *model = &decoder->model;
  size_t count = decoder->run < most ? decoder->run : most, done = 0;

  while (done < count && !model->guess) {
    uint32_t guess = model->contexts[model->context].first;

    if (!guess)
      break;
    model->words[model->count] = guess;
    entry_model_step(model);
    done++;
    if (++model->right == ENTRIES_SURE)
      entry_model_follow(model);
  }
  return done;
}

/* What the next symbol says, 0 if nothing. */
static uint32_t symbol_read(struct entry_decoder *decoder)
{
  struct entry_model *model = &decoder->model;
  uint64_t symbol = cursor_varint(&decoder->symbols);
  uint32_t last = model->words[model->count - 1];
  struct entry_pair *pair = &model->symbols[entry_hash(last, ENTRIES_BITS)];
  uint32_t first = pair->first, entry = pair->second;

  if (decoder->symbols.is_short || symbol > (uint64_t)SYMBOL_OTHER + UINT32_MAX)
    return 0;
  if (symbol == SYMBOL_FIRST)
    return first;
  if (symbol != SYMBOL_SECOND)
    entry = (first ? first : last) + (uint32_t)zagzig(symbol - SYMBOL_OTHER);
  *pair = (struct entry_pair){entry, first};
  return entry;
}

/* The words of an event. */
static bool event_read(struct entry_decoder *decoder, uint32_t words[PATH_EVENT_WORDS])
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

/* What came in place of the guess. Returns its words, or 0. */
static size_t other_take(struct entry_decoder *decoder, uint32_t *words)
{
  struct entry_model *model = &decoder->model;
  bool was_followed = model->guess;
  struct entry_pair *pair, before;
  uint32_t entry;

  if (was_followed)
    entry_model_leave(model);
  pair = &model->contexts[model->context];
  before = *pair;
  entry = decoder->what == RUN_OTHER ? symbol_read(decoder) : was_followed ? before.first : before.second;
  decoder->what = RUN_ON;
  if (!entry || (entry == PATH_EVENT && !event_read(decoder, words + 1)))
    return 0;
  words[0] = entry;
  model->right = 0;
  if (before.first != entry)
    *pair = (struct entry_pair){entry, before.first};
  model->words[model->count] = entry;
  entry_model_step(model);
  return entry == PATH_EVENT ? 1 + PATH_EVENT_WORDS : 1;
}

/* At the end nothing may be left over. The last run has nothing behind it. */
static bool end_is_good(const struct entry_decoder *decoder)
{
  return !decoder->run && decoder->what != RUN_OTHER && !cursor_left(&decoder->runs) &&
         !cursor_left(&decoder->symbols) && !cursor_left(&decoder->events);
}

/* As guessed. Returns how many, 0 if that cannot be. */
static size_t run_take(struct entry_decoder *decoder, uint32_t *words, size_t room)
{
  struct entry_model *model = &decoder->model;
  size_t most = decoder->left < room ? decoder->left : room;
  size_t more = model->guess ? follow_take(decoder, most) : context_take(decoder, most);

  memcpy(words, model->words + model->count - more, more * sizeof(*words));
  decoder->run -= (uint32_t)more;
  decoder->left -= (uint32_t)more;
  return more;
}

int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room)
{
  size_t done = 0;

  while (decoder->left && room - done >= 1 + PATH_EVENT_WORDS) {
    size_t more;

    if (!decoder->run && decoder->what == RUN_ON && !run_read(decoder))
      goto damaged;
    if (decoder->run) {
      more = run_take(decoder, ret_words + done, room - done);
    } else if (decoder->what == RUN_ON) {
      continue;
    } else {
      more = other_take(decoder, ret_words + done);
      decoder->left--;
    }
    if (!more)
      goto damaged;
    done += more;
  }
  if (decoder->left || end_is_good(decoder))
    return (int)done;
damaged:
  decoder->left = 0;
  return LB_E_DAMAGED;
}
