/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts of a trace: takes its records, and gives the blocks and jumps at the end. Counts made by the reader arrive as
 * pieces of paths. Branches that the reader gives one by one are kept by linear addresses, together with the position
 * of the stream before them. counts_fold.c stores both by location, before a mapping changes and at the end.
 */
#include "analysis/counts_inside.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "analysis/extent.h"
#include "base/base.h"

#define RAW_MAX (1u << 20)

int analysis_counts_new(struct analysis_names *names, struct analysis_code *code, struct analysis_counts **ret_counts)
{
  struct analysis_counts *counts = calloc(1, sizeof(*counts));

  if (!counts)
    return -ENOMEM;
  counts->names = names;
  counts->code = code;
  counts->stream = LB_TRACE_ALL;
  counts->is_fresh = true;
  *ret_counts = counts;
  return 0;
}

void analysis_counts_free(struct analysis_counts *counts)
{
  if (!counts)
    return;
  free(counts->streams);
  count_table_done(&counts->raw);
  count_table_done(&counts->blocks);
  count_table_done(&counts->jumps);
  free(counts->block_list);
  free(counts->jump_list);
  free(counts->chosen_blocks);
  free(counts->chosen_jumps);
  free(counts);
}

void analysis_counts_stream(struct analysis_counts *counts, uint32_t stream)
{
  assert(!counts->stream_count); /* no branch was counted */
  counts->stream = stream;
}

/* ---- records ---- */

static struct count_stream *stream_at(struct analysis_counts *counts, uint32_t number)
{
  return array_at(&counts->streams, number, &counts->stream_count, &counts->stream_capacity);
}

static int raw_count(struct analysis_counts *counts, const struct count_item *key)
{
  if (count_table_is_full(&counts->raw)) {
    int r = counts->raw.capacity < RAW_MAX ? count_table_grow(&counts->raw) : counts_fold_raw(counts);

    if (r < 0)
      return r;
  }
  count_table_get(&counts->raw, key)->count++;
  return 0;
}

static int counts_branches(struct analysis_counts *counts, const struct lb_trace_branches *branches)
{
  struct count_stream *stream = stream_at(counts, branches->stream);
  uint32_t space = analysis_names_space(counts->names, branches->stream);

  if (!stream)
    return -ENOMEM;
  if (!stream->at)
    stream->at = branches->start;
  for (size_t i = 0; i < branches->count; i++) {
    const struct lb_branch *branch = &branches->branches[i];
    bool is_32 = branch->flags & LB_BRANCH_FROM_32;
    struct count_item key = {
      .from = {ANALYSIS_NO_FILE, space, analysis_from(branch)},
      .to = {ANALYSIS_NO_FILE, space, analysis_to(branch)},
      .start = is_32 ? 0 : stream->at,
      .kind = (int8_t)branch->kind,
    };

    counts->totals.has_unknown_code |= is_32;
    if (raw_count(counts, &key) < 0)
      return -ENOMEM;
    stream->at = branch->flags & LB_BRANCH_TO_32 ? 0 : branch->to;
  }
  return 0;
}

/* Takes the instructions from the last branch to the address where the stream stopped. */
static int counts_stop(struct analysis_counts *counts, const struct lb_trace_stop *stop)
{
  struct count_stream *stream = stream_at(counts, stop->stream);
  uint32_t space = analysis_names_space(counts->names, stop->stream);
  struct count_item key = {.from = {ANALYSIS_NO_FILE, space, stop->at}, .kind = COUNTS_KIND_STOP};

  if (!stream)
    return -ENOMEM;
  key.start = stream->at;
  stream->at = 0;
  return key.start ? raw_count(counts, &key) : 0;
}

/* The positions of the streams become unknown. */
static void streams_lose(struct analysis_counts *counts, uint32_t stream)
{
  for (size_t i = 0; i < counts->stream_count; i++)
    if (stream == LB_TRACE_ALL || stream == i)
      counts->streams[i].at = 0;
}

static bool stream_is_wanted(const struct analysis_counts *counts, uint32_t stream)
{
  return counts->stream == LB_TRACE_ALL || stream == counts->stream || stream == LB_TRACE_ALL;
}

static int counts_counted(struct analysis_counts *counts, const struct lb_trace_counted *counted)
{
  struct count_stream *stream = stream_at(counts, counted->stream);

  if (!stream)
    return -ENOMEM;
  counts->is_fresh = false;
  stream->at = counted->at;
  return 0;
}

int analysis_counts_record(struct analysis_counts *counts, struct lb_trace_reader *reader,
                           const struct lb_trace_record *record)
{
  int r = 0;

  switch (record->type) {
  case LB_TRACE_BRANCHES:
    return stream_is_wanted(counts, record->branches.stream) ? counts_branches(counts, &record->branches) : 0;
  case LB_TRACE_COUNTED:
    return counts_counted(counts, &record->counted);
  case LB_TRACE_STOP:
    return stream_is_wanted(counts, record->stop.stream) ? counts_stop(counts, &record->stop) : 0;
  case LB_TRACE_GAP:
    if (stream_is_wanted(counts, record->gap.stream)) {
      counts->totals.gaps++;
      streams_lose(counts, record->gap.stream);
    }
    return 0;
  default:
    if (analysis_names_displaces(counts->names, record))
      r = counts_fold(counts, reader);
    return r < 0 ? r : analysis_names_record(counts->names, record);
  }
}

/* ---- the end ---- */

