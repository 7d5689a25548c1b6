/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries to bytes, and what both sides learn: see entries.h.
 */
#include "trace/entries.h"

#include <errno.h>
#include <string.h>

#define SYMBOL_BYTES 6u /* more than a symbol has: 33 bits */
#define EVENT_BYTES (1u + 5u + 2u * VARINT_MAX)

void entry_model_begin(struct entry_model *model)
{
  uint32_t *words = model->words;

  memset(model, 0, sizeof(*model));
  memset(words, 0, ENTRIES_ORDER * sizeof(*words));
  model->words = words;
  model->count = ENTRIES_ORDER;
}

/* ---- the encoder ---- */

void entry_encoder_begin(struct entry_encoder *encoder)
{
  entry_model_begin(&encoder->model);
  encoder->run = 0;
  encoder->runs.size = encoder->symbols.size = encoder->events.size = 0;
}

void entry_encoder_done(struct entry_encoder *encoder)
{
  buffer_done(&encoder->runs);
  buffer_done(&encoder->symbols);
  buffer_done(&encoder->events);
}

int entry_encoder_reserve(struct entry_encoder *encoder, size_t count)
{
  if (buffer_reserve(&encoder->runs, count + 2) < 0 || buffer_reserve(&encoder->symbols, count * SYMBOL_BYTES) < 0)
    return -ENOMEM;
  return buffer_reserve(&encoder->events, (count / (1 + PATH_EVENT_WORDS) + 1) * EVENT_BYTES);
}

static void number_put(struct buffer *buffer, uint64_t number)
{
  buffer->size = (size_t)(varint_put(buffer->bytes + buffer->size, number) - buffer->bytes);
}

/* A difference of two entries, as a small number. */
static uint64_t entry_difference(uint32_t entry, uint32_t guess)
{
  return zigzag((uint64_t)(int64_t)(int32_t)(entry - guess));
}

static void symbol_put(struct entry_encoder *encoder, uint32_t last, uint32_t entry)
{
  struct entry_pair *pair = &encoder->model.symbols[entry_hash(last, ENTRIES_BITS)], before = *pair;

  if (entry == before.first) {
    number_put(&encoder->symbols, SYMBOL_FIRST);
    return;
  }
  if (entry == before.second)
    number_put(&encoder->symbols, SYMBOL_SECOND);
  else
    number_put(&encoder->symbols, SYMBOL_OTHER + entry_difference(entry, before.first ? before.first : last));
  *pair = (struct entry_pair){entry, before.first};
}

/* The words behind PATH_EVENT. */
static void event_put(struct entry_encoder *encoder, const uint32_t words[PATH_EVENT_WORDS])
{
  uint64_t from = words[1] | (uint64_t)words[2] << 32, to = words[3] | (uint64_t)words[4] << 32;
  struct buffer *events = &encoder->events;

  events->bytes[events->size++] = (uint8_t)words[0];
  number_put(events, words[0] >> 8);
  number_put(events, zigzag(from - encoder->model.from));
  number_put(events, zigzag(to - encoder->model.to));
  encoder->model.from = from;
  encoder->model.to = to;
}

static void run_put(struct entry_encoder *encoder, unsigned byte)
{
  encoder->runs.bytes[encoder->runs.size++] = (uint8_t)byte;
  encoder->run = 0;
}

void entry_encoder_run(struct entry_encoder *encoder, size_t count)
{
  size_t run = encoder->run + count;

  for (; run >= RUN_MOST; run -= RUN_MOST)
    run_put(encoder, RUN_ON);
  encoder->run = (uint32_t)run;
  encoder->model.count += (uint32_t)count;
  encoder->model.guess += (uint32_t)count;
}

/* The guess was wrong, or there was none. `other` is the next best. */
static void miss_put(struct entry_encoder *encoder, const uint32_t *word, uint32_t other)
{
  bool is_other = *word != other || *word == PATH_EVENT;

  run_put(encoder, encoder->run << 1 | is_other);
  if (is_other)
    symbol_put(encoder, encoder->model.words[encoder->model.count - 1], *word);
  if (*word == PATH_EVENT)
    event_put(encoder, word + 1);
}

void entry_encoder_add(struct entry_encoder *encoder, const uint32_t *word)
{
  struct entry_model *model = &encoder->model;
  bool was_followed = model->guess;
  struct entry_pair *pair, before;

  if (was_followed && model->words[model->guess] == *word && *word != PATH_EVENT) {
    model->words[model->count] = *word;
    entry_encoder_run(encoder, 1);
    return;
  }
  if (was_followed)
    entry_model_leave(model);
  pair = &model->contexts[model->context];
  before = *pair;
  model->words[model->count] = *word;
  if (!was_followed && before.first == *word && *word != PATH_EVENT) {
    model->right++;
    if (++encoder->run == RUN_MOST)
      run_put(encoder, RUN_ON);
  } else {
    miss_put(encoder, word, was_followed ? before.first : before.second);
    model->right = 0;
    if (before.first != *word)
      *pair = (struct entry_pair){*word, before.first};
  }
  entry_model_step(model);
  if (model->right == ENTRIES_SURE)
    entry_model_follow(model);
}

static void string_put(struct buffer *raw, const struct buffer *string)
{
  memcpy(raw->bytes + raw->size, string->bytes, string->size);
  raw->size += string->size;
}

int entry_encoder_end(struct entry_encoder *encoder, uint64_t before, struct buffer *raw)
{
  if (encoder->run)
    run_put(encoder, encoder->run << 1);
  if (buffer_reserve(raw, 5 * VARINT_MAX + encoder->runs.size + encoder->symbols.size + encoder->events.size) < 0)
    return -ENOMEM;
  number_put(raw, before);
  number_put(raw, encoder->model.count - ENTRIES_ORDER);
  number_put(raw, encoder->runs.size);
  number_put(raw, encoder->symbols.size);
  number_put(raw, encoder->events.size);
  string_put(raw, &encoder->runs);
  string_put(raw, &encoder->symbols);
  string_put(raw, &encoder->events);
  return 0;
}
