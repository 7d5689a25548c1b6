/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts of a trace. What a reader counts by itself comes as pieces of paths; branches that it gives one by one are
 * kept by linear addresses, with where the stream was before them. Both are put away by location, as blocks and jumps,
 * before anything else comes to lie at an address, and at the end.
 */
#include "analysis/counts.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/count_table.h"
#include "analysis/extent.h"
#include "base/base.h"

/* Where a stream is. */
struct count_stream {
  uint64_t at; /* 0: not known */
};

struct analysis_counts {
  struct analysis_names *names;
  struct analysis_code *code;
  uint32_t stream; /* wanted, or LB_TRACE_ALL */
  struct count_stream *streams;
  size_t stream_count, stream_capacity;
  struct count_table raw, blocks, jumps;
  bool is_fresh; /* nothing was counted since it was put away */
  struct analysis_block *block_list;
  struct analysis_jump *jump_list;
  size_t block_count, jump_count;
  struct analysis_block *chosen_blocks; /* those that pass a filter; NULL: there is none */
  struct analysis_jump *chosen_jumps;
  size_t chosen_block_count, chosen_jump_count;
  struct analysis_count_totals totals;
};

#define RAW_MAX (1u << 20)
#define TABLE_MAX (1u << 21)

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
  counts->stream = stream;
}

/* ---- blocks and jumps, by location ---- */

/* A straight piece of code, by linear addresses, before it is known where it lies. */
struct piece {
  uint32_t space;
  uint64_t first, last; /* addresses of its first and last instruction */
  uint64_t end;         /* behind the last; 0: not known */
  int8_t kind;          /* of the last; -1: no branch */
};

/* Counts something in a table. One that finds no room is left out, which is told. Returns 0, or -ENOMEM. */
static int table_count(struct analysis_counts *counts, struct count_table *table, const struct count_item *key,
                       uint64_t count, struct count_item **ret_item)
{
  struct count_item *item;

  if (count_table_is_full(table) && !count_table_find(table, key)) {
    if (table->capacity >= TABLE_MAX) {
      counts->totals.has_forgotten = true;
      *ret_item = NULL;
      return 0;
    }
    if (count_table_grow(table) < 0)
      return -ENOMEM;
  }
  item = count_table_get(table, key);
  item->count += count;
  *ret_item = item;
  return 0;
}

static int block_count(struct analysis_counts *counts, const struct piece *piece, uint64_t executed)
{
  struct analysis_location first = analysis_names_locate(counts->names, piece->space, piece->first);
  struct count_item key = {.from = first, .to = {.address = first.address + (piece->last - piece->first)}};
  struct count_item *item;
  int r = table_count(counts, &counts->blocks, &key, executed, &item);

  if (r < 0 || !item || item->is_known)
    return r;
  item->is_known = true;
  item->last = piece->kind;
  item->instructions = analysis_code_count(counts->code, piece->space, piece->first, piece->last);
  item->length = piece->end ? (uint32_t)(piece->end - piece->last) : 0;
  return 0;
}

static int jump_count(struct analysis_counts *counts, const struct analysis_location *from,
                      const struct analysis_location *to, unsigned kind, bool is_passed, uint64_t count)
{
  struct count_item key = {.from = *from, .to = *to, .kind = (int8_t)kind, .is_passed = is_passed};
  struct count_item *item;

  return table_count(counts, &counts->jumps, &key, count, &item);
}

static int jump_count_linear(struct analysis_counts *counts, uint32_t space, uint64_t from, uint64_t to, unsigned kind,
                             bool is_passed, uint64_t count)
{
  struct analysis_location one = analysis_names_locate(counts->names, space, from);
  struct analysis_location other = analysis_names_locate(counts->names, space, to);

  return count ? jump_count(counts, &one, &other, kind, is_passed, count) : 0;
}

/* ---- what the reader counted ---- */

/* The last instruction before an address, of a piece that begins at `first`. Without code, `first`. */
static uint64_t last_before(struct analysis_counts *counts, uint32_t space, uint64_t first, uint64_t end)
{
  struct analysis_location location = analysis_names_locate(counts->names, space, first);
  uint64_t limit = location.address + (end - first), begin = location.address, last;
  struct analysis_instruction jcc;
  enum analysis_stop stop;

  while ((stop = analysis_code_follow(counts->code, &location, limit, &last)) == ANALYSIS_STOP_JCC) {
    location.address = last;
    if (!analysis_code_instruction(counts->code, &location, &jcc) || jcc.length > limit - last)
      return first;
    location.address += jcc.length;
    if (location.address == limit)
      return first + (last - begin);
  }
  return stop == ANALYSIS_STOP_END ? first + (last - begin) : first;
}

