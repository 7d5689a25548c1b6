/* SPDX-License-Identifier: Apache-2.0
 *
 * The file that a page is written to.
 */
#ifndef CLI_VIEW_OUTPUT_H
#define CLI_VIEW_OUTPUT_H

#include "report/report.h"

/* Writes the page of a trace and tells what was made. `output` NULL: a name is made from the trace's; "-": stdout.
 * Returns 0, or negative after a complaint. */
int view_output_write(struct report_view *view, const char *trace, const char *output);

#endif
