/* SPDX-License-Identifier: Apache-2.0
 *
 * Which calls of a trace are wanted: those in a function, and of some modules. What is left still nests.
 */
#ifndef ANALYSIS_CALLS_FILTER_H
#define ANALYSIS_CALLS_FILTER_H

#include "analysis/calls.h"
#include "analysis/filter.h"

struct report_calls_filter;

/* `filter`, of which functions and modules are looked at, must stay good. Returns 0, or -ENOMEM. */
int report_calls_filter_new(struct report_filter *filter, struct report_calls_filter **ret_calls);
void report_calls_filter_free(struct report_calls_filter *calls); /* takes NULL */

/* Takes each call that `from` gives, one after the other. Returns 1: it is wanted, and its depth has been set to that
 * among the wanted ones; 0: it is not; or -ENOMEM. */
int report_calls_filter_take(struct report_calls_filter *calls, const struct report_calls *from,
                             struct report_call *call);

#endif
