/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of traces: chunk after chunk, from front to end or by a plan (tail.c), and out of each the records.
 * Whatever is missing comes out as a gap.
 */
#include "trace/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/sparse.h"
#include "trace/trace.h"

const char *lb_trace_gap_name(unsigned reason)
{
  static const char *const names[LB_TRACE_GAP_REASONS] = {
    [LB_TRACE_LOST] = "lost",       [LB_TRACE_PAUSED] = "paused", [LB_TRACE_DAMAGED] = "damaged",
    [LB_TRACE_MISSING] = "missing", [LB_TRACE_CUT] = "cut",       [LB_TRACE_SAMPLED] = "sampled",
  };

  return reason < LB_TRACE_GAP_REASONS ? names[reason] : "?";
}

int stream_get(struct lb_trace_reader *reader, uint32_t number, struct reader_stream **ret_stream)
{
  if (number >= LB_TRACE_STREAMS_MAX)
    return LB_E_DAMAGED;
  while (number >= reader->count) {
    struct reader_stream *streams = array_grow(reader->streams, sizeof(*streams), reader->count, &reader->capacity);

    if (!streams)
      return -ENOMEM;
    reader->streams = streams;
    streams[reader->count++] = (struct reader_stream){0};
  }
  *ret_stream = &reader->streams[number];
  return 0;
}

/* ---- gaps ---- */

static int give_gap(struct lb_trace_record *record, struct lb_trace_gap gap)
{
  *record = (struct lb_trace_record){.type = LB_TRACE_GAP, .gap = gap};
  return 1;
}

/* Bytes that could not be read. */
static int give_damage(struct lb_trace_reader *reader, struct lb_trace_record *record, uint64_t offset, uint64_t bytes)
{
  reader->is_damaged = true;
  if (offset + bytes > reader->lost.until) {
    reader->lost.bytes += bytes;
    reader->lost.until = offset + bytes;
  }
  return give_gap(record, (struct lb_trace_gap){.stream = LB_TRACE_ALL, .reason = LB_TRACE_DAMAGED, .bytes = bytes});
}

/* A gap of one stream that damage made. However often a file is read, what is missing is counted once. */
static int give_loss(struct lb_trace_reader *reader, struct lb_trace_record *record, struct lb_trace_gap gap)
{
  struct reader_stream *stream = &reader->streams[gap.stream];

  if (gap.first + gap.count > stream->lost_until) {
    reader->lost.branches += gap.count;
    stream->lost_until = gap.first + gap.count;
  }
  return give_gap(record, gap);
}

void trace_reader_lost(const struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_bytes)
{
  *ret_branches = reader->lost.branches;
  *ret_bytes = reader->lost.bytes;
}

/* ---- branches ---- */

/* What is left of a chunk that contradicts itself is missing; the chunk that follows does not find it so. */
static int branches_damaged(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  struct lb_trace_gap gap = {
    .stream = reader->position.stream,
    .reason = LB_TRACE_DAMAGED,
    .first = reader->number,
    .count = reader->position.first + reader->position.count - reader->number,
  };

  reader->decoder.left = 0;
  reader->has_entries = false;
  return give_loss(reader, record, gap);
}

/* Entries whose branches nobody can tell. There may be more behind them; before those that were asked for nobody wants
 * to know. */
static int entries_bad(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  if (reader->skip)
    return 0;
  return give_gap(record, (struct lb_trace_gap){
                            .stream = reader->position.stream, .reason = LB_TRACE_DAMAGED, .first = reader->number});
}

/* Nothing more comes out of the entries: is it as many as there should be? */
static int entries_finish(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  bool is_right = reader->number == reader->position.first + reader->position.count && !reader->entries->is_excess;

  reader->has_entries = false;
  return is_right ? 0 : branches_damaged(reader, record);
}

/* Branches into the batch, as decoder_next; -EBADMSG: see entries_next. */
static int batch_fill(struct lb_trace_reader *reader, uint64_t *ret_start)
{
  uint64_t left = reader->position.first + reader->position.count - reader->number;
  int count;

  *ret_start = 0;
  if (!reader->has_entries)
    return decoder_next(&reader->decoder, reader->batch, LB_TRACE_BATCH_MAX);
  count = reader->entries->is_excess ? 0 : entries_read(reader);
  if (count <= 0)
    return count;
  *ret_start = entries_start(reader);
  count = entries_next(reader);
  if (count > 0 && (uint64_t)count > left) {
    reader->entries->is_excess = true;
    count = (int)left;
  }
  return count;
}

