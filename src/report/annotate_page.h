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
  struct source_files *sources; /* NULL: none is wanted */
  uint32_t stream;              /* or LB_TRACE_ALL */
  struct report_output output;
  bool has_utf8; /* arrows are drawn with it */
};

/* Prints functions: their rows, after what was counted and what is not known of the whole trace. Returns 0, or -ENOMEM.
 */
int annotate_page_print(const struct annotate_page *page, bool is_json, const struct analysis_hot_function *functions,
                        size_t count);

/* ---- arrows (annotate_margin.c) ---- */

/* Columns that arrows take; 0: there are none. */
unsigned margin_width(const struct analysis_annotation *annotation);

/* Appends what stands beside a row; `is_before`: beside a line that stands before it. Returns 0, or -ENOMEM. */
int margin_add(struct text *text, const struct analysis_annotation *annotation, size_t row, bool is_before,
               bool has_utf8);

#endif
