/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines that fit in the terminal. Names of C++ functions are often longer than a line; a table whose rows the terminal
 * breaks cannot be read.
 */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include <stddef.h>

/* How a line that is too long is made to fit. */
enum fit_how {
  FIT_NAMES, /* arguments, and parameters of templates, become "..."; then the longest words lose their middle */
  FIT_END,   /* the end is cut off */
};

/* Shortens a line, without its newline, in place, to so many columns. Escape sequences of colours take none. */
void fit_line(char *line, size_t columns, enum fit_how how);

/* From now on lines on standard output, which is a terminal, are made to fit in it. Without memory nothing changes. */
void fit_stdout(enum fit_how how);

#endif