/* The stream stopped where the entries have come to. Returns true with a record. */
static bool stop_give(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  bool is_stop = reader->has_entries && reader->entries->has_stop;

  if (is_stop)
    reader->entries->has_stop = false;
  if (!is_stop || reader->plan.is_on)
    return false;
  *record = (struct lb_trace_record){.type = LB_TRACE_STOP,
                                     .stop = {.stream = reader->position.stream, .at = reader->entries->walker.end}};
  return true;
}

/* The next batch of the chunk that is open. Returns 1, 0 when it was not asked for, or negative. */
static int batch_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  uint64_t skip, start;
  int count;

  if (stop_give(reader, record))
    return 1;
  count = batch_fill(reader, &start);

  if (count == LB_E_DAMAGED)
    return branches_damaged(reader, record);
  if (count == -EBADMSG)
    return entries_bad(reader, record);
  if (count < 0)
    return count;
  if (count == 0 && reader->has_entries && !reader->entries->has_stop)
    return entries_finish(reader, record);
  skip = reader->skip < (uint64_t)count ? reader->skip : (uint64_t)count;
  reader->skip -= skip;
  *record = (struct lb_trace_record){
    .type = LB_TRACE_BRANCHES,
    .branches = {.stream = reader->position.stream,
                 .first = reader->number + skip,
                 .count = (size_t)count - skip,
                 .branches = reader->batch + skip,
                 .start = skip ? 0 : start},
  };
  reader->number += (uint64_t)count;
  return record->branches.count > 0;
}

/* ---- counting ---- */

static int counted_give(struct lb_trace_reader *reader, struct lb_trace_record *record, uint64_t branches, uint64_t at)
{
  uint64_t left = reader->position.first + reader->position.count - reader->number;

  if (branches > left) {
    reader->entries->is_excess = true;
    branches = left;
  }
  *record = (struct lb_trace_record){
    .type = LB_TRACE_COUNTED,
    .counted = {.stream = reader->position.stream, .first = reader->number, .count = branches, .at = at},
  };
  reader->number += branches;
  return 1;
}

/* Branches that the walker made: as many as the chunk may still have. Returns 0 if it may have none. */
static int walked_give(struct lb_trace_reader *reader, struct lb_trace_record *record, uint64_t count, uint64_t start)
{
  uint64_t left = reader->position.first + reader->position.count - reader->number;

  if (count > left) {
    reader->entries->is_excess = true;
    count = left;
  }
  *record = (struct lb_trace_record){
    .type = LB_TRACE_BRANCHES,
    .branches = {.stream = reader->position.stream,
                 .first = reader->number,
                 .count = (size_t)count,
                 .branches = reader->batch,
                 .start = start},
  };
  reader->number += count;
  return count > 0;
}

/* The same as batch_next for entries that are counted. */
static int count_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  uint64_t branches, at, start;
  int r;

  if (stop_give(reader, record))
    return 1;
  r = reader->entries->is_excess ? 0 : entries_read(reader);
  if (r == LB_E_DAMAGED)
    return branches_damaged(reader, record);
  if (r <= 0)
    return r < 0 ? r : entries_finish(reader, record);
  if (counts_take(reader, &branches, &at))
    return counted_give(reader, record, branches, at);
  start = entries_start(reader);
  r = entries_walk(reader, reader->batch, LB_TRACE_BATCH_MAX);
  if (r == -EBADMSG)
    return entries_lose(reader) ? entries_bad(reader, record) : 0;
  return r > 0 ? walked_give(reader, record, (uint64_t)r, start) : r;
}

/* The next branches of the chunk that is open, if any. Returns 1, 0 when it gives no more, or negative. */
static int branches_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  int r = 0;

  while (r == 0 && (reader->decoder.left || reader->has_entries))
    r = reader->has_entries && reader->counts.is_on ? count_next(reader, record) : batch_next(reader, record);
  return r;
}

/* A chunk of a stream: are branches missing before it? Returns 1 with a gap: the chunk is to be looked at again; 0 if
 * not; or negative. */
