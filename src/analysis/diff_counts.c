/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions whose exact counts differ most between two traces. The traces are counted one after the other, so that
 * only the counts of one are in memory; one row for each function is kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_inside.h"
#include "base/base.h"

#define FUNCTIONS_MAX (1u << 20)

/* ---- rows ---- */

static bool string_is(const char *one, const char *other)
{
  return one && other ? !strcmp(one, other) : one == other;
}

static uint32_t row_find(const struct diff_counts *rows, uint64_t hash, const char *symbol, const char *module)
{
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&rows->index, hash, &at)) != HASH_NONE;)
    if (string_is(rows->rows[number].symbol, symbol) && string_is(rows->rows[number].module, module))
      break;
  return number;
}

static char *string_copy(const char *string, bool *has_failed)
{
  char *copy = string ? strdup(string) : NULL;

  *has_failed |= string && !copy;
  return copy;
}

/* Returns 0, or -ENOMEM. */
static int row_add(struct diff_counts *rows, uint64_t hash, const char *symbol, const char *module)
{
  struct diff_count_row *added = array_append(&rows->rows, &rows->count, &rows->capacity);
  bool has_failed = false;

  if (!added)
    return -ENOMEM;
  *added =
    (struct diff_count_row){.symbol = string_copy(symbol, &has_failed), .module = string_copy(module, &has_failed)};
  return has_failed ? -ENOMEM : hash_index_add(&rows->index, hash, rows->count - 1);
}

int diff_counts_row(struct diff_counts *rows, const char *symbol, const char *module, struct diff_count_row **ret_row)
{
  uint64_t hash = hash_mix_string(hash_mix_string(hash_start(0), symbol), module);
  uint32_t number = row_find(rows, hash, symbol, module);

  *ret_row = NULL;
  if (number == HASH_NONE && rows->count >= FUNCTIONS_MAX)
    return 0;
  if (number == HASH_NONE) {
    number = (uint32_t)rows->count;
    if (row_add(rows, hash, symbol, module) < 0)
      return -ENOMEM;
  }
  *ret_row = &rows->rows[number];
  return 0;
}

void diff_counts_done(struct diff_counts *rows)
{
  for (size_t i = 0; i < rows->count; i++) {
    free(rows->rows[i].symbol);
    free(rows->rows[i].module);
  }
  free(rows->rows);
  hash_index_done(&rows->index);
}

/* ---- counting ---- */

/* The row of the function at a location. */
static int row_at(struct diff_counts *rows, struct analysis_names *names, const struct analysis_location *location,
                  struct analysis_name *ret_name, struct diff_count_row **ret_row)
{
  if (!analysis_names_symbol(names, location, ret_name))
    *ret_name = (struct analysis_name){0};
  return diff_counts_row(rows, ret_name->symbol, ret_name->module, ret_row);
}

static int rows_add_blocks(struct diff_counts *rows, struct analysis_names *names, const struct analysis_counts *counts,
                           unsigned side)
{
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(counts, &count);

  for (size_t i = 0; i < count; i++) {
    struct analysis_name name;
    struct diff_count_row *row;
    int r = row_at(rows, names, &blocks[i].first, &name, &row);

    if (r < 0)
      return r;
    if (row)
      row->instructions[side] += blocks[i].executed * blocks[i].instructions;
  }
  return 0;
}

static bool kind_is_call(unsigned kind)
{
  return kind == LB_BRANCH_NEAR_REL_CALL || kind == LB_BRANCH_NEAR_IND_CALL || kind == LB_BRANCH_FAR_CALL;
}

/* A call enters a function, and so does a jump to its start from another one. */
static int rows_add_jumps(struct diff_counts *rows, struct analysis_names *names, const struct analysis_counts *counts,
                          unsigned side)
{
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_jumps(counts, &count);

  for (size_t i = 0; i < count; i++) {
    struct analysis_name from, to;
    struct diff_count_row *row;
    int r = jumps[i].is_passed ? 1 : row_at(rows, names, &jumps[i].from, &from, &row);

    if (r > 0)
      continue;
    if (r >= 0 && row)
      row->branches[side] += jumps[i].count;
    if (r >= 0)
      r = row_at(rows, names, &jumps[i].to, &to, &row);
    if (r < 0)
      return r;
    if (row && (kind_is_call(jumps[i].kind) ||
                (to.symbol && to.offset == 0 && (from.file != to.file || from.start != to.start))))
      row->entered[side] += jumps[i].count;
  }
  return 0;
}

