/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr annotate`.
 */
#ifndef REPORT_ANNOTATE_PAGE_H
#define REPORT_ANNOTATE_PAGE_H

#include "analysis/analysis.h"
#include "report/page.h"
#include "report/source_lines.h"

struct annotate_page {
  const struct analysis_reading *reading;
  struct source_files *sources; /* NULL: source lines are not wanted */
  uint32_t stream;              /* or LB_TRACE_ALL */
  struct report_output output;
  bool has_utf8; /* arrows are drawn with it */
};

/* Prints what was counted and what is unknown in the whole trace, then the rows of each function. Returns 0, or
 * -ENOMEM. */
int annotate_page_print(const struct annotate_page *page, bool is_json, const struct analysis_hot_function *functions,
                        size_t count);

/* ---- arrows (annotate_margin.c) ---- */

/* Number of columns that arrows take; 0: there are no arrows. */
unsigned margin_width(const struct analysis_annotation *annotation);

/* Appends the margin of a row; `is_before`: that of an extra line before the row. Returns 0, or -ENOMEM. */
int margin_add(struct text *text, const struct analysis_annotation *annotation, size_t row, bool is_before,
               bool has_utf8);

#endif
