/* SPDX-License-Identifier: Apache-2.0
 *
 * The callers of functions: a tree of stacks turned upside down. Its outermost entries are the functions themselves,
 * and the children of an entry are the functions that called it.
 */
#ifndef ANALYSIS_CALLERS_H
#define ANALYSIS_CALLERS_H

#include "analysis/stacks.h"

typedef int analysis_callers_function(void *data, uint32_t function); /* 1: wanted, 0: not, or negative to stop */

/* An entry counts the calls of the wanted function that came through it, and the cost of these calls, including
 * everything that they called. The cost of a function that calls itself is counted for its outermost call. At most
 * `levels` callers above each function are kept. Returns 0, -ENOMEM, or what the function returned. */
int analysis_callers_new(const struct analysis_stacks *stacks, analysis_callers_function *is_wanted, void *data,
                         uint32_t levels, struct analysis_stacks **ret_callers);

#endif
