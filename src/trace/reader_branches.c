/* SPDX-License-Identifier: Apache-2.0
 *
 * The branches of the open chunk, given in batches or counted (count.c), and the gaps between chunks of a stream.
 */
#include "trace/reader.h"

#include <errno.h>

#include "lastbranch/error.h"
#include "trace/trace.h"

/* ---- gaps ---- */

int give_gap(struct lb_trace_record *record, struct lb_trace_gap gap)
{
  *record = (struct lb_trace_record){.type = LB_TRACE_GAP, .gap = gap};
  return 1;
}

int give_damage(struct lb_trace_reader *reader, struct lb_trace_record *record, uint64_t offset, uint64_t bytes)
{
  reader->is_damaged = true;
  if (offset + bytes > reader->lost.until) {
    reader->lost.bytes += bytes;
    reader->lost.until = offset + bytes;
  }
  return give_gap(record, (struct lb_trace_gap){.stream = LB_TRACE_ALL, .reason = LB_TRACE_DAMAGED, .bytes = bytes});
}

int give_loss(struct lb_trace_reader *reader, struct lb_trace_record *record, struct lb_trace_gap gap)
{
  struct reader_stream *stream = &reader->streams[gap.stream];

  if (gap.first + gap.count > stream->lost_until) {
    reader->lost.branches += gap.count;
    stream->lost_until = gap.first + gap.count;
  }
  return give_gap(record, gap);
}

/* ---- branches ---- */

/* The rest of an inconsistent chunk is reported as missing, so that the next chunk does not report it again. */
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
  stamps_close(reader);
  return give_loss(reader, record, gap);
}

/* Reports entries whose branches cannot be determined. Valid entries may follow. Nothing is reported before the
 * branches that were asked for. */
static int entries_bad(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  if (reader->skip)
    return 0;
  return give_gap(record, (struct lb_trace_gap){
                            .stream = reader->position.stream, .reason = LB_TRACE_DAMAGED, .first = reader->number});
}

/* The entries have ended: checks that they made the expected number of branches. */
static int entries_finish(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  bool is_right = reader->number == reader->position.first + reader->position.count && !reader->entries->is_excess;

  reader->has_entries = false;
  return is_right ? 0 : branches_damaged(reader, record);
}

/* Fills the batch with branches, like decoder_next. -EBADMSG: see entries_next. */
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

/* Gives the stop of the stream, if the entries have reached one. Returns true with a record. */
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

/* Gives the next batch of the open chunk. Returns 1, 0 if it was not asked for, or negative. */
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
  stamps_cut(reader, &record->branches);
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

/* Gives branches that the walker made, at most as many as the chunk may still have. Returns 0 if it may have none. */
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

/* Like batch_next, for entries that are counted. */
static int count_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  uint64_t branches, at, start;
  int r;

  if (stop_give(reader, record))
    return 1;
  if (reader->entries->decoder.is_fresh && counts_chunk(reader, &branches, &at))
    return counted_give(reader, record, branches, at);
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

int branches_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  int r = 0;

  while (r == 0 && (reader->decoder.left || reader->has_entries || stamps_are_left(reader))) {
    r = stamps_next(reader, record);
    if (r == 0 && reader->has_entries && reader->counts.is_on)
      r = count_next(reader, record);
    else if (r == 0 && (reader->has_entries || reader->decoder.left))
      r = batch_next(reader, record);
  }
  return r;
}

int position_check(struct lb_trace_reader *reader, struct lb_trace_record *record)
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

bool position_is_wanted(const struct lb_trace_reader *reader, uint32_t stream)
{
  const struct reader_counts *counts = &reader->counts;

  return !counts->is_on || counts->stream == LB_TRACE_ALL || counts->stream == stream;
}

int branches_open(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  bool has_entries = reader->head.type == CHUNK_ENTRIES;
  int r;

  if (!position_is_wanted(reader, reader->position.stream)) {
    reader->streams[reader->position.stream].next = reader->position.first + reader->position.count;
    return 0;
  }
  r = has_entries ? entries_open(reader)
                  : decoder_begin(&reader->decoder, reader->raw.bytes, reader->raw.size, reader->position.count);

  if (r >= 0 && has_entries && reader->counts.is_on)
    r = counts_reserve(reader);
  if (r >= 0)
    stamps_open(reader, has_entries ? reader->entries->decoder.stamps : reader->decoder.stamps);
  reader->number = reader->position.first;
  reader->has_entries = has_entries && r >= 0;
  reader->streams[reader->position.stream].next = reader->position.first + reader->position.count;
  return r == LB_E_DAMAGED ? branches_damaged(reader, record) : r;
}

int gap_open(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  struct lb_trace_gap gap;
  int r = gap_unpack(reader, &gap);

  if (r < 0)
    return r;
  reader->streams[gap.stream].next += gap.count;
  return give_gap(record, gap);
}
