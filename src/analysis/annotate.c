/* SPDX-License-Identifier: Apache-2.0
 *
 * The rows of a function. Its bytes are decoded from its start. If an executed instruction is not reached that way
 * (data between code, a jump into the middle of an instruction), decoding restarts there: executed code is always
 * shown.
 */
#include "analysis/annotate.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "analysis/annotate_arrows.h"
#include "base/base.h"
#include "symbol/symbol.h"

#define ROWS_MAX (1u << 17)
#define BLOCK_REACH (UINT64_C(15) * ANALYSIS_INSTRUCTIONS_MAX) /* a block is no longer than this */
#define BYTES_MAX (UINT64_C(1) << 22)

struct annotator {
  struct analysis_names *names;
  struct analysis_code *code;
  bool wants_lines;
  struct analysis_location start;
  uint64_t end; /* the end of the function */
  struct analysis_ran *rans;
  size_t ran_count, ran_capacity, ran; /* the first `ran` of these are done */
  const struct analysis_jump *jumps;
  size_t jump_count, jump;
  struct analysis_annotation *annotation;
  size_t capacity;
};

/* ---- executed instructions ---- */

static bool location_is_near(const struct analysis_location *one, const struct analysis_location *other)
{
  return one->file == other->file && one->space == other->space;
}

static bool address_is_inside(const struct annotator *annotator, uint64_t address)
{
  return address >= annotator->start.address && address < annotator->end;
}

static int ran_keep(void *data, const struct analysis_ran *ran)
{
  struct annotator *annotator = data;
  struct analysis_ran *added;

  if (!address_is_inside(annotator, ran->at.address))
    return 0;
  added = array_append(&annotator->rans, &annotator->ran_count, &annotator->ran_capacity);
  if (!added)
    return -ENOMEM;
  *added = *ran;
  return 0;
}

/* The first block that begins at or after this address of the function's file. */
static size_t block_find(const struct annotator *annotator, const struct analysis_block *blocks, size_t count,
                         uint64_t address)
{
  struct analysis_location wanted = annotator->start;
  struct search search = {.end = count};

  wanted.address = address;
  while (search_next(&search))
    search_turn(&search, analysis_location_compare(&blocks[search.at].first, &wanted) < 0);
  return search.first;
}

/* Blocks may begin before the function and extend into it. */
static int rans_read(struct annotator *annotator, const struct analysis_counts *counts)
{
  uint64_t start = annotator->start.address;
  size_t count, first, last, kept = 0;
  const struct analysis_block *blocks = analysis_counts_blocks(counts, &count);
  struct analysis_block *inside;
  int r;

  first = block_find(annotator, blocks, count, start > BLOCK_REACH ? start - BLOCK_REACH : 0);
  last = block_find(annotator, blocks, count, annotator->end);
  inside = calloc(last - first + 1, sizeof(*inside));
  if (!inside)
    return -ENOMEM;
  for (size_t i = first; i < last; i++)
    if (blocks[i].last >= start)
      inside[kept++] = blocks[i];
  r = analysis_blocks_walk(annotator->code, inside, kept, ran_keep, annotator);
  free(inside);
  return r;
}

static void jumps_find(struct annotator *annotator, const struct analysis_counts *counts)
{
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_jumps(counts, &count);
  struct search search = {.end = count};

  while (search_next(&search))
    search_turn(&search, analysis_location_compare(&jumps[search.at].from, &annotator->start) < 0);
  annotator->jumps = jumps + search.first;
  for (size_t i = search.first; i < count && location_is_near(&jumps[i].from, &annotator->start) &&
                                address_is_inside(annotator, jumps[i].from.address);
       i++)
    annotator->jump_count++;
}

/* ---- rows ---- */

/* The next address from `address` on that was executed; the end if there is none. */
static uint64_t anchor_find(struct annotator *annotator, uint64_t address)
{
  uint64_t found = annotator->end;

  while (annotator->ran < annotator->ran_count && annotator->rans[annotator->ran].at.address < address)
    annotator->ran++;
  while (annotator->jump < annotator->jump_count && annotator->jumps[annotator->jump].from.address < address)
    annotator->jump++;
  if (annotator->ran < annotator->ran_count)
    found = annotator->rans[annotator->ran].at.address;
  if (annotator->jump < annotator->jump_count && annotator->jumps[annotator->jump].from.address < found)
    found = annotator->jumps[annotator->jump].from.address;
  return found;
}

/* Whether the branch is made by the instruction itself; events are not. */
static bool kind_is_plain(unsigned kind)
{
  return lb_branch_kind_class(kind) != LB_CLASS_FAR;
}

