/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr annotate`.
 */
#ifndef CLI_ANNOTATE_PAGE_H
#define CLI_ANNOTATE_PAGE_H

#include "cli/annotate_source.h"
#include "cli/report_read.h"
#include "report/report.h"

struct annotate_page {
  const struct report_reading *reading;
  struct source_files *sources; /* NULL: none is wanted */
  uint32_t stream;              /* or LB_TRACE_ALL */
  bool wants_color, has_utf8;   /* has_utf8: arrows are drawn with it */
};

/* What was counted, and what is not known of the whole trace. */
void annotate_page_head(const struct annotate_page *page);

/* Prints a function as text. */
void annotate_page_print(const struct annotate_page *page, const struct report_annotation *annotation);

/* The same as a member of an array of JSON. */
void annotate_page_json(const struct annotate_page *page, struct page *json,
                        const struct report_annotation *annotation);

/* ---- arrows (annotate_margin.c) ---- */

/* Columns that arrows take; 0: there are none. */
unsigned margin_width(const struct report_annotation *annotation);

/* Appends what stands beside a row; `is_before`: beside a line that stands before it. Returns 0, or -ENOMEM. */
int margin_add(struct text *text, const struct report_annotation *annotation, size_t row, bool is_before,
               bool has_utf8);

#endif
