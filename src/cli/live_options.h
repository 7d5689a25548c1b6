/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr live`.
 */
#ifndef CLI_LIVE_OPTIONS_H
#define CLI_LIVE_OPTIONS_H

#include "report/report.h"
#include "session/session.h"

/* The appearance of the pages. */
struct live_show {
  enum report_format format;
  bool wants_color;
};

/* Reads the command line; an error in it ends the program. */
void live_arguments_read(struct live_arguments *ret_arguments, struct live_show *ret_show, int argc, char **argv);

#endif
