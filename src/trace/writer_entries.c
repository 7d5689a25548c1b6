/* SPDX-License-Identifier: Apache-2.0
 *
 * Puts entries into chunks. Entries that repeat earlier ones (writer_history.c) are only compared, many at a time. The
 * others are translated from the producer's numbers into those of the file, which are assigned in the order of first
 * use, and their branches are counted, a block at a time. The writer does not check whether they make sense together;
 * the reader does.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/vector.h"
#include "trace/writer.h"

#define likely(condition) __builtin_expect(!!(condition), 1)

#define EVENT_SIZE (1 + LB_ENTRY_EVENT_WORDS)
#define ENTRY_MOST 2u                  /* entries that one entry can become */
#define STRINGS_FULL (3u << 18)        /* bytes of symbols and events */
#define FILL_MOST 16384u               /* entries for which room is made at a time */
#define RAW_EVENT (LB_ENTRY_EVENT - 1) /* stands for an event in the chunk; no real entry has this value */

/* ---- one entry that is no repetition ---- */

static inline bool last_is_path(const struct writer_stream *stream)
{
  return stream->last - 1 < LB_STEP_MAX;
}

/* Head of the path that runs after the last entry, 0 if unknown. */
static uint32_t running_get(struct lb_trace_writer *writer, const struct writer_stream *stream)
{
  const struct writer_paths *paths = &writer->paths;

  if (!last_is_path(stream))
    return 0;
  if (paths->infos[stream->last].flags & LB_STEP_HEAD)
    return stream->last;
  return likely(paths->nexts[stream->last]) ? paths->nexts[stream->last] : path_next(writer, stream->last);
}

/* Invalid entries in a row become one entry. */
static size_t bad_take(struct writer_stream *stream, uint32_t *entries)
{
  bool is_again = stream->last == LAST_BAD;

  stream->last = LAST_BAD;
  *entries = ENTRY_BAD;
  return is_again ? 0 : 1;
}

/* Whether a branch was taken whose target is not known yet. */
static bool stream_is_open(const struct lb_trace_writer *writer, const struct writer_stream *stream)
{
  return last_is_path(stream) && (writer->paths.infos[stream->last].flags & (LB_STEP_OPEN | LB_STEP_SILENT));
}

/* A branch is open, but its step is tied to a path. Writes an entry for that path, because the file has no links for
 * such steps. A reader would otherwise take the address of the next entry as the target. */
static size_t open_take(const struct lb_trace_writer *writer, const struct writer_stream *stream, uint32_t running,
                        uint32_t *entries)
{
  if (!running || !stream_is_open(writer, stream))
    return 0;
  *entries = LB_ENTRY_ENTER | running;
  return 1;
}

/* The number of branches of an event: those of the steps that the running path has passed, and its own. */
static unsigned event_count(struct lb_trace_writer *writer, const struct writer_stream *stream, uint32_t running)
{
  const struct writer_paths *paths = &writer->paths;
  uint32_t passed = stream->event[1] >> 8;
  unsigned count = (stream->event[1] & 0xFF) < LB_ENTRY_NOWHERE;

  if (running && passed <= UINT8_MAX && running + passed < paths->capacity)
    count += paths->infos[running + passed].passed;
  return count;
}

/* All words of a stamp are there. It is no entry, and changes nothing. Stamps come often enough to end chunks, so that
 * the time of the last branches of a chunk is known. */
static size_t stamp_take(struct lb_trace_writer *writer, struct writer_stream *stream)
{
  struct writer_encoder *slot = &writer->encoders[stream->encoder];
  const struct trace_stamp *stamp = NULL;

  stream->event_size = 0;
  if (writer->stamp_make)
    stamp = writer->stamp_make(writer->stamp_context, slot->stream, stream->event + 1);
  if (stamp && stamps_put(writer, slot, stamp, entries_made(writer, slot)) == -ENOMEM)
    writer_fail(writer, -ENOMEM);
  slot->entries->is_ended |=
    stamp && (slot->entries->history.count >= slot->entries->enough || slot->stamps.bytes.size >= STAMPS_FULL);
  return 0;
}

/* Takes a word of an event. The words stay in the stream. */
static size_t event_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t word, uint32_t *entries,
                         uint64_t *branches)
{
  uint32_t running;
  size_t more;

  stream->event[stream->event_size++] = word;
  if (stream->event_size < EVENT_SIZE)
    return 0;
  if ((stream->event[1] & 0xFF) == LB_ENTRY_STAMP)
    return stamp_take(writer, stream);
  running = running_get(writer, stream);
  more = open_take(writer, stream, running, entries);
  *branches += event_count(writer, stream, running);
  stream->event_size = 0;
  stream->last = LAST_EVENT;
  entries[more] = RAW_EVENT;
  return more + 1;
}

