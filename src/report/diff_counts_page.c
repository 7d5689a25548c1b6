/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions whose exact counts differ most between two traces.
 */
#include "report/diff_page.h"
#include "report/diff_words.h"

static void put_row(struct page *page, const struct diff_count_row *row)
{
  page_row(page, false);
  page_put_count(page, "instructions_a", row->instructions[0]);
  page_put_count(page, "instructions_b", row->instructions[1]);
  page_put_count(page, "branches_a", row->branches[0]);
  page_put_count(page, "branches_b", row->branches[1]);
  page_put_count(page, "entered_a", row->entered[0]);
  page_put_count(page, "entered_b", row->entered[1]);
  diff_put_function(page, row->symbol, row->module);
  page_row_end(page);
}

static void put_rows(struct page *page, const struct diff_counts *counts, uint32_t top)
{
  static const struct page_column columns[] = {{"instructions A", 15}, {"B", 15}, {"branches A", 12}, {"B", 12},
                                               {"entered A", 10},      {"B", 10}, {"function", 0},    {NULL, 0}};

  page_heading(page, "Functions whose counts changed most");
  page_table(page, "functions", columns);
  for (size_t i = 0; i < counts->count && i < top && diff_count_row_differs(&counts->rows[i]); i++)
    put_row(page, &counts->rows[i]);
  page_table_end(page);
}

/* Explains why instructions are missing. */
static void put_unknown(struct page *page, const struct diff_counts *counts)
{
  bool has_unknown = counts->totals[0].has_unknown_code || counts->totals[1].has_unknown_code;
  bool is_limited = counts->is_limited[0] || counts->is_limited[1];

  if (page->is_json) {
    page_put_flag(page, "has_unknown_code", has_unknown);
    page_put_flag(page, "decode_limit_reached", is_limited);
  } else if (is_limited) {
    page_remark(page, "%s names more code than lbr decodes for a file: instructions are too few",
                !counts->is_limited[1]   ? "A"
                : !counts->is_limited[0] ? "B"
                                         : "each of the two");
  } else if (has_unknown) {
    page_remark(page, "some code is not known: the counts of instructions are too low");
  }
}

static void put_totals(struct page *page, const struct diff_counts *counts)
{
  const struct analysis_count_totals *totals = counts->totals;

  page_put_count(page, "instructions_a", totals[0].instructions);
  page_put_count(page, "instructions_b", totals[1].instructions);
  page_put_count(page, "branches_a", totals[0].taken);
  page_put_count(page, "branches_b", totals[1].taken);
  put_unknown(page, counts);
}

int diff_put_counts(const struct diff_page *diff, struct page *page)
{
  struct diff_counts counts;
  int r = diff_counts_make(diff->sides, diff->options, &counts);

  if (r >= 0) {
    page_section(page, "counts", "Counts");
    put_totals(page, &counts);
    put_rows(page, &counts, diff->options->top);
    page_section_end(page);
  }
  diff_counts_done(&counts);
  return r;
}
