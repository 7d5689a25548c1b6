/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of `lbr report` about branches: edges, conditional and indirect ones.
 */
#include "cli/report_page.h"
#include "cli/report_words.h"

#define TARGETS_SHOWN 4u /* of an indirect branch; JSON has all */

static uint64_t all_taken(const struct report_page *report)
{
  return report_counts_totals(report->reading->counts)->taken;
}

/* "FROM -> TO"; `to` may be NULL. */
static void put_way(const struct report_page *report, struct page *page, const struct report_location *from,
                    const struct report_location *to)
{
  struct report_names *names = report->reading->names;
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
  const struct report_jump *const *edges = report_hot_edges(report->hot, &count);

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

void report_put_branches(const struct report_page *report, struct page *page, uint64_t top)
{
  static const struct page_column columns[] = {
    {"   rate", 7}, {"         taken", 14}, {"     not taken", 14}, {"branch", 0}, {NULL, 0}};
  size_t count, i;
  const struct report_hot_branch *branches = report_hot_branches(report->hot, &count);

  page_heading(page, "Conditional branches");
  page_table(page, "branches", columns);
  for (i = 0; i < count && i < top; i++) {
    const struct report_hot_branch *branch = &branches[i];

    page_row(page, false);
    words_put_share(page, "rate", branch->taken, report_has_only_taken(report) ? 0 : branch->taken + branch->passed);
    words_put_number(page, "taken", branch->taken, 14);
    if (report_has_only_taken(report))
      page_put(page, "not_taken", page->is_json ? NULL : "             -");
    else
      words_put_number(page, "not_taken", branch->passed, 14);
    put_way(report, page, &branch->from, branch->taken ? &branch->to : NULL);
    page_row_end(page);
  }
  page_table_end(page);
  report_put_rest(page, i, count);
}

/* ---- indirect branches ---- */

static void put_targets_json(const struct report_page *report, struct page *page,
                             const struct report_hot_indirect *indirect)
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

static void put_target(const struct report_page *report, struct page *page, const struct report_hot_indirect *indirect,
                       const struct report_jump *target)
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

static void put_targets(const struct report_page *report, struct page *page, const struct report_hot_indirect *indirect)
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
  const struct report_hot_indirect *indirects = report_hot_indirects(report->hot, &count);

  page_heading(page, "Indirect branches");
  page_table(page, "indirect", columns);
  for (i = 0; i < count && i < top; i++) {
    const struct report_hot_indirect *indirect = &indirects[i];

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