static void row_set_jumps(struct annotator *annotator, struct analysis_annotated *row)
{
  const struct analysis_jump *jumps = annotator->jumps + annotator->jump;
  size_t left = annotator->jump_count - annotator->jump;

  for (; left && jumps->from.address == row->at.address; jumps++, left--) {
    row->jumps = row->jumps ? row->jumps : jumps;
    row->jump_count++;
    annotator->annotation->is_changed |= row->length && row->kind != (int8_t)jumps->kind && kind_is_plain(jumps->kind);
    row->kind = (int8_t)jumps->kind;
    if (jumps->is_passed)
      row->passed += jumps->count;
    else
      row->taken += jumps->count;
  }
}

static void row_set_source(struct annotator *annotator, struct analysis_annotated *row)
{
  struct symbol_place place;

  if (!annotator->wants_lines || !analysis_names_place(annotator->names, &row->at, &place) || !place.frame_count)
    return;
  row->file = place.frames[0].file;
  row->line = place.frames[0].line;
  row->function = place.frames[0].function;
  row->is_inlined = place.frame_count > 1;
  for (size_t i = 1; i < place.frame_count; i++)
    row->chain = row->chain * 1000003 + place.frames[i].line * 131 + place.frames[i].column;
}

static int row_add(struct annotator *annotator, uint64_t address, const struct analysis_instruction *instruction)
{
  struct analysis_annotation *annotation = annotator->annotation;
  struct analysis_annotated *row = array_append(&annotation->rows, &annotation->row_count, &annotator->capacity);

  if (!row)
    return -ENOMEM;
  *row = (struct analysis_annotated){.at = annotator->start, .length = instruction->length, .kind = instruction->kind};
  row->at.address = address;
  if (annotator->ran < annotator->ran_count && annotator->rans[annotator->ran].at.address == address)
    row->executed = annotator->rans[annotator->ran].executed;
  row_set_jumps(annotator, row);
  if (!row->executed && row->jump_count) { /* the block before it is unknown, but it was executed */
    row->executed = row->taken + row->passed;
    annotation->is_uncounted = true;
  }
  row_set_source(annotator, row);
  return 0;
}

/* If jumps were counted but no instructions, the code ran in another mode, or the bytes are not those that ran: the
 * bytes say nothing. */
static bool code_is_known(const struct annotator *annotator)
{
  return annotator->ran_count || !annotator->jump_count;
}

static int rows_read(struct annotator *annotator)
{
  struct analysis_annotation *annotation = annotator->annotation;
  uint64_t address = annotator->start.address;
  int r = 0;

  while (r >= 0 && address < annotator->end && annotation->row_count < ROWS_MAX) {
    uint64_t anchor = anchor_find(annotator, address), next;
    struct analysis_instruction instruction = {.kind = -1};
    struct analysis_location at = annotator->start;

    at.address = address;
    if (!code_is_known(annotator) || !analysis_code_instruction(annotator->code, &at, &instruction) ||
        !instruction.length)
      annotation->has_unknown = true;
    if (instruction.length || anchor == address)
      r = row_add(annotator, address, &instruction);
    next = anchor_find(annotator, address + 1);
    address = instruction.length && address + instruction.length < next ? address + instruction.length : next;
  }
  annotation->end = address < annotator->end ? address : annotator->end;
  annotation->is_cut |= address < annotator->end;
  return r;
}

/* ---- all of it ---- */

int analysis_annotate(struct analysis_names *names, struct analysis_code *code, const struct analysis_counts *counts,
                      const struct analysis_hot_function *function, bool wants_lines,
                      struct analysis_annotation *ret_annotation)
{
  struct analysis_annotation annotation = {.function = *function};
  struct annotator annotator = {
    .names = names,
    .code = code,
    .wants_lines = wants_lines,
    .start = {.file = function->file, .space = function->space, .address = function->start},
    .end = function->start + function->size,
    .annotation = &annotation,
  };
  int r;

  if (function->size > BYTES_MAX || annotator.end < function->start) {
    annotator.end = function->start + BYTES_MAX < function->start ? UINT64_MAX : function->start + BYTES_MAX;
    annotation.is_cut = true;
  }
  r = rans_read(&annotator, counts);
  if (r >= 0) {
    jumps_find(&annotator, counts);
    r = rows_read(&annotator);
  }
  if (r >= 0)
    r = annotation_draw(&annotation);
  free(annotator.rans);
  if (r < 0)
    analysis_annotation_done(&annotation);
  else
    *ret_annotation = annotation;
  return r;
}

void analysis_annotation_done(struct analysis_annotation *annotation)
{
  free(annotation->rows);
  free(annotation->arrows);
  *annotation = (struct analysis_annotation){0};
}

const struct analysis_jump *analysis_annotated_target(const struct analysis_annotated *row,
                                                      const struct analysis_jump *after)
{
  const struct analysis_jump *best = NULL;

  for (size_t i = 0; i < row->jump_count; i++) {
    const struct analysis_jump *jump = &row->jumps[i];

    if (jump->is_passed || (after && (jump->count > after->count || (jump->count == after->count && jump <= after))))
      continue;
    best = !best || jump->count > best->count ? jump : best;
  }
  return best;
}