static int position_check(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  const struct chunk_position *position = &reader->position;
  struct reader_stream *stream;
  struct lb_trace_gap gap = {.stream = position->stream, .reason = LB_TRACE_MISSING};
  int r = stream_get(reader, position->stream, &stream);

  if (r < 0)
    return r;
  if (position->first < stream->next || position->count > UINT64_MAX - position->first)
    return LB_E_DAMAGED;
  if (position->first == stream->next)
    return 0;
  gap.first = stream->next;
  gap.count = position->first - stream->next;
  stream->next = position->first;
  return give_loss(reader, record, gap);
}

/* Who counts one stream wants nothing of the others. */
static bool position_is_wanted(const struct lb_trace_reader *reader)
{
  const struct reader_counts *counts = &reader->counts;

  return !counts->is_on || counts->stream == LB_TRACE_ALL || counts->stream == reader->position.stream;
}

static int branches_open(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  bool has_entries = reader->head.type == CHUNK_ENTRIES;
  int r;

  if (!position_is_wanted(reader)) {
    reader->streams[reader->position.stream].next = reader->position.first + reader->position.count;
    return 0;
  }
  r = has_entries ? entries_open(reader)
                  : decoder_begin(&reader->decoder, reader->raw.bytes, reader->raw.size, reader->position.count);

  if (r >= 0 && has_entries && reader->counts.is_on)
    r = counts_reserve(reader);
  reader->number = reader->position.first;
  reader->has_entries = has_entries && r >= 0;
  reader->streams[reader->position.stream].next = reader->position.first + reader->position.count;
  return r == LB_E_DAMAGED ? branches_damaged(reader, record) : r;
}

static int gap_open(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  struct lb_trace_gap gap;
  int r = gap_unpack(reader, &gap);

  if (r < 0)
    return r;
  reader->streams[gap.stream].next += gap.count;
  return give_gap(record, gap);
}

/* ---- chunks ---- */

/* The chunk that was loaded. Returns 1 with a record, 0 when it gives none (yet), LB_E_DAMAGED, or -ENOMEM. */
static int chunk_open(struct lb_trace_reader *reader, struct lb_trace_record *record, bool *ret_again)
{
  struct reader_stream *stream;
  int r;

  if (chunk_has_position(reader->head.type)) {
    r = position_check(reader, record);
    *ret_again = r > 0;
    if (r != 0)
      return r;
    return reader->head.type == CHUNK_GAP ? gap_open(reader, record) : branches_open(reader, record);
  }
  if (chunk_has_paths(reader->head.type))
    return paths_unpack(reader);
  if (!chunk_describes(reader->head.type))
    return 0;
  r = record_unpack(reader, record);
  if (r >= 0 && record->type == LB_TRACE_STREAM)
    r = stream_get(reader, record->stream.number, &stream);
  return r < 0 ? r : 1;
}

/* The file is over: it must have said so. */
static int reader_end(struct lb_trace_reader *reader, struct lb_trace_record *record, bool is_whole)
{
  reader->is_over = true;
  if (is_whole)
    return 0;
  return give_gap(record, (struct lb_trace_gap){.stream = LB_TRACE_ALL, .reason = LB_TRACE_CUT});
}

/* There is no chunk where one should be: goes on at the next that can be found. */
static int reader_search(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  uint64_t before = reader->offset;
  int r = chunk_search(reader, reader->offset, &reader->offset);

  if (r == LB_E_TRUNCATED)
    reader->offset = reader->size;
  else if (r < 0)
    return r;
  return give_damage(reader, record, before, reader->offset - before);
}

/* Returns 1 with a record, 0 without, LB_E_DAMAGED for a chunk whose contents are, or another error. */
static int chunk_next(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head,
                      struct lb_trace_record *record, bool *ret_again)
{
  int r = chunk_load(reader, offset, head);

  return r < 0 ? r : chunk_open(reader, record, ret_again);
}

/* Is it a chunk that a sequential reader has to unpack? */
static bool chunk_is_ours(unsigned type)
{
  return chunk_describes(type) || chunk_has_position(type) || chunk_has_paths(type);
}

/* Of a file that is damaged the index tells how far each stream went. Without it, that is not known. */
static void index_look(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head)
{
  if (reader->is_damaged && chunk_load(reader, offset, head) >= 0)
    (void)index_ends(reader);
}

