/* SPDX-License-Identifier: Apache-2.0
 *
 * The destination of a report, and what can be shown there. The command line fills it in; src/report only reads it.
 */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct report_output {
  FILE *file;
  int columns;         /* width of the terminal; 0: no terminal, lines are neither wrapped nor shortened */
  bool wants_color;    /* escape sequences are wanted */
  bool has_whole_rows; /* a row of a table is one line, whatever its length: the caller may shorten names in it later */
};

/* A count as digits; for people, on a terminal, in groups of three: 1,234,567. Returns the buffer. */
#define REPORT_NUMBER_SIZE 32
const char *report_number(const struct report_output *output, uint64_t value, char buffer[REPORT_NUMBER_SIZE]);

#endif
