/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts whole chunks of entries. The meaning of an entry depends only on the entry before it. In a repeated run, every
 * entry but the first follows the same entry as its original does. A repeated entry therefore adds one to the count of
 * its original: runs are added up from the last to the first, many entries at a time, and only plain entries are looked
 * up (count_arc.c). A chunk that has anything but passes over paths is left to count.c, which counts entry by entry.
 */
#include "trace/count_chunk.h"

#include <string.h>

#include "trace/entry_read.h"
#include "trace/sparse.h"

#define ENTRIES_LEAST 256u       /* smaller chunks are left to count.c */
#define AHEAD_RAW_MAX (4u << 20) /* a chunk of more bytes is not read ahead: memory is bounded */
#define AHEAD_CHUNKS_MAX 64u     /* chunks that are searched for the next one to count */
#define FLUSH_CHUNKS (1u << 10)  /* chunks between two flushes: until then, the count of an arc cannot overflow */
#define PLACES (ENTRIES_ORDER + CHUNK_ENTRIES_MAX)

/* ---- memory ---- */

static struct chunk_counter *counter_get(struct lb_trace_reader *reader)
{
  struct chunk_counter *counter = reader->counts.counter;

  if (counter)
    return counter;
  counter = sparse_grow(NULL, 0, sizeof(*counter));
  if (counter)
    counter->extra = sparse_grow(NULL, 0, PLACES * sizeof(*counter->extra));
  if (counter && !counter->extra) {
    chunk_counter_free(counter);
    counter = NULL;
  }
  reader->counts.counter = counter;
  return counter;
}

void chunk_counter_free(struct chunk_counter *counter)
{
  if (!counter)
    return;
  entry_decoder_done(&counter->ahead.decoder);
  buffer_done(&counter->ahead.raw);
  sparse_free(counter->extra, PLACES * sizeof(*counter->extra));
  sparse_free(counter, sizeof(*counter));
}

/* ---- the chunk ahead ---- */

/* Exchanges the loaded chunk of the reader for the one ahead. */
static void ahead_swap(struct lb_trace_reader *reader, struct chunk_counter *counter)
{
  uint64_t place = reader->place;
  struct chunk_head head = reader->head;
  struct chunk_position position = reader->position;
  struct buffer raw = reader->raw;

  reader->place = counter->ahead.place;
  reader->head = counter->ahead.head;
  reader->position = counter->ahead.position;
  reader->raw = counter->ahead.raw;
  counter->ahead.place = place;
  counter->ahead.head = head;
  counter->ahead.position = position;
  counter->ahead.raw = raw;
}

bool ahead_take(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head)
{
  struct chunk_counter *counter = reader->counts.counter;

  if (!counter || !counter->ahead.is_loaded || counter->ahead.place != offset ||
      counter->ahead.head.checksum != head->checksum || counter->ahead.head.stored != head->stored)
    return false;
  ahead_swap(reader, counter);
  counter->ahead.place = offset;
  counter->ahead.is_loaded = false;
  return true;
}

/* Finds the next chunk of entries that will be counted. Returns false if there is none near, or it is large. */
static bool ahead_find(struct lb_trace_reader *reader, uint64_t *ret_offset, struct chunk_head *ret_head)
{
  uint64_t offset = reader->offset;

  for (unsigned i = 0; i < AHEAD_CHUNKS_MAX; i++) {
    struct chunk_position position;
    struct chunk_head head;

    if (chunk_find(reader, offset, &head) < 0 || head.type == CHUNK_END)
      return false;
    if (head.type == CHUNK_ENTRIES) {
      if (head.raw > AHEAD_RAW_MAX || chunk_find_position(reader, offset, &head, &position) < 0)
        return false;
      if (position_is_wanted(reader, position.stream)) {
        *ret_offset = offset;
        *ret_head = head;
        return true;
      }
    }
    offset += CHUNK_HEAD_SIZE + head.stored;
  }
  return false;
}

/* Loads the next chunk of entries beside the one that is open, and begins to decode it. Returns false if there is
 * nothing to gain, or if it cannot be read: the error is reported when the reader comes to it. */
static bool ahead_begin(struct lb_trace_reader *reader, struct chunk_counter *counter)
{
  struct chunk_head head;
  uint64_t offset;

  counter->ahead.is_loaded = counter->ahead.is_decoded = false;
  if (!ahead_find(reader, &offset, &head))
    return false;
  ahead_swap(reader, counter);
  counter->ahead.is_loaded = chunk_load(reader, offset, &head) >= 0;
  ahead_swap(reader, counter);
  return counter->ahead.is_loaded &&
         entry_decoder_begin(&counter->ahead.decoder, counter->ahead.raw.bytes, counter->ahead.raw.size) >= 0 &&
         counter->ahead.decoder.left >= ENTRIES_LEAST;
}

