/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress of reading a long trace. The command line registers a listener that shows it; without a listener nothing is
 * reported.
 */
#ifndef ANALYSIS_TRACE_PROGRESS_H
#define ANALYSIS_TRACE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/trace.h"

struct trace_progress_listener {
  bool (*wants)(void);            /* asked when reading begins */
  void (*show)(const char *line); /* replaces the line before; NULL: removes it */
};

/* Registers a listener for the whole program. Must be called before anything is read; `listener` must stay valid. */
void trace_progress_listen(const struct trace_progress_listener *listener);

struct trace_progress {
  bool is_on, is_shown;
  double next;    /* when it is shown again */
  uint64_t total; /* branches, lost ones included; 0: not known */
};

/* The number of branches of a stream, or of all together, lost ones included, without reading them. 0 if it is unknown
 * because there are too many streams. Rewinds the reader. */
uint64_t trace_progress_total(struct lb_trace_reader *reader, uint32_t stream);

/* Rewinds the reader. */
void trace_progress_begin(struct trace_progress *progress, struct lb_trace_reader *reader);

/* Reports how many branches were read. Costs one read of the clock. */
void trace_progress_show(struct trace_progress *progress, uint64_t branches);

/* Removes the line; to be called before anything else is printed. The line may be shown again after that. */
void trace_progress_end(struct trace_progress *progress);

#endif