/* Takes a head: the path before it ran to its end. */
static size_t head_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t entry, uint32_t *entries,
                        uint64_t *branches)
{
  uint32_t running = running_get(writer, stream);
  size_t more = open_take(writer, stream, running, entries);

  *branches += running ? writer->paths.infos[running].after : 0;
  entries[more] = entry;
  return more + 1;
}

/* Returns the number of entries that the entry became, in the producer's numbers. */
static size_t entry_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t entry,
                         uint32_t entries[ENTRY_MOST], uint64_t *branches)
{
  uint32_t number = entry & ~LB_ENTRY_ENTER;
  struct path_info info;
  size_t count = 1;

  if (stream->event_size || entry == LB_ENTRY_EVENT)
    return event_take(writer, stream, entry, entries, branches);
  if (!entry)
    return 0;
  info = path_find(writer, number);
  if (!info.number || ((entry & LB_ENTRY_ENTER) && !(info.flags & LB_STEP_HEAD)))
    return bad_take(stream, entries);
  if (info.flags & LB_STEP_HEAD && !(entry & LB_ENTRY_ENTER))
    count = head_take(writer, stream, entry, entries, branches);
  else
    *entries = entry;
  *branches += info.branches;
  stream->last = number;
  return count;
}

/* ---- the chunk ---- */

/* An entry of the chunk in the file's numbers. */
static uint32_t word_of(const struct lb_trace_writer *writer, uint32_t entry)
{
  uint32_t number = entry & ~LB_ENTRY_ENTER;

  if (entry == RAW_EVENT)
    return LB_ENTRY_EVENT;
  return number ? writer->paths.infos[number].number | (entry & LB_ENTRY_ENTER) : entry;
}

/* Adds one entry to the history and encodes it. */
static void chunk_put(const struct lb_trace_writer *writer, struct writer_entries *chunk,
                      const struct writer_stream *stream, uint32_t entry, uint64_t branches)
{
  struct writer_history *history = &chunk->history;

  history->entries[history->count] = entry;
  history->counts[history->count++] = (uint8_t)branches;
  chunk->branches += branches;
  history_leave(history);
  if (entry == RAW_EVENT) {
    entry_encoder_event(&chunk->encoder, stream->event + 1);
    return;
  }
  *entry_encoder_room(&chunk->encoder) = word_of(writer, entry);
  entry_encoder_plain(&chunk->encoder, 1);
}

/* ---- many ---- */

/* The entries may be in memory that another process writes to: each is read once, and only the copy is used. */
static inline void words_copy(uint32_t *to, const uint32_t *from, unsigned count)
{
  if (likely(count == HISTORY_AHEAD)) /* a constant size needs no call */
    words_copy_many(to, from, HISTORY_AHEAD / VECTOR_WORDS);
  else
    for (unsigned i = 0; i < count; i++)
      to[i] = from[i];
  __asm__ volatile("" ::: "memory");
}

/* The info of a number as one word, the first field lowest. */
static inline uint64_t info_word(const struct path_info *info)
{
  return bytes_get_u64((const uint8_t *)info);
}

/* A head follows this step. If the step is tied, the linked path ran in between: finds out how many branches it made.
 * Returns false if the general code must handle this. */
static bool link_find(struct lb_trace_writer *writer, uint32_t step, uint64_t *info)
{
  uint32_t next = path_next(writer, step);
  struct path_info found = writer->paths.infos[step];

  if (!(found.flags & PATH_LINKED)) {
    found.flags |= PATH_LINKED; /* not linked for now: it may be tied later */
    found.after = 0;
    if (next)
      return false;
  }
  *info = info_word(&found);
  return true;
}

/* An entry that the fast path does not know. Looks up its path, which is new, or the path that it enters. Returns false
 * if the general code must handle it. */
static bool rare_find(struct lb_trace_writer *writer, uint32_t entry)
{
  struct path_info info = {0};

  if (entry != LB_ENTRY_EVENT)
    info = path_find(writer, entry & ~LB_ENTRY_ENTER);
  return info.number && (!(entry & LB_ENTRY_ENTER) || info.flags & LB_STEP_HEAD);
}

/* Translates steps and heads, at most a block, to the file's numbers and counts their branches. It branches on the data
 * only in rare cases, because a misprediction would cost more than the whole work. Returns the number of entries, which
 * follow `last`. */