static int take_cut(struct analysis_counts *counts, uint32_t space, uint64_t start, uint64_t end, uint64_t executed)
{
  struct piece piece = {.space = space, .first = start, .end = end, .kind = -1};

  if (start >= end)
    return 0;
  piece.last = last_before(counts, space, start, end);
  return block_count(counts, &piece, executed);
}

/* A count of the reader: lb_trace_count_function. */
static int take_count(void *context, const struct lb_trace_count *count)
{
  struct analysis_counts *counts = context;
  struct piece piece = {count->space, count->start, count->from, count->from + count->length, (int8_t)count->kind};
  int r = 0;

  if (count->is_cut)
    return take_cut(counts, count->space, count->start, count->from, count->executed);
  if (count->executed && count->start <= count->from)
    r = block_count(counts, &piece, count->executed);
  if (r >= 0)
    r = jump_count_linear(counts, count->space, count->from, count->to, count->kind, false, count->taken);
  if (r >= 0)
    r = jump_count_linear(counts, count->space, count->from, count->from + count->length, count->kind, true,
                          count->passed);
  return r;
}

/* ---- branches that were given ---- */

/* Is the instruction at `from` not one that ran? */
static bool kind_interrupts(unsigned kind)
{
  switch (kind) {
  case LB_BRANCH_FAULT:
  case LB_BRANCH_TRAP:
  case LB_BRANCH_INTERRUPT:
  case LB_BRANCH_NMI:
  case LB_BRANCH_MACHINE_CHECK:
  case LB_BRANCH_TSX_ABORT:
  case LB_BRANCH_AEX:
  case LB_BRANCH_INIT:
    return true;
  default:
    return false;
  }
}

/* A conditional branch in the middle of a piece was passed: a block ends there. Returns 0, or -ENOMEM. */
static int take_passed(struct analysis_counts *counts, const struct piece *piece, uint64_t count)
{
  int r = block_count(counts, piece, count);

  return r < 0 ? r : jump_count_linear(counts, piece->space, piece->last, piece->end, LB_BRANCH_JCC, true, count);
}

/* Where a walk along straight code is. Addresses are linear; `location` is that of `piece.last`. */
struct straight {
  struct analysis_counts *counts;
  struct analysis_location location;
  struct piece piece;
  uint64_t count;  /* how often it ran */
  unsigned passed; /* conditional branches so far */
  bool is_unknown;
};

#define PASSED_FREE 16u /* conditional branches of a straight piece; those beyond are charged for */
#define PASSED_WORK 64u

static void straight_move(struct straight *walk, uint64_t address)
{
  walk->location.address += address - walk->piece.last;
  walk->piece.last = address;
}

/* The next instruction is a conditional branch, which was not taken. */
static int straight_pass(struct straight *walk, uint64_t from)
{
  struct analysis_instruction instruction;
  struct piece *piece = &walk->piece;
  int r;

  if (!analysis_code_instruction(walk->counts->code, &walk->location, &instruction) ||
      instruction.length > from - piece->last ||
      (++walk->passed > PASSED_FREE && !analysis_code_charge(walk->counts->code, PASSED_WORK))) {
    walk->is_unknown = true;
    return 0;
  }
  piece->end = piece->last + instruction.length;
  piece->kind = LB_BRANCH_JCC;
  r = take_passed(walk->counts, piece, walk->count);
  straight_move(walk, piece->end);
  piece->first = piece->end;
  return r;
}

/* The piece ends with an instruction that was not the branch: something interrupted what ran behind it. */
static int straight_interrupt(struct straight *walk, uint64_t last, uint64_t from)
{
  struct analysis_instruction instruction = {.kind = -1};

  straight_move(walk, last);
  (void)analysis_code_instruction(walk->counts->code, &walk->location, &instruction);
  walk->piece.end = from;
  walk->piece.kind = instruction.kind;
  return block_count(walk->counts, &walk->piece, walk->count);
}

static int straight_finish(struct straight *walk, uint64_t from, unsigned kind)
{
  struct analysis_instruction instruction;
  bool is_known = !walk->is_unknown;

  straight_move(walk, from);
  walk->piece.kind = (int8_t)kind;
  is_known = is_known && analysis_code_instruction(walk->counts->code, &walk->location, &instruction);
  walk->piece.end = is_known ? from + instruction.length : 0;
  return block_count(walk->counts, &walk->piece, walk->count);
}

