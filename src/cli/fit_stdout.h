/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines of standard output that fit in the terminal.
 */
#ifndef CLI_FIT_STDOUT_H
#define CLI_FIT_STDOUT_H

#include "report/report.h"

/* From now on lines on standard output, which is a terminal, are made to fit in it. Without memory nothing changes. */
void fit_stdout(enum fit_how how);

#endif