/* The file is over: branches that should have come are missing. Returns true with the gap of one stream. */
static bool streams_end(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  while (reader->is_damaged && reader->ended < reader->count) {
    uint32_t number = reader->ended++;
    struct reader_stream *stream = &reader->streams[number];

    if (stream->end > stream->next) {
      give_loss(
        reader, record,
        (struct lb_trace_gap){
          .stream = number, .reason = LB_TRACE_MISSING, .first = stream->next, .count = stream->end - stream->next});
      stream->next = stream->end;
      return true;
    }
  }
  return false;
}

static int sequence_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  while (!reader->is_over) {
    uint64_t offset = reader->offset;
    struct chunk_head head;
    bool is_again = false;
    int r = chunk_find(reader, offset, &head);

    if (r == LB_E_TRUNCATED)
      return reader_end(reader, record, false);
    if (r == LB_E_DAMAGED)
      return reader_search(reader, record);
    if (r < 0)
      return r;
    if (head.type == CHUNK_END)
      return streams_end(reader, record) ? 1 : reader_end(reader, record, true);
    reader->offset = offset + CHUNK_HEAD_SIZE + head.stored;
    if (head.type == CHUNK_INDEX)
      index_look(reader, offset, &head);
    if (!chunk_is_ours(head.type))
      continue;
    r = chunk_next(reader, offset, &head, record, &is_again);
    if (is_again)
      reader->offset = offset;
    if (r == LB_E_DAMAGED || r == LB_E_TRUNCATED)
      return give_damage(reader, record, offset, CHUNK_HEAD_SIZE + head.stored);
    if (r == 0)
      r = branches_next(reader, record);
    if (r != 0)
      return r;
  }
  return 0;
}

/* The stream's first chunk of a plan is where its numbers begin. */
static int plan_begin_stream(struct lb_trace_reader *reader, const struct chunk_position *position)
{
  struct reader_stream *stream;
  int r = stream_get(reader, position->stream, &stream);

  if (r < 0)
    return r;
  stream->next = position->first;
  reader->skip = reader->plan.skip;
  return 0;
}

static int plan_chunk(struct lb_trace_reader *reader, uint64_t place, struct lb_trace_record *record, bool *ret_again)
{
  struct reader_plan *plan = &reader->plan;
  struct chunk_position position;
  struct chunk_head head;
  int r = chunk_find(reader, place, &head);

  if (r >= 0 && plan->at == plan->described + 1) {
    r = chunk_find_position(reader, place, &head, &position);
    if (r >= 0)
      r = plan_begin_stream(reader, &position);
  }
  return r < 0 ? r : chunk_next(reader, place, &head, record, ret_again);
}

/* What is known to be missing before the stream's first chunk and behind its last one. */
static int plan_gap(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  struct reader_plan *plan = &reader->plan;

  if (plan->at == plan->described && plan->is_broken) {
    plan->is_broken = false;
    return give_damage(reader, record, 0, 0);
  }
  if (plan->at == plan->list.count && plan->is_cut) {
    plan->is_cut = false;
    return reader_end(reader, record, false);
  }
  return 0;
}

static int plan_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  struct reader_plan *plan = &reader->plan;
  int r = plan_gap(reader, record);

  while (r == 0 && plan->at < plan->list.count) {
    bool is_again = false;

    plan->at++;
    r = plan_chunk(reader, plan->list.places[plan->at - 1], record, &is_again);
    plan->at -= is_again;
    if (r == LB_E_DAMAGED || r == LB_E_TRUNCATED)
      return give_damage(reader, record, 0, 0);
    if (r == 0)
      r = branches_next(reader, record);
    if (r == 0)
      r = plan_gap(reader, record);
  }
  return r;
}

int lb_trace_reader_next(struct lb_trace_reader *reader, struct lb_trace_record *ret_record)
{
  int r = branches_next(reader, ret_record);

  if (r != 0)
    return r;
  return reader->plan.is_on ? plan_next(reader, ret_record) : sequence_next(reader, ret_record);
}

bool lb_trace_reader_not_taken(const struct lb_trace_reader *reader, uint64_t *ret_count)
{
  if (!reader->has_not_taken)
    return false;
  *ret_count = reader->not_taken;
  return true;
}

