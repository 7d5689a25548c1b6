/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the reading of a long trace is. Whoever shows it, the command line, names a listener; nobody is told anything
 * without one.
 */
#ifndef ANALYSIS_TRACE_PROGRESS_H
#define ANALYSIS_TRACE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/trace.h"

struct trace_progress_listener {
  bool (*wants)(void);            /* asked when reading begins */
  void (*show)(const char *line); /* in place of the line before; NULL: it goes away */
};

/* For the whole program, before anything is read; `listener` must stay good. */
void trace_progress_listen(const struct trace_progress_listener *listener);

struct trace_progress {
  bool is_on, is_shown;
  double next;    /* when it is shown again */
  uint64_t total; /* branches, lost ones included; 0: not known */
};

/* How many branches a stream has, or all have together, lost ones included, without reading them; 0: not known, because
 * there are too many streams. Rewinds the reader. */
uint64_t trace_progress_total(struct lb_trace_reader *reader, uint32_t stream);

/* Rewinds the reader. */
void trace_progress_begin(struct trace_progress *progress, struct lb_trace_reader *reader);

/* So many branches were read. Costs a look at the clock. */
void trace_progress_show(struct trace_progress *progress, uint64_t branches);

/* Takes the line away: before anything else is printed. It may be shown again after that. */
void trace_progress_end(struct trace_progress *progress);

#endif
