/* SPDX-License-Identifier: Apache-2.0
 *
 * The reader of traces: it reads chunk after chunk, from start to end or by a plan (tail.c), and gives their records.
 * Missing branches are given as a gap.
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
  struct reader_stream *stream;

  if (number >= LB_TRACE_STREAMS_MAX)
    return LB_E_DAMAGED;
  stream = array_at(&reader->streams, number, &reader->count, &reader->capacity);
  if (!stream)
    return -ENOMEM;
  *ret_stream = stream;
  return 0;
}

void trace_reader_lost(const struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_bytes)
{
  *ret_branches = reader->lost.branches;
  *ret_bytes = reader->lost.bytes;
}

/* ---- chunks ---- */

/* Opens the loaded chunk. Returns 1 with a record, 0 if it gives none (yet), LB_E_DAMAGED, or -ENOMEM. */
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
  if (reader->head.type == CHUNK_NAMES && reader->names.is_wanted) {
    r = names_unpack(reader, record);
    return r < 0 ? r : 1;
  }
  if (!chunk_describes(reader->head.type))
    return 0;
  r = record_unpack(reader, record);
  if (r >= 0 && record->type == LB_TRACE_STREAM)
    r = stream_get(reader, record->stream.number, &stream);
  return r < 0 ? r : 1;
}

/* The file has ended: the end marker must have been seen. */
static int reader_end(struct lb_trace_reader *reader, struct lb_trace_record *record, bool is_whole)
{
  reader->is_over = true;
  if (is_whole)
    return 0;
  return give_gap(record, (struct lb_trace_gap){.stream = LB_TRACE_ALL, .reason = LB_TRACE_CUT});
}

/* There is no chunk where one should be: continues at the next one that can be found. */
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

/* Returns 1 with a record, 0 without, LB_E_DAMAGED if the chunk's contents are damaged, or another error. */
static int chunk_next(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head,
                      struct lb_trace_record *record, bool *ret_again)
{
  int r = chunk_load(reader, offset, head);

  return r < 0 ? r : chunk_open(reader, record, ret_again);
}

/* Whether a sequential reader has to unpack the chunk. */
static bool chunk_is_ours(const struct lb_trace_reader *reader, unsigned type)
{
  return chunk_describes(type) || chunk_has_position(type) || chunk_has_paths(type) ||
         (type == CHUNK_NAMES && reader->names.is_wanted);
}

/* In a damaged file, the index tells how far each stream went. Without it, that is unknown. */
static void index_look(struct lb_trace_reader *reader, uint64_t offset, const struct chunk_head *head)
{
  if (reader->is_damaged && chunk_load(reader, offset, head) >= 0)
    (void)index_ends(reader);
}

/* At the end of a damaged file, finds streams with missing branches. Returns true with the gap of one stream. */
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
    if (!chunk_is_ours(reader, head.type))
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

/* The stream's first chunk in the plan sets its first branch number. */
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

/* Gives the known gaps before the stream's first chunk and after its last one. */
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

  if (r == 0 && reader->names.is_due)
    r = names_ahead(reader, ret_record);
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
  stamps_close(reader);
  reader->skip = 0;
  reader->offset = TRACE_HEAD_SIZE;
  reader->not_taken = 0;
  counts_done(reader);
  reader->is_over = false;
  reader->ended = 0;
  reader->names.is_due = reader->names.is_wanted && reader->version >= TRACE_NAMED;
  reader->names.is_begun = false;
  reader->names.next = 0;
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
  if (version >> 16 > TRACE_VERSION || (version & 0xFFFF) == TRACE_EARLY) /* upper half: the version to support */
    return LB_E_TRACE_VERSION;
  reader->version = (uint16_t)version;
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
  reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not wait for the writer of a pipe */
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
  free(reader->names.at.places);
  free(reader->names.list);
  free(reader);
}