bool trace_reader_end(const struct lb_trace_reader *reader, uint64_t *ret_address)
{
  if (!reader->entries || !reader->entries->walker.is_ended)
    return false;
  *ret_address = reader->entries->walker.end;
  return true;
}

void lb_trace_reader_rewind(struct lb_trace_reader *reader)
{
  reader_rewind(reader, LB_TRACE_ALL);
}

void reader_rewind(struct lb_trace_reader *reader, uint32_t stream)
{
  if (reader->entries)
    path_walker_restart(&reader->entries->walker);
  reader->plan.is_on = false;
  reader->plan.at = 0;
  reader->decoder.left = 0;
  reader->has_entries = false;
  reader->skip = 0;
  reader->offset = TRACE_HEAD_SIZE;
  reader->not_taken = 0;
  counts_done(reader);
  reader->is_over = false;
  reader->ended = 0;
  for (size_t i = 0; stream == LB_TRACE_ALL && i < reader->count; i++)
    reader->streams[i].next = 0;
  if (stream < reader->count)
    reader->streams[stream].next = 0;
}

/* ---- opening ---- */

static int head_check(struct lb_trace_reader *reader)
{
  uint8_t bytes[TRACE_HEAD_SIZE];
  uint32_t version;
  int r = reader_read(reader, 0, bytes, sizeof(bytes));

  if (r == LB_E_TRUNCATED)
    return LB_E_NOT_TRACE;
  if (r < 0)
    return r;
  if (memcmp(bytes, TRACE_MAGIC, TRACE_MAGIC_SIZE) != 0 || bytes_get_u32(bytes + 12) != checksum_add(0, bytes, 12))
    return LB_E_NOT_TRACE;
  version = bytes_get_u32(bytes + TRACE_MAGIC_SIZE);
  if (version >> 16 > TRACE_VERSION || (version & 0xFFFF) == TRACE_EARLY) /* above: what a reader must know at least */
    return LB_E_TRACE_VERSION;
  return 0;
}

static int reader_begin(struct lb_trace_reader *reader, struct lb_trace_reader **ret_reader)
{
  int r = -ENOMEM;

  reader->zstd = ZSTD_createDCtx();
  if (reader->zstd)
    r = head_check(reader);
  if (r < 0) {
    lb_trace_reader_close(reader);
    return r;
  }
  lb_trace_reader_rewind(reader);
  *ret_reader = reader;
  return 0;
}

int lb_trace_reader_open(const char *path, struct lb_trace_reader **ret_reader)
{
  struct lb_trace_reader *reader = calloc(1, sizeof(*reader));
  struct stat status = {0};
  int r = 0;

  if (!reader)
    return -ENOMEM;
  reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not make us wait for its writer */
  if (reader->fd < 0 || fstat(reader->fd, &status) < 0)
    r = -errno;
  else if (!S_ISREG(status.st_mode))
    r = S_ISDIR(status.st_mode) ? -EISDIR : -ESPIPE;
  if (r < 0) {
    lb_trace_reader_close(reader);
    return r;
  }
  reader->size = (uint64_t)status.st_size;
  return reader_begin(reader, ret_reader);
}

int lb_trace_reader_open_bytes(const void *bytes, size_t size, struct lb_trace_reader **ret_reader)
{
  struct lb_trace_reader *reader = calloc(1, sizeof(*reader));

  if (!reader)
    return -ENOMEM;
  reader->fd = -1;
  reader->bytes = bytes;
  reader->size = size;
  return reader_begin(reader, ret_reader);
}

void lb_trace_reader_close(struct lb_trace_reader *reader)
{
  if (!reader)
    return;
  if (reader->fd >= 0)
    close(reader->fd);
  ZSTD_freeDCtx(reader->zstd);
  buffer_done(&reader->stored);
  buffer_done(&reader->raw);
  decoder_done(&reader->decoder);
  if (reader->entries)
    entry_decoder_done(&reader->entries->decoder);
  counts_done(reader);
  free(reader->entries);
  sparse_free(reader->steps, reader->step_capacity * sizeof(*reader->steps));
  free(reader->streams);
  free(reader->plan.list.places);
  free(reader->paths_at.places);
  free(reader);
}
