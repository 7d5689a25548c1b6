/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of standard output that fit in the terminal.
 */
#ifndef CLI_FIT_STDOUT_H
#define CLI_FIT_STDOUT_H

#include "report/report.h"

/* From now on, lines on standard output, which must be a terminal, are fitted to its width. Without memory nothing
 * changes. */
void fit_stdout(enum fit_how how);

#endif