static inline unsigned known_read(struct lb_trace_writer *writer, uint32_t last, const uint32_t *restrict entries,
                                  unsigned most, uint32_t *restrict words, uint8_t *restrict counts)
{
  const struct writer_paths *paths = &writer->paths;
  uint64_t before = last - 1 < LB_STEP_MAX ? info_word(&paths->infos[last]) : (uint64_t)PATH_LINKED << 56;
  unsigned i = 0;

  for (; i < most; i++) {
    uint32_t entry = entries[i], enter = 0;
    uint64_t info = likely(entry < paths->capacity) ? info_word(&paths->infos[entry]) : 0, is_head;

    if (!likely((uint32_t)info)) {
      if (!rare_find(writer, entry))
        break;
      enter = entry & LB_ENTRY_ENTER;
      info = info_word(&paths->infos[entry & ~LB_ENTRY_ENTER]);
    }
    is_head = enter ? 0 : 0 - (info >> 56 & LB_STEP_HEAD);
    if (is_head & ~before & (uint64_t)PATH_LINKED << 56 && !link_find(writer, i ? entries[i - 1] : last, &before))
      break;
    words[i] = (uint32_t)info | enter;
    counts[i] = (uint8_t)((info >> 32) + (before >> 48 & is_head));
    before = info;
  }
  return i;
}

/* The value of `last` after this entry was taken. */
static uint32_t last_of(uint32_t entry)
{
  uint32_t number = entry & ~LB_ENTRY_ENTER;

  return number ? number : LAST_BAD;
}

/* How many branches the first repeated entry makes. That of the others is known, because the entry before is the same.
 * Returns false if the general code must handle it. */
static bool first_count(struct lb_trace_writer *writer, const struct writer_history *history, uint32_t last,
                        uint8_t *ret_count)
{
  uint32_t word;

  *ret_count = history->counts[history->follow];
  return history->is_followed || known_read(writer, last, &history->entries[history->follow], 1, &word, ret_count);
}

/* Takes entries that repeat earlier ones. Returns their number. */
static size_t repeat_take(struct lb_trace_writer *writer, struct writer_entries *chunk, struct writer_stream *stream,
                          const uint32_t *entries, size_t most)
{
  struct writer_history *history = &chunk->history;
  uint32_t distance, last[ENTRIES_ORDER];
  uint8_t first_made;
  uint64_t made;
  size_t count = 0;

  if (first_count(writer, history, stream->last, &first_made))
    count = history_repeat(history, entries, most, first_made, &distance, &made);
  else
    history_leave(history);
  if (!count)
    return 0;
  chunk->branches += made;
  for (unsigned i = 0; i < ENTRIES_ORDER; i++)
    last[i] = word_of(writer, history->entries[history->count - ENTRIES_ORDER + i]);
  entry_encoder_repeat(&chunk->encoder, (uint32_t)count, distance, last);
  stream->last = last_of(history->entries[history->count - 1]);
  return count;
}

/* Takes a block of plain entries, or the entries from here on that repeat earlier ones. Returns their number. */
static size_t block_take(struct lb_trace_writer *writer, struct writer_entries *chunk, struct writer_stream *stream,
                         const uint32_t *entries, size_t most)
{
  struct writer_history *history = &chunk->history;
  uint32_t *copy = history->entries + history->count;
  unsigned ahead = most < HISTORY_AHEAD ? (unsigned)most : HISTORY_AHEAD, wanted, count;

  words_copy(copy, entries, ahead);
  wanted = history_search(history, ahead, writer->paths.infos);
  if (!wanted) {
    size_t repeated = repeat_take(writer, chunk, stream, entries, most);

    if (repeated)
      return repeated;
    words_copy(copy, entries, 1);
    wanted = 1;
  }
  count = known_read(writer, stream->last, copy, wanted, entry_encoder_room(&chunk->encoder),
                     history->counts + history->count);
  if (count < wanted)
    history_leave(history);
  if (!count)
    return 0;
  stream->last = last_of(copy[count - 1]);
  chunk->branches += history_add(history, count);
  entry_encoder_plain(&chunk->encoder, count);
  return count;
}

/* Takes the next entries, at most `most`. Returns their number. */
static size_t entries_take(struct lb_trace_writer *writer, struct writer_encoder *slot, const uint32_t *entries,
                           size_t most)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  struct writer_entries *chunk = slot->entries;
  uint32_t entry, taken[ENTRY_MOST];
  uint64_t branches = 0;
  size_t more;

  words_copy(&entry, entries, 1);
  if (!stream->event_size && entry != LB_ENTRY_EVENT) { /* a repetition goes on after a stamp */
    more = chunk->history.follow ? repeat_take(writer, chunk, stream, entries, most) : 0;
    if (!more)
      more = block_take(writer, chunk, stream, entries, most);
    if (more)
      return more;
  }
  words_copy(&entry, entries, 1);
  more = entry_take(writer, stream, entry, taken, &branches);
  for (size_t i = 0; i < more; i++)
    chunk_put(writer, chunk, stream, taken[i], i + 1 == more ? branches : 0);
  return 1;
}

