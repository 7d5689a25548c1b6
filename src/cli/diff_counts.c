/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions whose exact counts differ most between two traces. The traces are counted one after the other, so that
 * the counts of one of them at a time are in memory; of functions, a row each stays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/diff_side.h"

#define FUNCTIONS_MAX (1u << 20)

struct count_row {
  char *symbol, *module; /* NULL: none */
  uint64_t hash;
  uint64_t instructions[2], branches[2], entered[2];
};

struct count_rows {
  struct count_row *rows;
  size_t count, capacity;
  uint32_t *places; /* a hash: numbers + 1 */
  size_t place_count;
  bool is_full;
};

/* ---- rows ---- */

static uint64_t hash_string(uint64_t hash, const char *string)
{
  for (; string && *string; string++)
    hash = (hash ^ (uint8_t)*string) * UINT64_C(0x100000001B3);
  return (hash ^ hash >> 29) * UINT64_C(0x9E3779B97F4A7C15);
}

static bool string_is(const char *one, const char *other)
{
  return one && other ? !strcmp(one, other) : one == other;
}

static uint32_t *row_place(const struct count_rows *rows, uint64_t hash, const char *symbol, const char *module)
{
  size_t i = (size_t)(hash >> 24) & (rows->place_count - 1);

  for (; rows->places[i]; i = (i + 1) & (rows->place_count - 1)) {
    const struct count_row *row = &rows->rows[rows->places[i] - 1];

    if (row->hash == hash && string_is(row->symbol, symbol) && string_is(row->module, module))
      break;
  }
  return &rows->places[i];
}

static int rows_rehash(struct count_rows *rows)
{
  size_t count = rows->place_count ? 2 * rows->place_count : 1024;
  uint32_t *places = calloc(count, sizeof(*places));

  if (!places)
    return -ENOMEM;
  free(rows->places);
  rows->places = places;
  rows->place_count = count;
  for (size_t i = 0; i < rows->count; i++)
    *row_place(rows, rows->rows[i].hash, rows->rows[i].symbol, rows->rows[i].module) = (uint32_t)i + 1;
  return 0;
}

static char *string_copy(const char *string, bool *has_failed)
{
  char *copy = string ? strdup(string) : NULL;

  *has_failed |= string && !copy;
  return copy;
}

/* Returns NULL without memory. */
static struct count_row *row_add(struct count_rows *rows, uint64_t hash, const char *symbol, const char *module)
{
  struct count_row *grown = array_grow(rows->rows, sizeof(*grown), rows->count, &rows->capacity);
  bool has_failed = !grown;

  if (!grown)
    return NULL;
  rows->rows = grown;
  grown[rows->count] = (struct count_row){
    .symbol = string_copy(symbol, &has_failed), .module = string_copy(module, &has_failed), .hash = hash};
  if (has_failed) {
    free(grown[rows->count].symbol);
    free(grown[rows->count].module);
    return NULL;
  }
  return &grown[rows->count++];
}

/* The row of a function. Returns 0 with NULL when there are too many, or -ENOMEM. */
static int row_get(struct count_rows *rows, const char *symbol, const char *module, struct count_row **ret_row)
{
  uint64_t hash = hash_string(hash_string(UINT64_C(0xCBF29CE484222325), symbol), module);
  uint32_t *place;

  if (2 * (rows->count + 1) > rows->place_count && rows_rehash(rows) < 0)
    return -ENOMEM;
  place = row_place(rows, hash, symbol, module);
  *ret_row = NULL;
  if (!*place && rows->count >= FUNCTIONS_MAX) {
    rows->is_full = true;
    return 0;
  }
  if (!*place && !row_add(rows, hash, symbol, module))
    return -ENOMEM;
  if (!*place)
    *place = (uint32_t)rows->count;
  *ret_row = &rows->rows[*place - 1];
  return 0;
}

static void rows_done(struct count_rows *rows)
{
  for (size_t i = 0; i < rows->count; i++) {
    free(rows->rows[i].symbol);
    free(rows->rows[i].module);
  }
  free(rows->rows);
  free(rows->places);
}

/* ---- counting ---- */

/* The function at a location. */
static int row_at(struct count_rows *rows, struct report_names *names, const struct report_location *location,
                  struct report_name *ret_name, struct count_row **ret_row)
{
  if (!report_names_symbol(names, location, ret_name))
    *ret_name = (struct report_name){0};
  return row_get(rows, ret_name->symbol, ret_name->module, ret_row);
}

