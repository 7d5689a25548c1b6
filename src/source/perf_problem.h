/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains an error of perf_event_open(2) or of mapping its memory, and what a user can do about it.
 */
#ifndef SOURCE_PERF_PROBLEM_H
#define SOURCE_PERF_PROBLEM_H

#include "source/source.h"

enum perf_stage {
  PERF_PROBLEM_PMU, /* the PMU is not in /sys/bus/event_source/devices */
  PERF_PROBLEM_OPEN,
  PERF_PROBLEM_RING,
  PERF_PROBLEM_AUX,
  PERF_PROBLEM_MEMORY,
};

/* Fills the problem in. Returns the error. */
int perf_problem(struct source_problem *ret_problem, enum source_kind kind, enum perf_stage stage, int error);

#endif
