/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that a page is written to.
 */
#ifndef CLI_VIEW_OUTPUT_H
#define CLI_VIEW_OUTPUT_H

#include "report/report.h"

/* Writes the page of a trace and reports what was written. If `output` is NULL, the name is derived from the trace's;
 * "-" is stdout. Returns 0, or negative after a message. */
int view_output_write(struct report_view *view, const char *trace, const char *output);

#endif
