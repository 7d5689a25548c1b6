/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a report goes, and what can be shown there. The command line knows; src/report only asks.
 */
#ifndef REPORT_OUTPUT_H
#define REPORT_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct report_output {
  FILE *file;
  int columns;         /* of the terminal; 0: it is none, lines are neither broken nor shortened */
  bool wants_color;    /* escape sequences are wanted */
  bool has_whole_rows; /* a row of a table is a line, whatever its length: names in it are shortened later, or not */
};

/* A count as digits; for people, on a terminal, in groups of three: 1,234,567. Returns the buffer. */
#define REPORT_NUMBER_SIZE 32
const char *report_number(const struct report_output *output, uint64_t value, char buffer[REPORT_NUMBER_SIZE]);

#endif
