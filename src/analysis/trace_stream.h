/* SPDX-License-Identifier: Apache-2.0
 *
 * One stream of a trace, read alone: the chunks of other streams are skipped. If mappings changed during the run, names
 * are right only in the order of the file, and nothing is skipped.
 */
#ifndef ANALYSIS_TRACE_STREAM_H
#define ANALYSIS_TRACE_STREAM_H

#include "analysis/trace_input.h"

struct trace_stream {
  struct trace_input *input;
  uint32_t number;
  uint64_t first;     /* branches before this number are left out */
  bool is_sequential; /* the file is read from its start */
};

/* The number that the next branch of a stream would have: the count of its branches, lost ones included. Returns 0;
 * LB_E_NO_ENTRY: there is no such stream; or negative after a message. */
int trace_stream_length(struct trace_input *input, uint32_t number, uint64_t *ret_length);

/* Begins at a branch. Records that describe the trace come before that branch, or at their place in the file. Returns
 * as above. */
int trace_stream_begin(struct trace_stream *stream, struct trace_input *input, uint32_t number, uint64_t first);

/* The next record that is not of another stream; branches before `first` are left out of it. Returns as
 * trace_input_next. */
int trace_stream_next(struct trace_stream *stream, struct lb_trace_record *ret_record);

/* Finds the one thread of a trace whose name is `word`, or whose name or command line contains it. Returns 0, or
 * negative after a message: there is none, or more than one. */
int trace_stream_find(const char *file, const char *word, uint32_t *ret_stream);

#endif
