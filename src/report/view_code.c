/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of a page that comes from the counts of a trace: the edges taken most, and the code of the functions that
 * ran most, instruction by instruction, with execution counts. view_source.c has their source.
 */
#include "report/view_code.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "report/report.h"
#include "symbol/symbol.h"

#define EDGES_MAX 1000u
#define FUNCTIONS_MAX 100u
#define INSTRUCTIONS_MAX 20000u /* of a function; the rest of a longer one is left out */
#define LISTED_MAX 1500u        /* of those, in the page */
#define TARGETS_SHOWN 3u        /* of a branch with several */
#define CODE_BYTES (3u << 20)   /* of all functions together: further ones are left out */

/* ---- edges ---- */

/* How often the conditional branch at `from` was not taken. */
static uint64_t jump_passed(const struct analysis_counts *counts, const struct analysis_location *from)
{
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_jumps(counts, &count);
  struct search search = {.end = count};
  uint64_t passed = 0;

  while (search_next(&search))
    search_turn(&search, analysis_location_compare(&jumps[search.at].from, from) < 0);
  for (size_t i = search.first; i < count && analysis_location_is(&jumps[i].from, from); i++)
    passed += jumps[i].is_passed ? jumps[i].count : 0;
  return passed;
}

static int put_line(struct report_view *view, const struct analysis_location *location, struct text *text)
{
  struct symbol_place place;
  char *string;
  int r;

  if (!analysis_names_place(view->options.names, location, &place) || !place.frame_count || !place.frames[0].file ||
      !place.frames[0].line)
    return text_add(text, "null");
  if (asprintf(&string, "%s:%u", place.frames[0].file, place.frames[0].line) < 0)
    return -ENOMEM;
  r = view_quote(text, string);
  free(string);
  return r;
}

