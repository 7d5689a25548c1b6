/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of `lbr report` about branches: edges, conditional and indirect ones.
 */
#include <stdlib.h>

#include "report/hot_page.h"
#include "report/words.h"

#define TARGETS_SHOWN 4u /* of an indirect branch; JSON has all */

static uint64_t all_taken(const struct report_page *report)
{
  return analysis_counts_totals(report->reading->counts)->taken;
}

/* "FROM -> TO"; `to` may be NULL. */
static void put_way(const struct report_page *report, struct page *page, const struct analysis_location *from,
                    const struct analysis_location *to)
{
  struct analysis_names *names = report->reading->names;
  struct text text = {0};

  if (page->is_json) {
    words_put_location(page, "from", names, from, report->wants_lines);
    if (to)
      words_put_location(page, "to", names, to, report->wants_lines);
    else
      page_absent(page, "to");
    return;
  }
  if (words_add_location(&text, names, from, report->wants_lines) >= 0 && to && text_add(&text, " -> ") >= 0)
    (void)words_add_location(&text, names, to, report->wants_lines);
  page_put(page, NULL, text_string(&text));
  text_done(&text);
}

/* ---- edges ---- */

void report_put_edges(const struct report_page *report, struct page *page, uint64_t top)
{
  static const struct page_column columns[] = {
    {"  share", 7}, {"         count", 14}, {"kind", 10}, {"edge", 0}, {NULL, 0}};
  size_t count, i;

  const struct analysis_jump *const *edges = analysis_hot_edges(report->hot, &count);

  page_heading(page, "Edges");
  page_table(page, "edges", columns);
  for (i = 0; i < count && i < top; i++) {
    page_row(page, false);
    words_put_share(page, "share", edges[i]->count, all_taken(report));
    words_put_number(page, "count", edges[i]->count, 14);
    page_put(page, "kind", lb_branch_kind_name(edges[i]->kind));
    put_way(report, page, &edges[i]->from, &edges[i]->to);
    page_row_end(page);
  }
  page_table_end(page);
  report_put_rest(page, i, count);
}

/* ---- conditional branches ---- */

/* A row of the table: a branch, and its predictability if that was asked for. */
struct branch_row {
  const struct analysis_hot_branch *branch;
  struct analysis_prediction prediction;
};

struct branch_sort {
  const struct report_page *report;
  bool is_flagged; /* the trace itself marks mispredicted branches */
};

static uint64_t row_mispredicted(const struct branch_sort *sort, const struct branch_row *row)
{
  return sort->report->predictor ? row->prediction.mispredicted : row->prediction.flagged;
}

static int row_compare(const void *one, const void *other, void *data)
{
  const struct branch_row *a = one, *b = other;
  const struct branch_sort *sort = data;
  bool by_flips = sort->report->predict_order == REPORT_PREDICT_BY_FLIPS;
  uint64_t key = by_flips ? a->prediction.flips : row_mispredicted(sort, a);
  uint64_t other_key = by_flips ? b->prediction.flips : row_mispredicted(sort, b);

  if (key != other_key)
    return key < other_key ? 1 : -1;
  return a->branch < b->branch ? -1 : a->branch > b->branch;
}

/* Returns NULL without memory. */
static struct branch_row *rows_make(struct branch_sort *sort, size_t *ret_count)
{
  const struct report_page *report = sort->report;
  const struct analysis_hot_branch *branches = analysis_hot_branches(report->hot, ret_count);
  struct branch_row *rows = calloc(*ret_count + 1, sizeof(*rows));

  for (size_t i = 0; rows && i < *ret_count; i++) {
    const struct analysis_prediction *found =
      report->predict ? analysis_predict_find(report->predict, &branches[i].from) : NULL;

    rows[i] = (struct branch_row){.branch = &branches[i]};
    if (found)
      rows[i].prediction = *found;
    sort->is_flagged |= found && found->flagged;
  }
  if (rows && report->predict_order != REPORT_PREDICT_NO_ORDER)
    qsort_r(rows, *ret_count, sizeof(*rows), row_compare, sort);
  return rows;
}

static void put_prediction(const struct branch_sort *sort, struct page *page, const struct branch_row *row)
{
  bool is_known = sort->report->predictor || sort->is_flagged;

  if (!sort->report->predict)
    return;
  words_put_number(page, "flips", row->prediction.flips, 12);
  if (is_known)
    words_put_number(page, "mispredicted", row_mispredicted(sort, row), 12);
  else
    page_put(page, "mispredicted", page->is_json ? NULL : "           -");
}

static void put_predictor(const struct branch_sort *sort, struct page *page)
{
  const struct report_page *report = sort->report;

  if (!report->predict)
    return;
  if (page->is_json)
    page_put(page, "predictor", report->predictor ? report->predictor->name : NULL);
  else if (report->predictor)
    page_remark(page, "mispredicted: according to the model '%s': %s", report->predictor->name,
                report->predictor->what);
  else if (sort->is_flagged)
    page_remark(page, "mispredicted: as the trace says, of branches that were taken");
  else
    page_remark(page, "mispredicted: not in the trace; --predictor uses a model");
  if (analysis_predict_has_forgotten(report->predict))
    page_remark(page, "too many branches or threads to keep: the counts of flips and mispredictions are too low");
}

