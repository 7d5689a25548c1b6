/* SPDX-License-Identifier: Apache-2.0
 *
 * The page of `lbr stat`.
 */
#ifndef REPORT_STAT_PAGE_H
#define REPORT_STAT_PAGE_H

#include "analysis/analysis.h"
#include "report/output.h"

struct stat_page {
  const struct trace_input *input;
  const struct analysis_names *names;
  struct analysis_summary *summary;
  unsigned top;                                /* functions and edges */
  const struct analysis_module_totals *module; /* the only module that is shown, or NULL */
};

/* Returns 0, or -ENOMEM after a message. */
int stat_page_print(const struct stat_page *stat, const struct report_output *output, bool is_json);

#endif
