/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries on their way into chunks: turned from the producer's numbers into those of the file, which are given out in
 * the order of first use, and their branches counted. Whether they make sense together is not looked at: the reader
 * finds out. They are encoded (entry_encode.c) when the chunk is full.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/writer.h"

#define likely(condition) __builtin_expect(!!(condition), 1)

#define EVENT_SIZE (1 + PATH_EVENT_WORDS)
#define CHUNK_ROOM                                                                                                     \
  (CHUNK_ENTRIES_MAX - EVENT_SIZE - 1) /* a chunk that has more has no room for what one can become                    \
                                        */

/* ---- one entry that is not simply a step that is known ---- */

static inline bool last_is_path(const struct writer_stream *stream)
{
  return stream->last - 1 < PATH_STEPS_MAX;
}

/* Head of the path that runs behind the last entry, 0: none that is known. */
static uint32_t running_get(struct lb_trace_writer *writer, const struct writer_stream *stream)
{
  const struct writer_paths *paths = &writer->paths;

  if (!last_is_path(stream))
    return 0;
  if (paths->infos[stream->last].flags & PATH_HEAD)
    return stream->last;
  return likely(paths->nexts[stream->last]) ? paths->nexts[stream->last] : path_next(writer, stream->last);
}

/* What makes no sense is one entry, however often it comes. */
static size_t bad_take(struct writer_stream *stream, uint32_t *words)
{
  bool is_again = stream->last == LAST_BAD;

  stream->last = LAST_BAD;
  *words = ENTRY_BAD;
  return is_again ? 0 : 1;
}

/* Was a branch taken whose target is not known yet? */
static bool stream_is_open(const struct lb_trace_writer *writer, const struct writer_stream *stream)
{
  return last_is_path(stream) && (writer->paths.infos[stream->last].flags & (PATH_OPEN | PATH_SILENT));
}

/* A branch is open, but its step is tied to a path: says so, since the file has no links for such steps. With a link
 * that was lost, a reader would take the target for the address of the entry behind. */
static size_t open_take(struct lb_trace_writer *writer, const struct writer_stream *stream, uint32_t running,
                        uint32_t *words)
{
  if (!running || !stream_is_open(writer, stream))
    return 0;
  *words = PATH_ENTER | writer->paths.infos[running].number;
  return 1;
}

/* Branches of an event: those of the steps that the running path has passed, and its own. */
static unsigned event_count(struct lb_trace_writer *writer, const struct writer_stream *stream, uint32_t running)
{
  const struct writer_paths *paths = &writer->paths;
  uint32_t passed = stream->event[1] >> 8;
  unsigned count = (stream->event[1] & 0xFF) < LB_BRANCH_KINDS;

  if (running && passed <= UINT8_MAX && running + passed < paths->capacity)
    count += paths->infos[running + passed].passed;
  return count;
}

static size_t event_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t word, uint32_t *words,
                         uint64_t *branches)
{
  uint32_t running;
  size_t more;

  stream->event[stream->event_size++] = word;
  if (stream->event_size < EVENT_SIZE)
    return 0;
  running = running_get(writer, stream);
  more = open_take(writer, stream, running, words);
  *branches += event_count(writer, stream, running);
  stream->event_size = 0;
  stream->last = LAST_EVENT;
  memcpy(words + more, stream->event, sizeof(stream->event));
  return more + EVENT_SIZE;
}

/* A head: the path before ran through. */
static size_t head_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t number, uint32_t *words,
                        uint64_t *branches)
{
  uint32_t running = running_get(writer, stream);
  size_t more = open_take(writer, stream, running, words);

  *branches += running ? writer->paths.infos[running].after : 0;
  words[more] = number;
  return more + 1;
}

/* Returns how many words it became. */
static size_t entry_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t entry, uint32_t *words,
                         uint64_t *branches)
{
  uint32_t number = entry & ~PATH_ENTER;
  struct path_info info;
  size_t count = 1;

  if (stream->event_size || entry == PATH_EVENT)
    return event_take(writer, stream, entry, words, branches);
  if (!entry)
    return 0;
  info = path_find(writer, number);
  if (!info.number || ((entry & PATH_ENTER) && !(info.flags & PATH_HEAD)))
    return bad_take(stream, words);
  if (info.flags & PATH_HEAD && !(entry & PATH_ENTER))
    count = head_take(writer, stream, info.number, words, branches);
  else
    *words = info.number | (entry & PATH_ENTER);
  *branches += info.branches;
  stream->last = number;
  return count;
}

