/* SPDX-License-Identifier: Apache-2.0
 *
 * The line on a terminal that tells how far the reading of a long trace is. Nothing is shown to what is no terminal.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/trace.h"

struct progress {
  bool is_on, is_shown;
  double next;    /* when it is shown again */
  uint64_t total; /* branches, lost ones included; 0: not known */
};

/* How many branches a stream has, or all have together, lost ones included, without reading them; 0: not known, because
 * there are too many streams. Rewinds the reader. */
uint64_t progress_branches(struct lb_trace_reader *reader, uint32_t stream);

/* Rewinds the reader. */
void progress_begin(struct progress *progress, struct lb_trace_reader *reader);

/* So many branches were read. Costs a look at the clock. */
void progress_show(struct progress *progress, uint64_t branches);

/* Takes the line away: before anything else is printed. It may be shown again after that. */
void progress_end(struct progress *progress);

#endif