static int trace_count(struct diff_side *side, struct analysis_counts *counts, uint32_t stream)
{
  struct trace_progress progress;
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r;

  trace_progress_begin(&progress, side->input.reader);
  analysis_counts_stream(counts, stream);
  lb_trace_reader_count(side->input.reader, stream);
  while ((r = trace_input_next(&side->input, &record)) > 0) {
    r = analysis_counts_record(counts, side->input.reader, &record);
    if (r < 0)
      break;
    if (record.type == LB_TRACE_COUNTED || record.type == LB_TRACE_BRANCHES)
      branches += record.type == LB_TRACE_COUNTED ? record.counted.count : record.branches.count;
    trace_progress_show(&progress, branches);
  }
  trace_progress_end(&progress);
  return r < 0 ? r : analysis_counts_end(counts, side->input.reader);
}

static int side_count(struct diff_side *side, const struct diff_options *options, unsigned number,
                      struct diff_counts *rows)
{
  struct analysis_names *names = NULL;
  struct analysis_code *code = NULL;
  struct analysis_counts *counts = NULL;
  int r = analysis_names_new(options->has_symbols ? &side->input.files : NULL, &names);

  if (r >= 0 && options->is_mangled)
    analysis_names_keep_mangled(names);
  if (r >= 0)
    r = analysis_code_new(names, &code);
  if (r >= 0)
    r = analysis_counts_new(names, code, &counts);
  if (r >= 0)
    r = trace_count(side, counts, options->streams[number]);
  if (r >= 0)
    r = rows_add_blocks(rows, names, counts, number);
  if (r >= 0)
    r = rows_add_jumps(rows, names, counts, number);
  if (r >= 0)
    rows->totals[number] = *analysis_counts_totals(counts);
  else
    message("%s: %s", side->input.name, lb_strerror(r));
  rows->is_limited[number] = code && analysis_code_is_exhausted(code);
  trace_input_tell_limit(&side->input, code);
  analysis_counts_free(counts);
  analysis_code_free(code);
  analysis_names_free(names);
  return r;
}

/* ---- order ---- */

static uint64_t difference(const uint64_t counts[2])
{
  return diff_difference(counts[0], counts[1]);
}

int diff_count_row_compare(const struct diff_count_row *one, const struct diff_count_row *other)
{
  int r =
    one->symbol && other->symbol ? strcmp(one->symbol, other->symbol) : (one->symbol != NULL) - (other->symbol != NULL);

  if (r)
    return r;
  return one->module && other->module ? strcmp(one->module, other->module)
                                      : (one->module != NULL) - (other->module != NULL);
}

/* Sorts by instructions, or by branches if these are unknown. */
static int rows_compare(const void *one, const void *other)
{
  const struct diff_count_row *a = one, *b = other;
  uint64_t mine = difference(a->instructions), yours = difference(b->instructions);

  if (mine == yours) {
    mine = difference(a->branches) + difference(a->entered);
    yours = difference(b->branches) + difference(b->entered);
  }
  if (mine != yours)
    return mine > yours ? -1 : 1;
  return diff_count_row_compare(a, b);
}

bool diff_count_row_differs(const struct diff_count_row *row)
{
  return difference(row->instructions) || difference(row->branches) || difference(row->entered);
}

int diff_counts_make(struct diff_side sides[2], const struct diff_options *options, struct diff_counts *ret_counts)
{
  int r = 0;

  *ret_counts = (struct diff_counts){0};
  for (unsigned i = 0; i < 2 && r >= 0; i++)
    r = side_count(&sides[i], options, i, ret_counts);
  if (r >= 0 && ret_counts->count)
    qsort(ret_counts->rows, ret_counts->count, sizeof(*ret_counts->rows), rows_compare);
  return r < 0 ? r : 0;
}
