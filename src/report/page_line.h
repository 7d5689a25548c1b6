/* SPDX-License-Identifier: Apache-2.0
 *
 * The text half of page.c.
 */
#ifndef REPORT_PAGE_LINE_H
#define REPORT_PAGE_LINE_H

#include "report/page.h"

#define LINE_BOLD "\033[1m"
#define LINE_PLAIN "\033[0m"
#define LINE_MARGIN 2

/* Blanks up to a column. */
void line_pad(struct page *page, int until);

void line_end(struct page *page);

/* Prints words from the cursor on, breaking lines; those that follow begin at `indent`. */
void line_wrap(struct page *page, const char *string, int indent);

void line_bold(const struct page *page, const char *string);

/* The column at which a value, and the lines that continue it, begin. */
int line_indent(const struct page *page);

/* Moves to where the next value begins: after its name, or at its column. */
void line_begin(struct page *page, const char *key);

/* The next cell of a row. */
void line_cell(struct page *page, const char *string);

/* Prints the headline of a section before its first contents, if that has not been done. */
void line_heading(struct page *page);

/* The titles of a table's columns. */
void line_columns(struct page *page);

#endif