/* ---- many ---- */

/* Steps and heads that are known, as long as they come. Returns how many. */
static inline size_t known_take(const struct writer_paths *paths, struct writer_stream *stream, const uint32_t *entries,
                                size_t count, uint32_t *words, uint64_t *branches)
{
  struct path_info before =
    last_is_path(stream) ? paths->infos[stream->last] : (struct path_info){.flags = PATH_LINKED};
  uint64_t sum = 0;
  size_t i = 0;

  for (; i < count; i++) {
    struct path_info info;

    if (entries[i] >= paths->capacity)
      break;
    info = paths->infos[entries[i]];
    if (!info.number || ((info.flags & PATH_HEAD) && !(before.flags & PATH_LINKED)))
      break;
    words[i] = info.number;
    sum += info.flags & PATH_HEAD ? before.after : info.branches;
    before = info;
  }
  if (i)
    stream->last = entries[i - 1];
  *branches += sum;
  return i;
}

/* Fills a chunk. Returns how many entries were taken. */
static size_t entries_fill(struct lb_trace_writer *writer, struct writer_encoder *slot, const uint32_t *entries,
                           size_t count)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  struct writer_entries *chunk = slot->entries;
  size_t done = 0, at = chunk->count;
  uint64_t branches = 0;

  while (done < count && at < CHUNK_ROOM && likely(writer->error >= 0)) {
    if (likely(!stream->event_size)) {
      size_t most = count - done < CHUNK_ROOM - at ? count - done : CHUNK_ROOM - at;
      size_t more = known_take(&writer->paths, stream, entries + done, most, chunk->words + at, &branches);

      done += more;
      at += more;
      if (more == most)
        continue;
    }
    at += entry_take(writer, stream, entries[done++], chunk->words + at, &branches);
  }
  chunk->count = at;
  chunk->branches += branches;
  writer->branches += branches;
  return done;
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
    if (slot && slot->entries->count >= CHUNK_ROOM)
      encoder_close(writer, slot);
  }
  return writer->error;
}

/* ---- chunks ---- */

int entries_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t number)
{
  const struct writer_stream *stream = &writer->streams[number];
  struct writer_entries *entries = slot->entries;

  if (!writer->model)
    writer->model = malloc(sizeof(*writer->model));
  if (!entries)
    entries = slot->entries = calloc(1, sizeof(*entries));
  if (entries && !entries->words)
    entries->words = malloc(CHUNK_ENTRIES_MAX * sizeof(*entries->words));
  if (!writer->model || !entries || !entries->words)
    return -ENOMEM;
  entries->count = 0;
  entries->branches = 0;
  entries->is_open = stream_is_open(writer, stream);
  if (last_is_path(stream))
    entries->before = BEFORE_NUMBER + (uint64_t)writer->paths.infos[stream->last].number;
  else
    entries->before = stream->last == LAST_EVENT ? BEFORE_EVENT : BEFORE_NONE;
  return 0;
}

int entries_end(struct lb_trace_writer *writer, struct writer_encoder *slot)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  const struct writer_entries *entries = slot->entries;
  uint64_t branches = entries->branches + entries->is_open - stream_is_open(writer, stream);
  struct chunk_position position = {
    .first = stream->next, .previous = stream->previous, .stream = slot->stream, .count = (uint32_t)branches};

  if (!entries->count || paths_write(writer) < 0)
    return writer->error;
  writer->raw.size = 0;
  if (entries_encode(writer->model, entries->before, entries->words, entries->count, &writer->raw) < 0)
    return writer_fail(writer, -ENOMEM);
  stream->previous = writer->file.size;
  stream->next += branches;
  return chunk_write(writer, CHUNK_ENTRIES, &position);
}

void entries_interrupt(struct writer_stream *stream)
{
  stream->last = LAST_NONE;
  stream->event_size = 0;
}

void entries_done(struct writer_entries *entries)
{
  if (entries)
    free(entries->words);
  free(entries);
}
