/* SPDX-License-Identifier: Apache-2.0
 *
 * The stacks of a run, for flame graphs and for the callers of a function.
 */
#ifndef ANALYSIS_CALLS_FOLDED_H
#define ANALYSIS_CALLS_FOLDED_H

#include "analysis/calls_walk.h"
#include "analysis/stacks.h"

struct calls_folded {
  const struct calls_walk *walk;
  struct analysis_stacks *stacks; /* NULL: there was no call yet */
};

void calls_folded_begin(struct calls_folded *folded, struct calls_walk *walk);
void calls_folded_done(struct calls_folded *folded);

#endif
