/* SPDX-License-Identifier: Apache-2.0
 *
 * Landing pads: the code that catches an exception thrown out of a call, or cleans up after it. Compilers make tables
 * of them.
 */
#ifndef ANALYSIS_CALLS_LANDING_H
#define ANALYSIS_CALLS_LANDING_H

#include "analysis/analysis.h"

/* The landing pad for an exception that passes through the instruction at `location`, as an address of the same file.
 * Returns 1; 0 if there is none for it; -ENOENT if it is not known: no file, no tables, or tables of an unusual form.
 */
int landing_find(struct analysis_names *names, const struct analysis_location *location, uint64_t *ret_address);

#endif
