/* SPDX-License-Identifier: Apache-2.0
 *
 * Bytes to entries: entry_encode.c the other way. The bytes come from a stranger: every number is checked. What comes
 * out is a list of any words but 0; whether it makes sense is for the walker to say (path.c).
 */
#include "base/base.h"
#include "trace/entries.h"

int entry_decoder_begin(struct entry_decoder *decoder, const uint8_t *bytes, size_t size)
{
  struct cursor cursor = {bytes, bytes + size, false};
  struct cursor *strings[] = {&decoder->runs, &decoder->symbols, &decoder->events};
  uint64_t sizes[3], count;

  decoder->left = 0;
  decoder->before = cursor_varint(&cursor);
  count = cursor_varint(&cursor);
  for (unsigned i = 0; i < 3; i++)
    sizes[i] = cursor_varint(&cursor);
  for (unsigned i = 0; i < 3; i++) {
    const uint8_t *string = cursor_bytes(&cursor, sizes[i]);

    if (!string)
      return LB_E_DAMAGED;
    *strings[i] = (struct cursor){string, string + sizes[i], false};
  }
  if (cursor.is_short || cursor_left(&cursor) || !count || count > CHUNK_ENTRIES_MAX)
    return LB_E_DAMAGED;
  entry_model_begin(&decoder->model);
  decoder->run = 0;
  decoder->what = RUN_ON;
  decoder->left = (uint32_t)count;
  return 0;
}

/* The next byte of the runs. */
static bool run_read(struct entry_decoder *decoder)
{
  unsigned byte = cursor_u8(&decoder->runs);

  decoder->what = byte == RUN_ON ? RUN_ON : (int)(byte & RUN_OTHER);
  decoder->run = byte >> 1;
  return !decoder->runs.is_short && byte != RUN_ON - 1;
}

/* What the next symbol says, 0 if nothing. */
static uint32_t symbol_read(struct entry_decoder *decoder)
{
  struct entry_guesses *guesses = &decoder->model.by_last;
  uint64_t symbol = cursor_varint(&decoder->symbols);
  uint32_t hash = entry_hash(decoder->model.last), first = guesses->first[hash], entry = guesses->second[hash];

  if (decoder->symbols.is_short || symbol > (uint64_t)SYMBOL_OTHER + UINT32_MAX)
    return 0;
  if (symbol == SYMBOL_FIRST)
    return first;
  if (symbol != SYMBOL_SECOND)
    entry = (first ? first : decoder->model.last) + (uint32_t)zagzig(symbol - SYMBOL_OTHER);
  guesses->first[hash] = entry;
  guesses->second[hash] = first;
  return entry;
}

/* What came in place of the first guess, 0 if nothing. */
static uint32_t other_read(struct entry_decoder *decoder)
{
  struct entry_guesses *guesses = &decoder->model.by_context;
  uint32_t context = decoder->model.context;
  uint32_t entry = decoder->what == RUN_OTHER ? symbol_read(decoder) : guesses->second[context];

  guesses->second[context] = guesses->first[context];
  guesses->first[context] = entry;
  decoder->what = RUN_ON;
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

/* As many as the first guess is right for, up to an event. Returns how many. */
static size_t run_take(struct entry_decoder *decoder, uint32_t *words, size_t room)
{
  struct entry_model *model = &decoder->model;
  uint32_t context = model->context, entry = model->last;
  size_t most = decoder->run < room ? decoder->run : room, done = 0;

  while (done < most) {
    uint32_t guess = model->by_context.first[context];

    if (guess == 0 || guess == PATH_EVENT)
      break;
    entry = guess;
    words[done++] = entry;
    context = entry_context(context, entry);
  }
  model->context = context;
  model->last = entry;
  decoder->run -= (uint32_t)done;
  return done;
}

/* One entry that may be anything. Returns its words, or 0. */
static size_t one_take(struct entry_decoder *decoder, uint32_t *words)
{
  struct entry_model *model = &decoder->model;
  uint32_t entry;

  if (decoder->run) {
    decoder->run--;
    entry = model->by_context.first[model->context];
  } else {
    entry = other_read(decoder);
  }
  if (!entry || (entry == PATH_EVENT && !event_read(decoder, words + 1)))
    return 0;
  words[0] = entry;
  model->context = entry_context(model->context, entry);
  model->last = entry;
  return entry == PATH_EVENT ? 1 + PATH_EVENT_WORDS : 1;
}

/* At the end nothing may be left over. The last run has nothing behind it. */
static bool end_is_good(const struct entry_decoder *decoder)
{
  return !decoder->run && decoder->what != RUN_OTHER && !cursor_left(&decoder->runs) &&
         !cursor_left(&decoder->symbols) && !cursor_left(&decoder->events);
}

int entry_decoder_next(struct entry_decoder *decoder, uint32_t *ret_words, size_t room)
{
  size_t done = 0;

  while (decoder->left && room - done >= 1 + PATH_EVENT_WORDS) {
    size_t most = decoder->left < room - done ? decoder->left : room - done, more;

    if (!decoder->run && decoder->what == RUN_ON && !run_read(decoder))
      goto damaged;
    more = run_take(decoder, ret_words + done, most);
    decoder->left -= (uint32_t)more;
    done += more;
    if (!decoder->left || room - done < 1 + PATH_EVENT_WORDS)
      break;
    if (!decoder->run && decoder->what == RUN_ON)
      continue;
    more = one_take(decoder, ret_words + done);
    if (!more)
      goto damaged;
    decoder->left--;
    done += more;
  }
  if (decoder->left || end_is_good(decoder))
    return (int)done;
damaged:
  decoder->left = 0;
  return LB_E_DAMAGED;
}
