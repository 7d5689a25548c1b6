/* SPDX-License-Identifier: Apache-2.0
 *
 * The numbers of one module that do not follow from its branches alone.
 */
#ifndef ANALYSIS_MODULE_TOTALS_H
#define ANALYSIS_MODULE_TOTALS_H

#include "analysis/hot.h"
#include "analysis/trace_input.h"

struct analysis_module_totals {
  const char *name;      /* as the user named it */
  uint64_t instructions; /* that ran in it, */
  uint64_t not_taken;    /* and conditional branches that were not taken */
  bool is_known;         /* both are known for all of its code that ran */
  bool has_run;          /* some of its code ran */
};

/* Reads the whole trace for the numbers of module->name. Errors in the trace are not reported here, since the trace is
 * read again for its branches. Returns 0; LB_E_NO_ENTRY, if nothing of it ran, or -ENOMEM after a message. */
int analysis_module_read(struct trace_input *input, bool has_symbols, struct analysis_module_totals *module);

#endif
