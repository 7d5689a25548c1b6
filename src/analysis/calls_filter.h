/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects calls of a trace: those inside certain functions and of certain modules. The selected calls still nest.
 */
#ifndef ANALYSIS_CALLS_FILTER_H
#define ANALYSIS_CALLS_FILTER_H

#include "analysis/calls.h"
#include "analysis/filter.h"

struct analysis_calls_filter;

/* Uses only the functions and modules of `filter`, which must stay valid. Returns 0, or -ENOMEM. */
int analysis_calls_filter_new(struct analysis_filter *filter, struct analysis_calls_filter **ret_calls);
void analysis_calls_filter_free(struct analysis_calls_filter *calls); /* takes NULL */

/* Decides on one call. The caller passes every call that `from` gives, in order. Returns 1 if the call passes the
 * filter: its depth then counts only calls that pass. Returns 0 if it does not, or -ENOMEM. */
int analysis_calls_filter_take(struct analysis_calls_filter *calls, const struct analysis_calls *from,
                               struct analysis_call *call);

#endif
