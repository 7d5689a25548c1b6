/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores the counts of a trace by location: counts of the reader and branches by linear addresses become blocks of
 * straight code and jumps. The conditional branches that were passed in straight code are found in its instructions.
 */
#include "analysis/counts_inside.h"

#include <errno.h>

#define TABLE_MAX (1u << 21)

/* ---- blocks and jumps, by location ---- */

/* A straight piece of code, by linear addresses, before its location is known. */
struct piece {
  uint32_t space;
  uint64_t first, last; /* addresses of its first and last instruction */
  uint64_t end;         /* its end; 0 if unknown */
  int8_t kind;          /* of the last instruction; -1 if it is no branch */
};

/* Counts an item in a table. An item without room is left out, which is reported. Returns 0, or -ENOMEM. */
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

/* ---- counts of the reader ---- */

/* The last instruction before an address, in a piece that begins at `first`. Returns `first` if the code is unknown. */
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

static int take_taken(struct analysis_counts *counts, const struct lb_trace_count *count)
{
  struct analysis_location from = analysis_names_locate(counts->names, count->space, count->from);
  struct analysis_location to = analysis_names_target(counts->names, count);

  return count->taken ? jump_count(counts, &from, &to, count->kind, false, count->taken) : 0;
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
    r = take_taken(counts, count);
  if (r >= 0)
    r = jump_count_linear(counts, count->space, count->from, count->from + count->length, count->kind, true,
                          count->passed);
  return r;
}

/* ---- single branches ---- */

/* Whether the instruction at `from` was not executed. */
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

/* The state of a walk along straight code. Addresses are linear; `location` is that of `piece.last`. */
struct straight {
  struct analysis_counts *counts;
  struct analysis_location location;
  struct piece piece;
  uint64_t count;  /* number of executions */
  unsigned passed; /* conditional branches so far */
  bool is_unknown;
};

#define PASSED_FREE 16u /* conditional branches of a straight piece; further ones are charged for */
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

/* The piece ends with an instruction that is not the branch: an event came after it. */
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

/* Counts the code from the position of the stream to the branch: blocks, as far as the code is known. */
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

/* Takes a branch that was kept by linear addresses. */
static int take_raw(struct analysis_counts *counts, const struct count_item *item)
{
  uint32_t space = item->from.space;
  bool is_stop = item->kind == COUNTS_KIND_STOP;
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

int counts_fold_raw(struct analysis_counts *counts)
{
  for (size_t i = 0; i < counts->raw.capacity; i++)
    if (counts->raw.items[i].count && take_raw(counts, &counts->raw.items[i]) < 0)
      return -ENOMEM;
  count_table_clear(&counts->raw);
  return 0;
}

int counts_fold(struct analysis_counts *counts, struct lb_trace_reader *reader)
{
  int r = counts->is_fresh ? 0 : lb_trace_reader_counts(reader, take_count, counts);

  counts->is_fresh = true;
  return r < 0 ? r : counts_fold_raw(counts);
}