static void put_branch(const struct branch_sort *sort, struct page *page, const struct branch_row *row)
{
  const struct report_page *report = sort->report;
  const struct analysis_hot_branch *branch = row->branch;
  bool is_counted = !branch->has_unknown && !report_has_only_taken(report);

  page_row(page, false);
  words_put_share(page, "rate", branch->taken, is_counted ? branch->taken + branch->passed : 0);
  words_put_number(page, "taken", branch->taken, 14);
  if (!is_counted)
    page_put(page, "not_taken", page->is_json ? NULL : "             -");
  else
    words_put_number(page, "not_taken", branch->passed, 14);
  put_prediction(sort, page, row);
  put_way(report, page, &branch->from, branch->taken ? &branch->to : NULL);
  page_row_end(page);
}

void report_put_branches(const struct report_page *report, struct page *page, uint64_t top)
{
  static const struct page_column plain[] = {
    {"   rate", 7}, {"         taken", 14}, {"     not taken", 14}, {"branch", 0}, {NULL, 0}};
  static const struct page_column predicted[] = {{"   rate", 7},
                                                 {"         taken", 14},
                                                 {"     not taken", 14},
                                                 {"       flips", 12},
                                                 {"mispredicted", 12},
                                                 {"branch", 0},
                                                 {NULL, 0}};
  struct branch_sort sort = {.report = report};
  size_t count, i;
  struct branch_row *rows = rows_make(&sort, &count);

  page_heading(page, "Conditional branches");
  page_table(page, "branches", report->predict ? predicted : plain);
  for (i = 0; rows && i < count && i < top; i++)
    put_branch(&sort, page, &rows[i]);
  page_table_end(page);
  report_put_rest(page, i, count);
  put_predictor(&sort, page);
  free(rows);
}

/* ---- indirect branches ---- */

static void put_targets_json(const struct report_page *report, struct page *page,
                             const struct analysis_hot_indirect *indirect)
{
  page_array(page, "targets");
  for (size_t i = 0; i < indirect->target_count; i++) {
    page_section(page, NULL, NULL);
    page_put_number(page, "count", indirect->targets[i]->count);
    words_put_location(page, "to", report->reading->names, &indirect->targets[i]->to, report->wants_lines);
    page_section_end(page);
  }
  page_array_end(page);
}

static void put_target(const struct report_page *report, struct page *page,
                       const struct analysis_hot_indirect *indirect, const struct analysis_jump *target)
{
  struct text text = {0};

  page_row(page, false);
  words_put_share(page, NULL, target->count, indirect->count);
  words_put_number(page, NULL, target->count, 14);
  page_put(page, NULL, "");
  if (text_add(&text, "  -> ") >= 0)
    (void)words_add_location(&text, report->reading->names, &target->to, report->wants_lines);
  page_put(page, NULL, text_string(&text));
  text_done(&text);
  page_row_end(page);
}

static void put_targets(const struct report_page *report, struct page *page,
                        const struct analysis_hot_indirect *indirect)
{
  size_t i;
  uint64_t rest = 0;

  for (i = 0; i < indirect->target_count && i < TARGETS_SHOWN; i++)
    put_target(report, page, indirect, indirect->targets[i]);
  if (i == indirect->target_count)
    return;
  for (size_t j = i; j < indirect->target_count; j++)
    rest += indirect->targets[j]->count;
  page_row(page, false);
  words_put_share(page, NULL, rest, indirect->count);
  words_put_number(page, NULL, rest, 14);
  page_put(page, NULL, "");
  page_putf(page, NULL, "  -> %zu other targets", indirect->target_count - i);
  page_row_end(page);
}

void report_put_indirects(const struct report_page *report, struct page *page, uint64_t top)
{
  static const struct page_column columns[] = {
    {"  share", 7}, {"         count", 14}, {"kind", 10}, {"branch and its targets", 0}, {NULL, 0}};
  size_t count, i;
  const struct analysis_hot_indirect *indirects = analysis_hot_indirects(report->hot, &count);

  page_heading(page, "Indirect branches");
  page_table(page, "indirect", columns);
  for (i = 0; i < count && i < top; i++) {
    const struct analysis_hot_indirect *indirect = &indirects[i];

    page_row(page, true);
    words_put_share(page, "share", indirect->count, all_taken(report));
    words_put_number(page, "count", indirect->count, 14);
    page_put(page, "kind", lb_branch_kind_name(indirect->kind));
    if (page->is_json) {
      words_put_location(page, "from", report->reading->names, &indirect->from, report->wants_lines);
      put_targets_json(report, page, indirect);
    } else {
      put_way(report, page, &indirect->from, NULL);
    }
    page_row_end(page);
    if (!page->is_json)
      put_targets(report, page, indirect);
  }
  page_table_end(page);
  report_put_rest(page, i, count);
}
