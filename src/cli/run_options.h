/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr run`.
 */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "report/report.h"
#include "session/session.h"

/* The contents and destination of the reports. */
struct run_show {
  enum analysis_show show;
  enum report_format format;
  size_t last;        /* branches per thread */
  const char *output; /* NULL for standard error */
};

/* Reads the command line; an error in it ends the program. */
void run_arguments_read(struct run_arguments *ret_arguments, struct run_show *ret_show, int argc, char **argv);

#endif