/* Fills a chunk. Returns the number of entries taken. */
static size_t entries_fill(struct lb_trace_writer *writer, struct writer_encoder *slot, const uint32_t *entries,
                           size_t count)
{
  struct writer_entries *chunk = slot->entries;
  const struct writer_history *history = &chunk->history;
  uint64_t before = chunk->branches;
  size_t done = 0;

  count = count < FILL_MOST ? count : FILL_MOST;
  if (entry_encoder_reserve(&chunk->encoder, count * ENTRY_MOST) < 0) {
    writer_fail(writer, -ENOMEM);
    return 0;
  }
  while (done < count && history->count < chunk->full && !chunk->is_ended && likely(writer->error >= 0)) {
    size_t most = count - done < chunk->full - history->count ? count - done : chunk->full - history->count;

    done += entries_take(writer, slot, entries + done, most);
  }
  writer->branches += chunk->branches - before;
  return done;
}

/* The contents of a chunk are bounded: 4 MiB of entries, one of counts, and strings. */
static bool chunk_is_full(const struct writer_entries *chunk)
{
  return chunk->history.count >= chunk->full || chunk->is_ended ||
         chunk->encoder.symbols.size + chunk->encoder.events.size >= STRINGS_FULL;
}

int lb_trace_writer_entries(struct lb_trace_writer *writer, uint32_t stream, const uint32_t *entries, size_t count)
{
  if (writer->error < 0)
    return writer->error;
  if (stream >= writer->count || !writer->paths.lookup)
    return -EINVAL;
  while (count > 0 && writer->error >= 0) {
    struct writer_encoder *slot = encoder_open(writer, stream, true);
    size_t done = slot ? entries_fill(writer, slot, entries, count) : 0;

    entries += done;
    count -= done;
    if (slot && chunk_is_full(slot->entries))
      encoder_close(writer, slot);
  }
  return writer->error;
}

/* ---- chunks ---- */

int entries_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t number)
{
  const struct writer_stream *stream = &writer->streams[number];
  struct writer_entries *entries = slot->entries;

  if (!entries) {
    entries = slot->entries = table_new(sizeof(*entries));
    if (!entries)
      return -ENOMEM;
    memset(entries, 0, offsetof(struct writer_entries, history));
  }
  history_begin(&entries->history);
  entry_encoder_begin(&entries->encoder);
  entries->branches = 0;
  /* If there are stamps, a chunk ends at one: a part of a log, at whose end there is a stamp, is at most a quarter of a
   * whole chunk. */
  entries->full = HISTORY_FIRST + (writer->stamp_make ? CHUNK_ENTRIES_MAX : chunk_size(stream)) - ENTRY_MOST;
  entries->enough = HISTORY_FIRST + chunk_size(stream) / 4 * 3;
  entries->is_ended = false;
  entries->is_open = stream_is_open(writer, stream);
  if (last_is_path(stream) && writer->paths.infos[stream->last].number)
    entries->before = BEFORE_NUMBER + (uint64_t)writer->paths.infos[stream->last].number;
  else
    entries->before = stream->last == LAST_EVENT ? BEFORE_EVENT : BEFORE_NONE;
  return 0;
}

uint64_t entries_made(const struct lb_trace_writer *writer, const struct writer_encoder *slot)
{
  const struct writer_stream *stream = &writer->streams[slot->stream];

  return slot->entries->branches + slot->entries->is_open - stream_is_open(writer, stream);
}

int entries_end(struct lb_trace_writer *writer, struct writer_encoder *slot)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  struct writer_entries *entries = slot->entries;
  uint64_t branches = entries_made(writer, slot);
  struct chunk_position position = {
    .first = stream->next, .previous = stream->previous, .stream = slot->stream, .count = (uint32_t)branches};

  if ((!entries->encoder.count && !stamps_are_new(slot)) || paths_write(writer) < 0)
    return writer->error;
  writer->raw.size = 0;
  if (entry_encoder_end(&entries->encoder, entries->before, &writer->raw) < 0 || stamps_end(slot, &writer->raw) < 0)
    return writer_fail(writer, -ENOMEM);
  stream->previous = writer->file.size;
  stream->next += branches;
  stream->chunks++;
  return chunk_write(writer, CHUNK_ENTRIES, &position);
}

void entries_interrupt(struct writer_stream *stream)
{
  stream->last = LAST_NONE;
  stream->event_size = 0;
}

void entries_done(struct writer_entries *entries)
{
  if (!entries)
    return;
  entry_encoder_done(&entries->encoder);
  free(entries);
}
