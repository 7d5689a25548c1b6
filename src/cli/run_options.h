/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr run`.
 */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "report/report.h"
#include "session/session.h"

/* What the reports show, and where they go. */
struct run_show {
  enum analysis_show show;
  enum report_format format;
  size_t last;        /* branches of a thread */
  const char *output; /* NULL: standard error */
};

/* Reads the command line; a mistake in it ends the program. */
void run_arguments_read(struct run_arguments *ret_arguments, struct run_show *ret_show, int argc, char **argv);

#endif
