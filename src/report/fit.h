/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes lines fit in the terminal. Names of C++ functions are often longer than a line, and a table whose rows the
 * terminal wraps cannot be read.
 */
#ifndef REPORT_FIT_H
#define REPORT_FIT_H

#include <stddef.h>

struct text;

/* The way to shorten a line that is too long. */
enum fit_how {
  FIT_NAMES, /* arguments, and parameters of templates, become "..."; then the longest words lose their middle; a branch
                whose ends do not fit side by side becomes two lines */
  FIT_END,   /* the end is cut off */
};

/* Appends a line, without its newline, shortened to `columns` columns. Escape sequences of colours take no column.
 * `line` is modified. Returns 0, or -ENOMEM. */
int fit_line(struct text *text, char *line, size_t columns, enum fit_how how);

#endif