static int block_compare(const void *one, const void *other)
{
  const struct analysis_block *a = one, *b = other;
  int r = analysis_location_compare(&a->first, &b->first);

  return r ? r : a->last < b->last ? -1 : a->last > b->last;
}

static int jump_compare(const void *one, const void *other)
{
  const struct analysis_jump *a = one, *b = other;
  int r = analysis_location_compare(&a->from, &b->from);

  if (!r)
    r = analysis_location_compare(&a->to, &b->to);
  if (!r)
    r = (int)a->kind - (int)b->kind;
  return r ? r : (int)a->is_passed - (int)b->is_passed;
}

static int blocks_list(struct analysis_counts *counts)
{
  counts->block_list = calloc(counts->blocks.count + 1, sizeof(*counts->block_list));
  if (!counts->block_list)
    return -ENOMEM;
  for (size_t i = 0; i < counts->blocks.capacity; i++) {
    const struct count_item *item = &counts->blocks.items[i];

    if (!item->count)
      continue;
    counts->block_list[counts->block_count++] = (struct analysis_block){
      .first = item->from,
      .last = item->to.address,
      .end = item->length ? item->to.address + item->length : 0,
      .executed = item->count,
      .instructions = item->instructions,
      .kind = item->last,
    };
    counts->totals.instructions += item->count * item->instructions;
    counts->totals.has_unknown_code |= !item->instructions;
  }
  count_table_done(&counts->blocks);
  qsort(counts->block_list, counts->block_count, sizeof(*counts->block_list), block_compare);
  return 0;
}

static int jumps_list(struct analysis_counts *counts)
{
  counts->jump_list = calloc(counts->jumps.count + 1, sizeof(*counts->jump_list));
  if (!counts->jump_list)
    return -ENOMEM;
  for (size_t i = 0; i < counts->jumps.capacity; i++) {
    const struct count_item *item = &counts->jumps.items[i];

    if (!item->count)
      continue;
    counts->jump_list[counts->jump_count++] = (struct analysis_jump){.from = item->from,
                                                                     .to = item->to,
                                                                     .kind = (uint8_t)item->kind,
                                                                     .is_passed = item->is_passed,
                                                                     .count = item->count};
    *(item->is_passed ? &counts->totals.passed : &counts->totals.taken) += item->count;
  }
  count_table_done(&counts->jumps);
  qsort(counts->jump_list, counts->jump_count, sizeof(*counts->jump_list), jump_compare);
  return 0;
}

/* Passes the starts of functions to the names, before the function of a location is looked up. */
static int starts_learn(struct analysis_counts *counts)
{
  for (size_t i = 0; i < counts->jump_count; i++) {
    const struct analysis_jump *jump = &counts->jump_list[i];

    if (!jump->is_passed && analysis_starts_jump(counts->names, &jump->from, &jump->to, jump->kind) < 0)
      return -ENOMEM;
  }
  return 0;
}

int analysis_counts_end(struct analysis_counts *counts, struct lb_trace_reader *reader)
{
  int r;

  assert(!counts->block_list); /* called once */
  r = counts_fold(counts, reader);
  count_table_done(&counts->raw);
  if (r >= 0)
    r = blocks_list(counts);
  if (r >= 0)
    r = jumps_list(counts);
  return r < 0 ? r : starts_learn(counts);
}

/* ---- results ---- */

int analysis_counts_filter(struct analysis_counts *counts, struct analysis_filter *filter)
{
  assert(counts->block_list && !counts->chosen_blocks); /* after analysis_counts_end, once */
  if (!filter)
    return 0;
  counts->chosen_blocks = calloc(counts->block_count + 1, sizeof(*counts->chosen_blocks));
  counts->chosen_jumps = calloc(counts->jump_count + 1, sizeof(*counts->chosen_jumps));
  if (!counts->chosen_blocks || !counts->chosen_jumps)
    return -ENOMEM;
  for (size_t i = 0; i < counts->block_count; i++)
    if (analysis_filter_block(filter, &counts->block_list[i]))
      counts->chosen_blocks[counts->chosen_block_count++] = counts->block_list[i];
  for (size_t i = 0; i < counts->jump_count; i++)
    if (analysis_filter_jump(filter, &counts->jump_list[i]))
      counts->chosen_jumps[counts->chosen_jump_count++] = counts->jump_list[i];
  return 0;
}

const struct analysis_block *analysis_counts_all_blocks(const struct analysis_counts *counts, size_t *ret_count)
{
  assert(counts->block_list); /* after analysis_counts_end */
  *ret_count = counts->block_count;
  return counts->block_list;
}

const struct analysis_jump *analysis_counts_all_jumps(const struct analysis_counts *counts, size_t *ret_count)
{
  assert(counts->jump_list); /* after analysis_counts_end */
  *ret_count = counts->jump_count;
  return counts->jump_list;
}

const struct analysis_block *analysis_counts_blocks(const struct analysis_counts *counts, size_t *ret_count)
{
  if (!counts->chosen_blocks)
    return analysis_counts_all_blocks(counts, ret_count);
  *ret_count = counts->chosen_block_count;
  return counts->chosen_blocks;
}

const struct analysis_jump *analysis_counts_jumps(const struct analysis_counts *counts, size_t *ret_count)
{
  if (!counts->chosen_jumps)
    return analysis_counts_all_jumps(counts, ret_count);
  *ret_count = counts->chosen_jump_count;
  return counts->chosen_jumps;
}

const struct analysis_count_totals *analysis_counts_totals(const struct analysis_counts *counts)
{
  return &counts->totals;
}