static int put_edge(struct report_view *view, const struct analysis_counts *counts, const struct analysis_jump *jump,
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

static int put_edges(struct report_view *view, const struct analysis_counts *counts, struct analysis_hot *hot)
{
  const struct analysis_jump *const *edges;
  size_t count, put = 0;
  int r = text_add(&view->edges, "[");

  analysis_hot_sort(hot, ANALYSIS_HOT_EDGE, ANALYSIS_HOT_BY_COUNT);
  edges = analysis_hot_edges(hot, &count);
  for (size_t i = 0; i < count && put < EDGES_MAX && r >= 0; i++)
    if (!edges[i]->is_passed) {
      r = put_edge(view, counts, edges[i], &view->edges);
      put++;
    }
  return r < 0 ? r : text_add(&view->edges, "]");
}

/* ---- the instructions of a function, as JSON ---- */

/* The targets of a branch, most frequent first, and how many more there are. */
static int put_targets(struct report_view *view, const struct analysis_annotated *row, struct text *text)
{
  const struct analysis_jump *jump = row->kind == LB_BRANCH_JCC ? NULL : analysis_annotated_target(row, NULL);
  size_t shown = 0;
  int r = text_add(text, "[");

  for (; jump && shown < TARGETS_SHOWN && r >= 0; jump = analysis_annotated_target(row, jump), shown++) {
    r = text_add(text, shown ? ",[" : "[");
    if (r >= 0)
      r = view_quote_place(text, view->options.names, &jump->to, true);
    if (r >= 0)
      r = text_addf(text, ",%llu]", (unsigned long long)jump->count);
  }
  return r < 0 ? r : text_addf(text, "],%zu", row->jump_count > shown ? row->jump_count - shown : 0);
}

/* [is conditional, taken, not taken, targets, more targets] */
static int put_branch(struct report_view *view, const struct analysis_annotated *row, struct text *text)
{
  int r;

  if (row->kind < 0 || !row->jump_count)
    return 0;
  r = text_addf(text, ",[%d,%llu,%llu,", row->kind == LB_BRANCH_JCC, (unsigned long long)row->taken,
                (unsigned long long)row->passed);
  if (r >= 0)
    r = put_targets(view, row, text);
  return r < 0 ? r : text_add(text, "]");
}

static int put_instruction(struct report_view *view, const struct analysis_annotated *row, uint64_t start,
                           uint32_t line, struct text *text)
{
  char words[160] = "";
  int r;

  if (!row->length || !analysis_code_text(view->options.code, &row->at, words, sizeof(words)))
    words[0] = 0;
  r = text_addf(text, "%s[%llu,%llu,", text->data[text->length - 1] == '[' ? "" : ",",
                (unsigned long long)(row->at.address - start), (unsigned long long)row->executed);
  if (r >= 0)
    r = view_quote(text, words);
  if (r >= 0)
    r = text_addf(text, ",%u", line);
  if (r >= 0)
    r = put_branch(view, row, text);
  return r < 0 ? r : text_add(text, "]");
}

/* In a long function, only executed instructions are listed. */
static bool is_listed(const struct view_code *code, const struct analysis_annotation *annotation, size_t row)
{
  return code->count <= LISTED_MAX || annotation->rows[row].executed || annotation->rows[row].jump_count;
}

static int put_instructions(struct report_view *view, const struct view_code *code,
                            const struct analysis_annotation *annotation, struct text *text)
{
  size_t put = 0;
  int r = text_add(text, "\"instructions\":[");

  for (size_t i = 0; i < code->count && put < LISTED_MAX && r >= 0; i++)
    if (is_listed(code, annotation, i)) {
      code->list[i].number = (uint32_t)++put;
      r = put_instruction(view, &annotation->rows[i], code->start, code->list[i].line, text);
    }
  return r < 0 ? r : text_addf(text, "],\"cut\":%s,", code->count > LISTED_MAX ? "true" : "false");
}

/* [from, to, branches, lane] of instructions that are listed */
static int put_arrows(const struct view_code *code, const struct analysis_annotation *annotation, struct text *text)
{
  int r = text_addf(text, "\"lanes\":%u,\"arrows\":[", annotation->lanes);

  for (size_t i = 0; i < annotation->arrow_count && r >= 0; i++) {
    const struct analysis_arrow *arrow = &annotation->arrows[i];

    if (arrow->from < code->count && arrow->to < code->count && code->list[arrow->from].number &&
        code->list[arrow->to].number)
      r = text_addf(text, "%s[%u,%u,%llu,%u]", text->data[text->length - 1] == '[' ? "" : ",",
                    code->list[arrow->from].number - 1, code->list[arrow->to].number - 1,
                    (unsigned long long)arrow->count, arrow->lane);
  }
  return r < 0 ? r : text_add(text, "]");
}

static int put_name(const struct analysis_hot_function *function, struct text *text)
{
  struct text name = {0};
  int r = function->symbol ? text_add(&name, function->symbol)
                           : analysis_extent_name(&name, function->module, function->start, function->source);

  if (r >= 0)
    r = view_quote(text, text_string(&name));
  text_done(&name);
  return r;
}

static int put_code(struct report_view *view, const struct analysis_annotation *annotation, struct view_code *code,
                    struct text *text)
{
  const struct analysis_hot_function *function = &annotation->function;
  int r = text_addf(text, "%s{\"file\":%u,\"start\":%llu,\"ran\":%llu,\"name\":", text->length > 2 ? ",\n" : "",
                    code->file, (unsigned long long)code->start, (unsigned long long)function->instructions);

  if (r >= 0)
    r = put_name(function, text);
  if (r >= 0)
    r = text_add(text, ",\"module\":");
  if (r >= 0)
    r = view_quote(text, function->module ? function->module : "");
  if (r >= 0)
    r = text_add(text, ",");
  if (r >= 0)
    r = view_source_put(view, code, text);
  if (r >= 0)
    r = put_instructions(view, code, annotation, text);
  if (r >= 0)
    r = put_arrows(code, annotation, text);
  return r < 0 ? r : text_add(text, "}");
}

static int put_function(struct report_view *view, const struct analysis_counts *counts,
                        const struct analysis_hot_function *function)
{
  struct view_code code = {.file = function->file, .start = function->start};
  struct analysis_annotation annotation = {0};
  int r = analysis_annotate(view->options.names, view->options.code, counts, function, false, &annotation);

  if (r < 0)
    return r;
  code.count = annotation.row_count < INSTRUCTIONS_MAX ? annotation.row_count : INSTRUCTIONS_MAX;
  code.list = calloc(code.count + 1, sizeof(*code.list));
  for (size_t i = 0; code.list && i < code.count; i++)
    code.list[i] =
      (struct view_instruction){.address = annotation.rows[i].at.address, .executed = annotation.rows[i].executed};
  r = code.list ? 0 : -ENOMEM;
  if (r >= 0 && code.count)
    r = put_code(view, &annotation, &code, &view->code);
  free(code.list);
  analysis_annotation_done(&annotation);
  return r;
}

static int put_functions(struct report_view *view, const struct analysis_counts *counts, struct analysis_hot *hot)
{
  const struct analysis_hot_function *functions;
  size_t count, put = 0;
  int r = text_add(&view->code, "[");

  analysis_hot_sort(hot, ANALYSIS_HOT_FUNCTION, ANALYSIS_HOT_BY_INSTRUCTIONS);
  functions = analysis_hot_functions(hot, &count);
  for (size_t i = 0; i < count && put < FUNCTIONS_MAX && view->code.length < CODE_BYTES && r >= 0; i++)
    if (functions[i].source != ANALYSIS_EXTENT_BY_NOTHING && functions[i].size && functions[i].instructions) {
      r = put_function(view, counts, &functions[i]);
      put++;
    }
  return r < 0 ? r : text_add(&view->code, "]");
}

/* ---- the whole code ---- */

static int put_totals(struct report_view *view, const struct analysis_counts *counts)
{
  const struct analysis_count_totals *totals = analysis_counts_totals(counts);

  return text_addf(
    &view->totals, "{\"taken\":%llu,\"passed\":%llu,\"instructions\":%llu,\"unknown\":%s,\"forgotten\":%s}",
    (unsigned long long)totals->taken, (unsigned long long)totals->passed, (unsigned long long)totals->instructions,
    totals->has_unknown_code ? "true" : "false", totals->has_forgotten ? "true" : "false");
}

int report_view_counts(struct report_view *view, const struct analysis_counts *counts)
{
  struct analysis_hot *hot = NULL;
  int r = put_totals(view, counts);

  if (r >= 0)
    r = analysis_hot_new(view->options.names, view->options.code, counts,
                         &(struct analysis_hot_filter){.module = view->options.module}, &hot);
  if (r >= 0)
    (void)analysis_hot_functions(hot, &view->ran);
  if (r >= 0)
    r = put_edges(view, counts, hot);
  if (r >= 0 && view->options.code)
    r = put_functions(view, counts, hot);
  analysis_hot_free(hot);
  return r;
}
