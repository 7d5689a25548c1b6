/* SPDX-License-Identifier: Apache-2.0
 *
 * Entries on their way into chunks. Those that come again as they came before (entries.h) are compared, many at a time,
 * and nothing else is done with them. The others are turned from the producer's numbers into those of the file, which
 * are given out in the order of first use, and their branches counted. Whether they make sense together is not looked
 * at: the reader finds out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "trace/writer.h"

#define likely(condition) __builtin_expect(!!(condition), 1)

#define EVENT_SIZE (1 + PATH_EVENT_WORDS)
#define ENTRY_MOST 2u /* entries that one can become */
#define CHUNK_FULL (ENTRIES_ORDER + CHUNK_ENTRIES_MAX - ENTRY_MOST)
#define RAW_EVENT (PATH_EVENT - 1) /* an event among those of the chunk: like none that comes */

/* ---- one entry that is not as it was before ---- */

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
static size_t bad_take(struct writer_stream *stream, uint32_t *entries)
{
  bool is_again = stream->last == LAST_BAD;

  stream->last = LAST_BAD;
  *entries = ENTRY_BAD;
  return is_again ? 0 : 1;
}

/* Was a branch taken whose target is not known yet? */
static bool stream_is_open(const struct lb_trace_writer *writer, const struct writer_stream *stream)
{
  return last_is_path(stream) && (writer->paths.infos[stream->last].flags & (PATH_OPEN | PATH_SILENT));
}

/* A branch is open, but its step is tied to a path: says so, since the file has no links for such steps. With a link
 * that was lost, a reader would take the target for the address of the entry behind. */
static size_t open_take(const struct lb_trace_writer *writer, const struct writer_stream *stream, uint32_t running,
                        uint32_t *entries)
{
  if (!running || !stream_is_open(writer, stream))
    return 0;
  *entries = PATH_ENTER | running;
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

/* Its words stay in the stream. */
static size_t event_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t word, uint32_t *entries,
                         uint64_t *branches)
{
  uint32_t running;
  size_t more;

  stream->event[stream->event_size++] = word;
  if (stream->event_size < EVENT_SIZE)
    return 0;
  running = running_get(writer, stream);
  more = open_take(writer, stream, running, entries);
  *branches += event_count(writer, stream, running);
  stream->event_size = 0;
  stream->last = LAST_EVENT;
  entries[more] = RAW_EVENT;
  return more + 1;
}

/* A head: the path before ran through. */
static size_t head_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t entry, uint32_t *entries,
                        uint64_t *branches)
{
  uint32_t running = running_get(writer, stream);
  size_t more = open_take(writer, stream, running, entries);

  *branches += running ? writer->paths.infos[running].after : 0;
  entries[more] = entry;
  return more + 1;
}

/* Returns how many entries it became, in the producer's numbers. */
static size_t entry_take(struct lb_trace_writer *writer, struct writer_stream *stream, uint32_t entry,
                         uint32_t entries[ENTRY_MOST], uint64_t *branches)
{
  uint32_t number = entry & ~PATH_ENTER;
  struct path_info info;
  size_t count = 1;

  if (stream->event_size || entry == PATH_EVENT)
    return event_take(writer, stream, entry, entries, branches);
  if (!entry)
    return 0;
  info = path_find(writer, number);
  if (!info.number || ((entry & PATH_ENTER) && !(info.flags & PATH_HEAD)))
    return bad_take(stream, entries);
  if (info.flags & PATH_HEAD && !(entry & PATH_ENTER))
    count = head_take(writer, stream, entry, entries, branches);
  else
    *entries = entry;
  *branches += info.branches;
  stream->last = number;
  return count;
}

/* ---- the chunk ---- */

/* An entry of the chunk as it is in the file. */
static uint32_t word_of(const struct lb_trace_writer *writer, uint32_t entry)
{
  uint32_t number = entry & ~PATH_ENTER;

  if (entry == RAW_EVENT)
    return PATH_EVENT;
  return number ? writer->paths.infos[number].number | (entry & PATH_ENTER) : entry;
}

static void chunk_put(const struct lb_trace_writer *writer, struct writer_entries *chunk,
                      const struct writer_stream *stream, uint32_t entry, uint64_t branches)
{
  uint32_t at = chunk->encoder.model.count, words[EVENT_SIZE] = {word_of(writer, entry)};

  chunk->entries[at] = entry;
  chunk->counts[at] = (uint16_t)branches;
  if (entry == RAW_EVENT)
    memcpy(words + 1, stream->event + 1, sizeof(words) - sizeof(*words));
  entry_encoder_add(&chunk->encoder, words);
}

/* ---- many ---- */

#define BLOCK 16u

/* Entries that are as guessed. What comes again may be what came just now. Returns how many. */
static size_t run_take(struct writer_entries *chunk, const uint32_t *entries, size_t most)
{
  uint32_t at = chunk->encoder.model.count, from = chunk->encoder.model.guess;
  uint32_t *words = chunk->encoder.model.words;
  size_t done = 0;

  if (chunk->entries[from - 1] != chunk->entries[at - 1]) /* what the first makes is not the same then */
    return 0;
  if (at - from >= BLOCK)
    for (; done + BLOCK <= most; done += BLOCK) {
      if (memcmp(entries + done, chunk->entries + from + done, BLOCK * sizeof(*entries)) != 0)
        break;
      memcpy(chunk->entries + at + done, entries + done, BLOCK * sizeof(*entries));
      memcpy(words + at + done, words + from + done, BLOCK * sizeof(*entries));
      memcpy(chunk->counts + at + done, chunk->counts + from + done, BLOCK * sizeof(*chunk->counts));
    }
  for (; done < most && entries[done] == chunk->entries[from + done]; done++) {
    chunk->entries[at + done] = entries[done];
    words[at + done] = words[from + done];
    chunk->counts[at + done] = chunk->counts[from + done];
  }
  entry_encoder_run(&chunk->encoder, done);
  return done;
}