/* What ran from where the stream was to the branch: blocks, as far as the code is known. */
static int take_straight(struct analysis_counts *counts, uint32_t space, uint64_t start, uint64_t from, unsigned kind,
                         uint64_t count)
{
  struct straight walk = {
    .counts = counts,
    .location = analysis_names_locate(counts->names, space, start),
    .piece = {.space = space, .first = start, .last = start},
    .count = count,
  };
  uint64_t limit = walk.location.address + (from - start);
  bool is_interrupted = kind_interrupts(kind);
  int r = 0;

  while (r >= 0 && walk.piece.last < from && !walk.is_unknown) {
    uint64_t last;
    enum analysis_stop stop = analysis_code_follow(counts->code, &walk.location, limit, &last);

    last = from - (limit - last);
    if (stop == ANALYSIS_STOP_END && is_interrupted)
      return straight_interrupt(&walk, last, from);
    if (stop != ANALYSIS_STOP_JCC) {
      walk.is_unknown = stop == ANALYSIS_STOP_UNKNOWN;
      break;
    }
    straight_move(&walk, last);
    r = straight_pass(&walk, from);
  }
  if (r < 0 || (is_interrupted && walk.piece.last == from))
    return r;
  return straight_finish(&walk, from, kind);
}

#define KIND_STOP (-1) /* as a kind: no branch, the stream stopped there, as a fault does */

/* A branch that was kept by linear addresses. */
static int take_raw(struct analysis_counts *counts, const struct count_item *item)
{
  uint32_t space = item->from.space;
  bool is_stop = item->kind == KIND_STOP;
  unsigned kind = is_stop ? LB_BRANCH_FAULT : (unsigned)item->kind;
  int r = 0;

  if (item->start && item->start <= item->from.address)
    r = take_straight(counts, space, item->start, item->from.address, kind, item->count);
  if (is_stop)
    return r;
  return r < 0 ? r
               : jump_count_linear(counts, space, item->from.address, item->to.address, (unsigned)item->kind, false,
                                   item->count);
}

static int raw_fold(struct analysis_counts *counts)
{
  for (size_t i = 0; i < counts->raw.capacity; i++)
    if (counts->raw.items[i].count && take_raw(counts, &counts->raw.items[i]) < 0)
      return -ENOMEM;
  count_table_clear(&counts->raw);
  return 0;
}

/* Puts away what was counted by linear addresses. */
static int counts_fold(struct analysis_counts *counts, struct lb_trace_reader *reader)
{
  int r = counts->is_fresh ? 0 : lb_trace_reader_counts(reader, take_count, counts);

  counts->is_fresh = true;
  return r < 0 ? r : raw_fold(counts);
}

/* ---- records ---- */

static struct count_stream *stream_at(struct analysis_counts *counts, uint32_t number)
{
  while (number >= counts->stream_count) {
    struct count_stream *streams =
      array_grow(counts->streams, sizeof(*streams), counts->stream_count, &counts->stream_capacity);

    if (!streams)
      return NULL;
    counts->streams = streams;
    streams[counts->stream_count++] = (struct count_stream){0};
  }
  return &counts->streams[number];
}

static int raw_count(struct analysis_counts *counts, const struct count_item *key)
{
  if (count_table_is_full(&counts->raw)) {
    int r = counts->raw.capacity < RAW_MAX ? count_table_grow(&counts->raw) : raw_fold(counts);

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

/* What ran from the last branch up to where the stream stopped. */
static int counts_stop(struct analysis_counts *counts, const struct lb_trace_stop *stop)
{
  struct count_stream *stream = stream_at(counts, stop->stream);
  uint32_t space = analysis_names_space(counts->names, stop->stream);
  struct count_item key = {.from = {ANALYSIS_NO_FILE, space, stop->at}, .kind = KIND_STOP};

  if (!stream)
    return -ENOMEM;
  key.start = stream->at;
  stream->at = 0;
  return key.start ? raw_count(counts, &key) : 0;
}

/* It is not known where the streams are. */
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

/* Lets the names know where functions begin, before anybody asks which function something is in. */
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
  int r = counts_fold(counts, reader);

  count_table_done(&counts->raw);
  if (r >= 0)
    r = blocks_list(counts);
  if (r >= 0)
    r = jumps_list(counts);
  return r < 0 ? r : starts_learn(counts);
}

/* ---- then ---- */

int analysis_counts_filter(struct analysis_counts *counts, struct analysis_filter *filter)
{
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
  *ret_count = counts->block_count;
  return counts->block_list;
}

const struct analysis_jump *analysis_counts_all_jumps(const struct analysis_counts *counts, size_t *ret_count)
{
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
