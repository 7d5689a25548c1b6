/* SPDX-License-Identifier: Apache-2.0
 *
 * What a page shows of the counts of a trace: the edges that were taken most, and the code of the functions that ran
 * most, instruction by instruction, with how often each ran. view_source.c has their source.
 */
#include "report/view_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/hot.h"
#include "report/report.h"
#include "symbol/symbol.h"

#define EDGES_MAX 1000u
#define FUNCTIONS_MAX 100u
#define INSTRUCTIONS_MAX 20000u /* of a function: of a longer one, these */
#define LISTED_MAX 1500u        /* of them, in the page */
#define CODE_BYTES (3u << 20)   /* of all functions together: then there are no more */

/* ---- edges ---- */

/* How often the conditional branch at `from` was not taken. */
static uint64_t jump_passed(const struct report_counts *counts, const struct report_location *from)
{
  size_t count, low = 0;
  const struct report_jump *jumps = report_counts_jumps(counts, &count);
  uint64_t passed = 0;

  for (size_t high = count; low < high;) {
    size_t middle = low + (high - low) / 2;

    if (report_location_compare(&jumps[middle].from, from) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < count && report_location_is(&jumps[low].from, from); low++)
    passed += jumps[low].is_passed ? jumps[low].count : 0;
  return passed;
}

static int put_line(struct report_view *view, const struct report_location *location, struct text *text)
{
  struct symbol_place place;
  char *string;
  int r;

  if (!report_names_place(view->options.names, location, &place) || !place.frame_count || !place.frames[0].file ||
      !place.frames[0].line)
    return text_add(text, "null");
  if (asprintf(&string, "%s:%u", place.frames[0].file, place.frames[0].line) < 0)
    return -ENOMEM;
  r = view_quote(text, string);
  free(string);
  return r;
}

static int put_edge(struct report_view *view, const struct report_counts *counts, const struct report_jump *jump,
                    struct text *text)
{
  int r = text_add(text, text->length > 2 ? ",\n[" : "[");

  if (r >= 0)
    r = view_quote_place(text, view->options.names, &jump->from, true);
  if (r >= 0)
    r = text_add(text, ",");
  if (r >= 0)
    r = view_quote_place(text, view->options.names, &jump->to, true);
  if (r >= 0)
    r = text_addf(text, ",\"%s\",%llu,%llu,", lb_branch_kind_name(jump->kind), (unsigned long long)jump->count,
                  (unsigned long long)(jump->kind == LB_BRANCH_JCC ? jump_passed(counts, &jump->from) : 0));
  if (r >= 0)
    r = put_line(view, &jump->from, text);
  return r < 0 ? r : text_add(text, "]");
}

static int put_edges(struct report_view *view, const struct report_counts *counts, struct report_hot *hot)
{
  const struct report_jump *const *edges;
  size_t count, put = 0;
  int r = text_add(&view->edges, "[");

  report_hot_sort(hot, REPORT_HOT_EDGE, REPORT_HOT_BY_COUNT);
  edges = report_hot_edges(hot, &count);
  for (size_t i = 0; i < count && put < EDGES_MAX && r >= 0; i++)
    if (!edges[i]->is_passed) {
      r = put_edge(view, counts, edges[i], &view->edges);
      put++;
    }
  return r < 0 ? r : text_add(&view->edges, "]");
}

/* ---- the instructions of a function ---- */

static int ran_take(void *data, const struct report_ran *ran)
{
  struct view_code *code = data;
  struct view_instruction *list;

  if (code->count >= INSTRUCTIONS_MAX || ran->at.address < code->start || ran->at.address >= code->end)
    return 0;
  list = array_grow(code->list, sizeof(*list), code->count, &code->capacity);
  if (!list)
    return -ENOMEM;
  code->list = list;
  list[code->count++] = (struct view_instruction){.address = ran->at.address, .executed = ran->executed};
  return 0;
}

static size_t block_find(const struct report_block *blocks, size_t count, uint32_t file, uint64_t address)
{
  struct report_location wanted = {.file = file, .address = address};
  size_t low = 0;

  for (size_t high = count; low < high;) {
    size_t middle = low + (high - low) / 2;

    if (report_location_compare(&blocks[middle].first, &wanted) < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* What ran of it. Whoever jumps into a function begins a block there, unless a path was cut before: blocks that begin
 * a little before the function are looked at, too. */
static int code_read_ran(struct report_view *view, const struct report_counts *counts, struct view_code *code)
{
  size_t count, first, last;
  const struct report_block *blocks = report_counts_blocks(counts, &count);

  first = block_find(blocks, count, code->file, code->start > 4096 ? code->start - 4096 : 0);
  last = block_find(blocks, count, code->file, code->end);
  return report_blocks_walk(view->options.code, blocks + first, last - first, ran_take, code);
}

static int instruction_compare(const void *a, const void *b)
{
  const struct view_instruction *one = a, *other = b;

  return one->address < other->address ? -1 : one->address > other->address;
}

/* What did not run of it: whatever lies between. */
static int code_read_rest(struct report_view *view, struct view_code *code)
{
  struct report_location at = {.file = code->file, .address = code->start};
  size_t ran = code->count;

  for (size_t next = 0; at.address < code->end && code->count < INSTRUCTIONS_MAX;) {
    struct report_instruction instruction;
    struct view_instruction *list;

    if (!report_code_instruction(view->options.code, &at, &instruction) || !instruction.length)
      break;
    while (next < ran && code->list[next].address < at.address)
      next++;
    if (next == ran || code->list[next].address != at.address) {
      list = array_grow(code->list, sizeof(*list), code->count, &code->capacity);
      if (!list)
        return -ENOMEM;
      code->list = list;
      list[code->count++] = (struct view_instruction){.address = at.address};
    }
    at.address += instruction.length;
  }
  if (code->count)
    qsort(code->list, code->count, sizeof(*code->list), instruction_compare);
  return 0;
}

/* ---- as JSON ---- */

static int put_instruction(struct report_view *view, const struct view_code *code, size_t number, struct text *text)
{
  struct report_location at = {.file = code->file, .address = code->list[number].address};
  char words[160] = "";
  int r;

  if (!report_code_text(view->options.code, &at, words, sizeof(words)))
    words[0] = 0;
  r = text_addf(text, "%s[%llu,%llu,", text->data[text->length - 1] == '[' ? "" : ",",
                (unsigned long long)(at.address - code->start), (unsigned long long)code->list[number].executed);
  if (r >= 0)
    r = view_quote(text, words);
  return r < 0 ? r : text_addf(text, ",%u]", code->list[number].line);
}

static int put_instructions(struct report_view *view, const struct view_code *code, struct text *text)
{
  bool is_long = code->count > LISTED_MAX; /* what ran is more important then */
  size_t put = 0;
  int r = text_add(text, "\"instructions\":[");

  for (size_t i = 0; i < code->count && put < LISTED_MAX && r >= 0; i++)
    if (!is_long || code->list[i].executed) {
      r = put_instruction(view, code, i, text);
      put++;
    }
  return r < 0 ? r : text_addf(text, "],\"cut\":%s", is_long ? "true" : "false");
}

static int put_code(struct report_view *view, const struct report_hot_function *function, struct view_code *code,
                    struct text *text)
{
  int r = text_addf(text, "%s{\"file\":%u,\"start\":%llu,\"ran\":%llu,\"name\":", text->length > 2 ? ",\n" : "",
                    code->file, (unsigned long long)code->start, (unsigned long long)function->instructions);

  if (r >= 0)
    r = view_quote(text, function->symbol);
  if (r >= 0)
    r = text_add(text, ",\"module\":");
  if (r >= 0)
    r = view_quote(text, function->module ? function->module : "");
  if (r >= 0)
    r = text_add(text, ",");
  if (r >= 0)
    r = view_source_put(view, code, text);
  if (r >= 0)
    r = put_instructions(view, code, text);
  return r < 0 ? r : text_add(text, "}");
}

static int put_function(struct report_view *view, const struct report_counts *counts,
                        const struct report_hot_function *function)
{
  struct view_code code = {.file = function->file, .start = function->start, .end = function->start + function->size};
  int r = code_read_ran(view, counts, &code);

  if (r >= 0)
    r = code_read_rest(view, &code);
  if (r >= 0 && code.count)
    r = put_code(view, function, &code, &view->code);
  free(code.list);
  return r;
}

static int put_functions(struct report_view *view, const struct report_counts *counts, struct report_hot *hot)
{
  const struct report_hot_function *functions;
  size_t count, put = 0;
  int r = text_add(&view->code, "[");

  report_hot_sort(hot, REPORT_HOT_FUNCTION, REPORT_HOT_BY_INSTRUCTIONS);
  functions = report_hot_functions(hot, &count);
  for (size_t i = 0; i < count && put < FUNCTIONS_MAX && view->code.length < CODE_BYTES && r >= 0; i++)
    if (functions[i].symbol && functions[i].size && functions[i].instructions) {
      r = put_function(view, counts, &functions[i]);
      put++;
    }
  return r < 0 ? r : text_add(&view->code, "]");
}

/* ---- the whole ---- */

static int put_totals(struct report_view *view, const struct report_counts *counts)
{
  const struct report_count_totals *totals = report_counts_totals(counts);

  return text_addf(
    &view->totals, "{\"taken\":%llu,\"passed\":%llu,\"instructions\":%llu,\"unknown\":%s,\"forgotten\":%s}",
    (unsigned long long)totals->taken, (unsigned long long)totals->passed, (unsigned long long)totals->instructions,
    totals->has_unknown_code ? "true" : "false", totals->has_forgotten ? "true" : "false");
}

int report_view_counts(struct report_view *view, const struct report_counts *counts)
{
  struct report_hot *hot = NULL;
  int r = put_totals(view, counts);

  if (r >= 0)
    r = report_hot_new(view->options.names, view->options.code, counts, &(struct report_hot_filter){0}, &hot);
  if (r >= 0)
    r = put_edges(view, counts, hot);
  if (r >= 0 && view->options.code)
    r = put_functions(view, counts, hot);
  report_hot_free(hot);
  return r;
}
