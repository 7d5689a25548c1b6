/* SPDX-License-Identifier: Apache-2.0
 *
 * The code of a function in a page: its instructions with their counts, and its source.
 */
#ifndef REPORT_VIEW_CODE_H
#define REPORT_VIEW_CODE_H

#include "report/view_page.h"

struct view_instruction {
  uint64_t address, executed;
  uint32_t line;   /* of the function's own file; 0: none, or of another file */
  uint32_t number; /* among those that the page lists, from 1 on; 0: it is not listed */
};

struct view_code {
  uint32_t file;                 /* as of a location */
  uint64_t start;                /* of the function */
  struct view_instruction *list; /* by address */
  size_t count;
};

/* Appends the members "source", "changed" and "lines" with a comma after each, null if there is no source, and notes
 * the lines of the instructions. Returns 0, or -ENOMEM. */
int view_source_put(struct report_view *view, struct view_code *code, struct text *text);

#endif