static int rows_add_blocks(struct count_rows *rows, struct report_names *names, const struct report_counts *counts,
                           unsigned side)
{
  size_t count;
  const struct report_block *blocks = report_counts_blocks(counts, &count);

  for (size_t i = 0; i < count; i++) {
    struct report_name name;
    struct count_row *row;
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
static int rows_add_jumps(struct count_rows *rows, struct report_names *names, const struct report_counts *counts,
                          unsigned side)
{
  size_t count;
  const struct report_jump *jumps = report_counts_jumps(counts, &count);

  for (size_t i = 0; i < count; i++) {
    struct report_name from, to;
    struct count_row *row;
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

static int trace_count(struct diff_side *side, struct report_counts *counts, uint32_t stream)
{
  struct trace_progress progress;
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r;

  trace_progress_begin(&progress, side->input.reader);
  report_counts_stream(counts, stream);
  lb_trace_reader_count(side->input.reader, stream);
  while ((r = trace_input_next(&side->input, &record)) > 0) {
    r = report_counts_record(counts, side->input.reader, &record);
    if (r < 0)
      break;
    if (record.type == LB_TRACE_COUNTED || record.type == LB_TRACE_BRANCHES)
      branches += record.type == LB_TRACE_COUNTED ? record.counted.count : record.branches.count;
    trace_progress_show(&progress, branches);
  }
  trace_progress_end(&progress);
  return r < 0 ? r : report_counts_end(counts, side->input.reader);
}

static int side_count(struct diff_side *side, const struct diff_arguments *arguments, unsigned number,
                      struct count_rows *rows, struct report_count_totals *ret_totals)
{
  struct report_names *names = NULL;
  struct report_code *code = NULL;
  struct report_counts *counts = NULL;
  int r = report_names_new(arguments->has_symbols ? &side->input.files : NULL, &names);

  if (r >= 0 && arguments->is_mangled)
    report_names_keep_mangled(names);
  if (r >= 0)
    r = report_code_new(names, &code);
  if (r >= 0)
    r = report_counts_new(names, code, &counts);
  if (r >= 0)
    r = trace_count(side, counts, arguments->streams[number]);
  if (r >= 0)
    r = rows_add_blocks(rows, names, counts, number);
  if (r >= 0)
    r = rows_add_jumps(rows, names, counts, number);
  if (r >= 0)
    *ret_totals = *report_counts_totals(counts);
  else
    cli_error("%s: %s", side->input.name, lb_strerror(r));
  report_counts_free(counts);
  report_code_free(code);
  report_names_free(names);
  return r;
}

/* ---- what is printed ---- */

static uint64_t difference(const uint64_t counts[2])
{
  return counts[0] > counts[1] ? counts[0] - counts[1] : counts[1] - counts[0];
}

/* By instructions; where these are not known, by branches. */
static int rows_compare(const void *one, const void *other)
{
  const struct count_row *a = one, *b = other;
  uint64_t mine = difference(a->instructions), yours = difference(b->instructions);
  int r;

  if (mine == yours) {
    mine = difference(a->branches) + difference(a->entered);
    yours = difference(b->branches) + difference(b->entered);
  }
  if (mine != yours)
    return mine > yours ? -1 : 1;
  r = a->symbol && b->symbol ? strcmp(a->symbol, b->symbol) : (a->symbol != NULL) - (b->symbol != NULL);
  return r ? r : a->module && b->module ? strcmp(a->module, b->module) : (a->module != NULL) - (b->module != NULL);
}

static bool row_differs(const struct count_row *row)
{
  return difference(row->instructions) || difference(row->branches) || difference(row->entered);
}

static void put_row(struct page *page, const struct count_row *row)
{
  page_row(page, false);
  page_put_count(page, "instructions_a", row->instructions[0]);
  page_put_count(page, "instructions_b", row->instructions[1]);
  page_put_count(page, "branches_a", row->branches[0]);
  page_put_count(page, "branches_b", row->branches[1]);
  page_put_count(page, "entered_a", row->entered[0]);
  page_put_count(page, "entered_b", row->entered[1]);
  if (page->is_json) {
    page_put(page, "function", row->symbol);
    page_put(page, "module", row->module);
  } else if (row->symbol) {
    page_put(page, "function", row->symbol);
  } else {
    page_putf(page, "function", "[%s]", row->module ? row->module : "no file");
  }
  page_row_end(page);
}

static void put_rows(struct page *page, struct count_rows *rows, uint32_t top)
{
  static const struct page_column columns[] = {{"instructions A", 15}, {"B", 15}, {"branches A", 12}, {"B", 12},
                                               {"entered A", 10},      {"B", 10}, {"function", 0},    {NULL, 0}};

  if (rows->count)
    qsort(rows->rows, rows->count, sizeof(*rows->rows), rows_compare);
  page_heading(page, "Functions whose counts changed most");
  page_table(page, "functions", columns);
  for (size_t i = 0; i < rows->count && i < top && row_differs(&rows->rows[i]); i++)
    put_row(page, &rows->rows[i]);
  page_table_end(page);
}

static void put_totals(struct page *page, const struct report_count_totals totals[2])
{
  page_put_count(page, "instructions_a", totals[0].instructions);
  page_put_count(page, "instructions_b", totals[1].instructions);
  page_put_count(page, "branches_a", totals[0].taken);
  page_put_count(page, "branches_b", totals[1].taken);
  if (page->is_json)
    page_put_flag(page, "has_unknown_code", totals[0].has_unknown_code || totals[1].has_unknown_code);
  else if (totals[0].has_unknown_code || totals[1].has_unknown_code)
    page_remark(page, "the code of some places is not known: instructions are too few");
}

int diff_counts(struct diff_side sides[2], const struct diff_arguments *arguments, struct page *page)
{
  struct report_count_totals totals[2] = {{0}, {0}};
  struct count_rows rows = {0};
  int r = side_count(&sides[0], arguments, 0, &rows, &totals[0]);

  if (r >= 0)
    r = side_count(&sides[1], arguments, 1, &rows, &totals[1]);
  if (r >= 0) {
    page_section(page, "counts", "Counts");
    put_totals(page, totals);
    put_rows(page, &rows, arguments->top);
    page_section_end(page);
  }
  rows_done(&rows);
  return r;
}
