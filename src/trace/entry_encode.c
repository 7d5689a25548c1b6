/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries to bytes: see entries.h. One pass, in which an entry that the first guess foresaw writes nothing at all.
 */
#include <errno.h>
#include <string.h>

#include "trace/entries.h"

#define SYMBOL_BYTES 6u /* more than a symbol has: 33 bits */
#define EVENT_BYTES (1u + 5u + 2u * VARINT_MAX)

/* Where the three strings are being written. Room for the longest is there. */
struct strings {
  uint8_t *run, *symbol, *event;
};

void entry_model_begin(struct entry_model *model)
{
  memset(model, 0, sizeof(*model));
}

/* A difference of two entries, as a small number. */
static uint64_t entry_difference(uint32_t entry, uint32_t guess)
{
  return zigzag((uint64_t)(int64_t)(int32_t)(entry - guess));
}

/* What neither guess foresaw. */
static uint8_t *symbol_put(struct entry_model *model, uint32_t last, uint32_t entry, uint8_t *at)
{
  struct entry_guesses *guesses = &model->by_last;
  uint32_t hash = entry_hash(last), first = guesses->first[hash];

  if (entry == first) {
    *at++ = SYMBOL_FIRST;
    return at;
  }
  if (entry == guesses->second[hash])
    *at++ = SYMBOL_SECOND;
  else
    at = varint_put(at, SYMBOL_OTHER + entry_difference(entry, first ? first : last));
  guesses->first[hash] = entry;
  guesses->second[hash] = first;
  return at;
}

/* The words behind PATH_EVENT. */
static uint8_t *event_put(struct entry_model *model, const uint32_t words[PATH_EVENT_WORDS], uint8_t *at)
{
  uint64_t from = words[1] | (uint64_t)words[2] << 32, to = words[3] | (uint64_t)words[4] << 32;

  *at++ = (uint8_t)words[0];
  at = varint_put(at, words[0] >> 8);
  at = varint_put(at, zigzag(from - model->from));
  at = varint_put(at, zigzag(to - model->to));
  model->from = from;
  model->to = to;
  return at;
}

/* Returns how many entries there were. */
static size_t strings_fill(struct entry_model *model, const uint32_t *words, size_t count, struct strings *strings)
{
  struct entry_guesses *guesses = &model->by_context;
  uint32_t context = 0, last = 0, run = 0;
  uint8_t *at = strings->run;
  size_t entries = 0;

  for (size_t i = 0; i < count; i++, entries++) {
    uint32_t entry = words[i], first = guesses->first[context];

    if (first != entry) {
      unsigned is_other = guesses->second[context] != entry;

      *at++ = (uint8_t)(run << 1 | is_other);
      run = 0;
      guesses->first[context] = entry;
      guesses->second[context] = first;
      if (is_other)
        strings->symbol = symbol_put(model, last, entry, strings->symbol);
    } else if (++run == RUN_MOST) {
      *at++ = RUN_ON;
      run = 0;
    }
    if (__builtin_expect(entry == PATH_EVENT, 0)) {
      strings->event = event_put(model, &words[i + 1], strings->event);
      i += PATH_EVENT_WORDS;
    }
    context = entry_context(context, entry);
    last = entry;
  }
  if (run)
    *at++ = (uint8_t)(run << 1);
  strings->run = at;
  return entries;
}

static void numbers_put(struct buffer *raw, const uint64_t *numbers, size_t count)
{
  uint8_t *at = raw->bytes + raw->size;

  for (size_t i = 0; i < count; i++)
    at = varint_put(at, numbers[i]);
  raw->size = (size_t)(at - raw->bytes);
}

static void string_put(struct buffer *raw, const uint8_t *bytes, size_t size)
{
  memmove(raw->bytes + raw->size, bytes, size);
  raw->size += size;
}

int entries_encode(struct entry_model *model, uint64_t before, const uint32_t *words, size_t count, struct buffer *raw)
{
  size_t start = raw->size + 5 * VARINT_MAX;
  size_t symbols = start + count + 1, events = symbols + count * SYMBOL_BYTES;
  struct strings strings;
  size_t entries;

  if (buffer_reserve(raw, events - raw->size + (count / (1 + PATH_EVENT_WORDS) + 1) * EVENT_BYTES) < 0)
    return -ENOMEM;
  strings = (struct strings){raw->bytes + start, raw->bytes + symbols, raw->bytes + events};
  entry_model_begin(model);
  entries = strings_fill(model, words, count, &strings);

  const uint64_t numbers[] = {before, entries, (uint64_t)(strings.run - raw->bytes) - start,
                              (uint64_t)(strings.symbol - raw->bytes) - symbols,
                              (uint64_t)(strings.event - raw->bytes) - events};
  numbers_put(raw, numbers, 5);
  string_put(raw, raw->bytes + start, numbers[2]);
  string_put(raw, raw->bytes + symbols, numbers[3]);
  string_put(raw, raw->bytes + events, numbers[4]);
  return 0;
}
