/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr script`.
 */
#ifndef REPORT_SCRIPT_PAGE_H
#define REPORT_SCRIPT_PAGE_H

#include "analysis/analysis.h"
#include "report/output.h"
#include "report/script.h"

struct report_script_page {
  struct report_output output;
  struct trace_input *input;
  const struct report_script_options *options;
  uint64_t tail;     /* branches of each thread; UINT64_MAX: all */
  bool has_progress; /* progress may be shown beside the lines */
};

/* Prints the branches that are asked for. Returns 0, or negative after a message, for example if no branch matches. */
int report_script_page_print(const struct report_script_page *page);

#endif
