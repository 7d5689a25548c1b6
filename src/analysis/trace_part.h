/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads a part of a trace without the rest of it.
 */
#ifndef ANALYSIS_TRACE_PART_H
#define ANALYSIS_TRACE_PART_H

#include "analysis/trace_input.h"

struct trace_part {
  uint32_t stream;   /* or LB_TRACE_ALL */
  uint64_t from, to; /* branches of each stream; `to` is not included */
  uint64_t before;   /* number of branches before the part that are given, too */
};

typedef int trace_part_function(void *data, const struct lb_trace_record *record); /* 0, or negative to stop */

/* Is it all of the trace? */
bool trace_part_is_all(const struct trace_part *part);

/* Gives everything that is not a branch, then, stream by stream, the branches of the part, those before it, and the
 * last one of the stream. The record at the end of the part may also hold branches after it. A trace with very many
 * streams is read as a whole. Returns 0, or negative: what the function returned, or after a message. */
int trace_part_read(struct trace_input *input, const struct trace_part *part, trace_part_function *function,
                    void *data);

/* Reduces a record of branches to those of the part. Returns false if none is left. */
bool trace_part_trim(const struct trace_part *part, struct lb_trace_branches *branches);

#endif
