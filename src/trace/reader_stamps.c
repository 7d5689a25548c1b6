/* SPDX-License-Identifier: Apache-2.0
 *
 * The stamps of the open chunk, and the times of branches between them. Stamps are decoded one at a time, so that their
 * number needs no memory: the one that comes next is known as long as branches before it are given.
 */
#include "trace/reader.h"

#include "lastbranch/error.h"

/* A type of records that the public header does not have: only a reader that was asked for stamps gives it. */
#define TYPE_STAMP ((enum lb_trace_type)(LB_TRACE_STOP + 2))

void trace_reader_want_stamps(struct lb_trace_reader *reader)
{
  reader->stamps.is_wanted = true;
  lb_trace_reader_rewind(reader);
}

const struct trace_stamp *trace_record_stamp(const struct lb_trace_record *record)
{
  return record->type == TYPE_STAMP ? (const struct trace_stamp *)(const void *)record->code.bytes : NULL;
}

/* Decodes the stamp that comes next. One after more branches than the chunk has is damage, too. */
static void next_find(struct lb_trace_reader *reader)
{
  struct reader_stamps *stamps = &reader->stamps;
  int r;

  if (!stamps->has_more || stamps->has_next)
    return;
  r = stamp_decoder_next(&stamps->decoder, &stamps->next);
  stamps->has_more = stamps->has_next = r > 0 && stamps->next.number <= reader->position.count;
  stamps->next.stream = reader->position.stream;
  stamps->next.number += reader->position.first;
}

static void next_pass(struct reader_stamps *stamps)
{
  stamps->before = stamps->next;
  stamps->has_before = true;
  stamps->has_next = false;
}

/* Each chunk repeats the time of the stamp before it. */
static bool is_repeated(const struct lb_trace_reader *reader, const struct trace_stamp *stamp)
{
  return stamp->type == TRACE_STAMP_TIME && stamp->number == reader->position.first && !stamp->has_cpu &&
         !stamp->has_used;
}

void stamps_open(struct lb_trace_reader *reader, struct cursor bytes)
{
  struct reader_stamps *stamps = &reader->stamps;

  stamps_close(reader);
  if (!stamps->is_wanted)
    return;
  stamps->has_more = true;
  stamps->from = reader->position.first + reader->skip;
  stamp_decoder_begin(&stamps->decoder, bytes);
  next_find(reader);
  if (stamps->has_next && is_repeated(reader, &stamps->next)) {
    next_pass(stamps);
    next_find(reader);
  }
}

void stamps_close(struct lb_trace_reader *reader)
{
  struct reader_stamps *stamps = &reader->stamps;

  stamps->has_more = stamps->has_before = stamps->has_next = false;
  stamps->held.count = 0;
}

bool stamps_are_left(const struct lb_trace_reader *reader)
{
  return reader->stamps.has_next || reader->stamps.has_more || reader->stamps.held.count;
}

void stamps_cut(struct lb_trace_reader *reader, struct lb_trace_branches *branches)
{
  struct reader_stamps *stamps = &reader->stamps;
  uint64_t before = stamps->next.number - branches->first;

  if (!stamps->has_next || stamps->next.number <= branches->first || before >= branches->count)
    return;
  stamps->held = *branches;
  stamps->held.first += before;
  stamps->held.branches += before;
  stamps->held.count -= (size_t)before;
  stamps->held.start = 0;
  branches->count = (size_t)before;
}

static int stamp_give(struct reader_stamps *stamps, struct lb_trace_record *record)
{
  record->type = TYPE_STAMP;
  record->code = (struct lb_trace_code){.bytes = (const uint8_t *)&stamps->before};
  return 1;
}

int stamps_next(struct lb_trace_reader *reader, struct lb_trace_record *record)
{
  struct reader_stamps *stamps = &reader->stamps;

  for (;;) {
    bool is_end = !reader->has_entries && !reader->decoder.left && !stamps->held.count;
    uint64_t given = reader->number - stamps->held.count;

    if (given < stamps->from)
      given = stamps->from; /* the branches before it are left out */
    next_find(reader);
    if (!stamps->has_next || (stamps->next.number > given && !is_end))
      break;
    next_pass(stamps);
    if (stamps->before.number >= stamps->from)
      return stamp_give(stamps, record);
  }
  if (!stamps->held.count)
    return 0;
  *record = (struct lb_trace_record){.type = LB_TRACE_BRANCHES, .branches = stamps->held};
  stamps->held.count = 0;
  stamps_cut(reader, &record->branches);
  return 1;
}

/* When the branches before a stamp had been taken: a thread takes none while it waits for the recorder. */
static uint64_t branches_end(const struct trace_stamp *stamp)
{
  uint64_t held = stamp->type == TRACE_STAMP_HELD && stamp->result > 0 ? (uint64_t)stamp->result : 0;

  return held < stamp->time ? stamp->time - held : 0;
}

uint64_t trace_reader_time(const struct lb_trace_reader *reader, uint64_t number)
{
  const struct reader_stamps *stamps = &reader->stamps;
  const struct trace_stamp *before = &stamps->before, *next = &stamps->next;
  uint64_t end = stamps->has_next ? branches_end(next) : 0;
  double all, part;

  if (!stamps->has_before)
    return stamps->has_next ? end : TRACE_NO_TIME;
  if (!stamps->has_next || number <= before->number || end <= before->time)
    return before->time;
  if (number >= next->number)
    return end;
  all = (double)(end - before->time);
  part = all * (double)(number - before->number) / (double)(next->number - before->number);
  return part < all ? before->time + (uint64_t)part : end;
}
