/* SPDX-License-Identifier: Apache-2.0
 *
 * Shows a rule file while it runs.
 */
#ifndef SIM_SHOW_H
#define SIM_SHOW_H

#include <stdbool.h>
#include <stdio.h>

#include "report/report.h"

struct sim_show_options {
  const struct lb_cpu *cpu;    /* NULL: those of the file */
  enum report_format format;   /* of the unit's contents */
  bool is_check;               /* only "ok" or "FAIL" for each file */
  bool is_verbose;             /* each statement and what it does */
  bool has_several;            /* several files are shown: each gets a title */
  struct report_output output; /* for the unit's contents, and the words of is_check */
  FILE *notes;                 /* for the rest */
};

/* Runs a file, "-" for standard input, and shows it. A file that cannot be read or run gets a message. Returns true if
 * every expectation holds. On a CPU that the file does not name, differences are shown, but count only with
 * is_check. */
bool sim_show(const struct sim_show_options *options, const char *name);

#endif