/* Steps and heads that are known, as long as they come and none are followed. Returns how many. */
static inline size_t known_take(const struct writer_paths *paths, struct writer_entries *chunk,
                                struct writer_stream *stream, const uint32_t *entries, size_t count)
{
  struct path_info before =
    last_is_path(stream) ? paths->infos[stream->last] : (struct path_info){.flags = PATH_LINKED};
  const struct entry_model *model = &chunk->encoder.model;
  size_t i = 0;

  for (; i < count && !stream->event_size; i++) {
    struct path_info info;

    if (entries[i] >= paths->capacity)
      break;
    info = paths->infos[entries[i]];
    if (!info.number || ((info.flags & PATH_HEAD) && !(before.flags & PATH_LINKED)))
      break;
    chunk->entries[model->count] = entries[i];
    chunk->counts[model->count] = info.flags & PATH_HEAD ? before.after : info.branches;
    entry_encoder_add(&chunk->encoder, &info.number);
    before = info;
    if (model->guess) {
      i++;
      break;
    }
  }
  if (i)
    stream->last = entries[i - 1];
  return i;
}

/* Branches of the entries from this place on. */
static uint64_t counts_sum(const struct writer_entries *chunk, uint32_t place)
{
  uint64_t sum = 0;

  for (uint32_t i = place; i < chunk->encoder.model.count; i++)
    sum += chunk->counts[i];
  return sum;
}

static uint32_t last_of(uint32_t entry)
{
  uint32_t number = entry & ~PATH_ENTER;

  return number ? number : LAST_BAD;
}

/* Fills a chunk. Returns how many entries were taken. */
static size_t entries_fill(struct lb_trace_writer *writer, struct writer_encoder *slot, const uint32_t *entries,
                           size_t count)
{
  struct writer_stream *stream = &writer->streams[slot->stream];
  struct writer_entries *chunk = slot->entries;
  const struct entry_model *model = &chunk->encoder.model;
  uint32_t start = model->count;
  uint64_t made;
  size_t done = 0;

  if (entry_encoder_reserve(&chunk->encoder, count * ENTRY_MOST) < 0) {
    writer_fail(writer, -ENOMEM);
    return 0;
  }
  while (done < count && model->count < CHUNK_FULL && likely(writer->error >= 0)) {
    uint32_t taken[ENTRY_MOST];
    uint64_t branches = 0;
    size_t most = count - done < CHUNK_FULL - model->count ? count - done : CHUNK_FULL - model->count;
    size_t more = model->guess && !stream->event_size ? run_take(chunk, entries + done, most) : 0;

    done += more;
    if (more)
      stream->last = last_of(entries[done - 1]);
    if (more == most)
      continue;
    more = known_take(&writer->paths, chunk, stream, entries + done, most - more);
    done += more;
    if (more)
      continue;
    more = entry_take(writer, stream, entries[done++], taken, &branches);
    for (size_t i = 0; i < more; i++)
      chunk_put(writer, chunk, stream, taken[i], i + 1 == more ? branches : 0);
  }
  made = counts_sum(chunk, start);
  chunk->branches += made;
  writer->branches += made;
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
    if (slot && slot->entries->encoder.model.count >= CHUNK_FULL)
      encoder_close(writer, slot);
  }
  return writer->error;
}

/* ---- chunks ---- */

static struct writer_entries *entries_new(void)
{
  struct writer_entries *entries = calloc(1, sizeof(*entries));

  if (!entries)
    return NULL;
  entries->entries = calloc(ENTRIES_ORDER + CHUNK_ENTRIES_MAX, sizeof(*entries->entries));
  entries->encoder.model.words = calloc(ENTRIES_ORDER + CHUNK_ENTRIES_MAX, sizeof(*entries->entries));
  entries->counts = calloc(ENTRIES_ORDER + CHUNK_ENTRIES_MAX, sizeof(*entries->counts));
  if (entries->entries && entries->encoder.model.words && entries->counts)
    return entries;
  entries_done(entries);
  return NULL;
}

int entries_begin(struct lb_trace_writer *writer, struct writer_encoder *slot, uint32_t number)
{
  const struct writer_stream *stream = &writer->streams[number];
  struct writer_entries *entries = slot->entries;

  if (!entries)
    entries = slot->entries = entries_new();
  if (!entries)
    return -ENOMEM;
  entry_encoder_begin(&entries->encoder);
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
  struct writer_entries *entries = slot->entries;
  uint32_t count = entries->encoder.model.count;
  uint64_t branches = entries->branches + entries->is_open - stream_is_open(writer, stream);
  struct chunk_position position = {
    .first = stream->next, .previous = stream->previous, .stream = slot->stream, .count = (uint32_t)branches};

  if (count == ENTRIES_ORDER || paths_write(writer) < 0)
    return writer->error;
  writer->raw.size = 0;
  if (entry_encoder_end(&entries->encoder, entries->before, &writer->raw) < 0)
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
  if (!entries)
    return;
  free(entries->entries);
  free(entries->encoder.model.words);
  free(entries->counts);
  entry_encoder_done(&entries->encoder);
  free(entries);
}