/* ---- counting ---- */

/* Adds the counts of the entries of a repeated run to those of their originals, from the last to the first, since
 * originals may be in the run. */
static void repeated_add(uint32_t *extra, uint32_t distance, uint32_t count)
{
  uint32_t *original = extra - distance;

  for (; distance >= COPY_BLOCK && count >= COPY_BLOCK; count -= COPY_BLOCK) {
    uint32_t *from = extra + count - COPY_BLOCK, *to = original + count - COPY_BLOCK, block[COPY_BLOCK];

    memcpy(block, to, sizeof(block));
    for (unsigned i = 0; i < COPY_BLOCK; i++)
      block[i] += from[i] + 1;
    memcpy(to, block, sizeof(block));
    memset(from, 0, sizeof(block));
  }
  while (count--) {
    original[count] += extra[count] + 1;
    extra[count] = 0;
  }
}

/* Counts all entries of a chunk, from the last to the first. */
static void entries_add(struct chunk_sum *sum, const struct entry_decoder *decoder, const struct entry_pieces *pieces)
{
  uint32_t *extra = sum->counter->extra, end = decoder->count, first = ENTRIES_ORDER, plain = 0;

  for (uint32_t i = pieces->count; i > 0; i--) {
    struct entry_piece piece = pieces->pieces[i - 1];

    if (piece.repeated) { /* the first entry of a run may follow another entry than its original does */
      end -= piece.repeated - 1;
      repeated_add(extra + end, piece.distance, piece.repeated - 1);
      piece.plain++;
    }
    if (i > 1)
      plain_fetch(sum, decoder->words, end - piece.plain - (pieces->pieces[i - 2].repeated - 1));
    plain_add(sum, decoder->words, extra, end, piece.plain - (end - piece.plain == first));
    end -= piece.plain;
    plain += piece.plain;
  }
  plain_end(sum, decoder->words, extra, plain);
  extra[first] = 0;
  arc_count_first(sum, decoder->words[first]);
}

/* Returns false if the chunk cannot be counted this way; then nothing of it is counted. */
static bool chunk_add(struct chunk_sum *sum, const struct entry_decoder *decoder, const struct entry_pieces *pieces)
{
  entries_add(sum, decoder, pieces);
  if (!sum->is_bad && sum->branches <= sum->reader->position.count)
    return true;
  sum->sign = -1;
  entries_add(sum, decoder, pieces);
  return false;
}

/* ---- all ---- */

/* Returns the entries of the open chunk, decoded earlier, or now together with the next chunk. NULL if they are
 * unusable. */
static const struct entry_decoder *entries_decode(struct lb_trace_reader *reader, struct chunk_counter *counter,
                                                  const struct entry_pieces **ret_pieces)
{
  struct entry_decoder *decoder = &reader->entries->decoder;

  if (counter->ahead.is_decoded && counter->ahead.place == reader->place) {
    counter->ahead.is_decoded = false;
    *ret_pieces = &counter->ahead.pieces;
    return counter->ahead.pieces.is_good ? &counter->ahead.decoder : NULL;
  }
  *ret_pieces = &counter->pieces;
  counter->ahead.is_decoded = ahead_begin(reader, counter);
  if (counter->ahead.is_decoded)
    entry_whole_read_two(decoder, &counter->pieces, &counter->ahead.decoder, &counter->ahead.pieces);
  else
    entry_whole_read(decoder, &counter->pieces);
  return counter->pieces.is_good ? decoder : NULL;
}

static bool chunk_count(struct lb_trace_reader *reader, struct chunk_counter *counter, struct chunk_sum *sum,
                        uint32_t *ret_last)
{
  const struct entry_pieces *pieces;
  const struct entry_decoder *decoder = entries_decode(reader, counter, &pieces);

  if (!decoder || !chunk_add(sum, decoder, pieces))
    return false;
  *ret_last = decoder->words[decoder->count - 1];
  if (++counter->chunks == FLUSH_CHUNKS)
    counts_flush(reader);
  return true;
}

bool counts_chunk(struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_at)
{
  struct reader_entries *entries = reader->entries;
  struct chunk_counter *counter;
  struct chunk_sum sum = {.reader = reader, .sign = 1};
  uint32_t last;

  if (entries->decoder.left < ENTRIES_LEAST || (entries->walker.is_open && !entries->open))
    return false;
  counter = counter_get(reader);
  if (!counter)
    return false;
  sum.counter = counter;
  if (!chunk_count(reader, counter, &sum, &last)) {
    (void)entry_decoder_begin(&entries->decoder, reader->raw.bytes, reader->raw.size); /* it succeeded before */
    return false;
  }
  entry_decoder_skip(&entries->decoder);
  *ret_branches = sum.branches;
  *ret_at = counts_stop_after(reader, last);
  reader->not_taken += sum.not_taken;
  return true;
}
