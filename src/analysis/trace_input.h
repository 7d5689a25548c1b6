/* SPDX-License-Identifier: Apache-2.0
 *
 * The trace that a command reads, and the files that it names.
 */
#ifndef ANALYSIS_TRACE_INPUT_H
#define ANALYSIS_TRACE_INPUT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/code.h"
#include "analysis/extent.h"
#include "analysis/names.h"
#include "lastbranch/trace.h"

struct trace_input {
  char *name; /* of the file that was opened */
  struct lb_trace_reader *reader;
  uint64_t size;      /* bytes */
  bool is_incomplete; /* it is called NAME.incomplete */
  uint64_t time;      /* when it was begun, in seconds since 1970; 0: not known */
  uint64_t gaps[LB_TRACE_GAP_REASONS];
  bool is_sampled;             /* it contains samples, according to the records so far */
  bool has_failed;             /* it could not be read any further */
  bool is_asked;               /* for trace_stream.c: `is_displaced` is known */
  bool is_displaced;           /* mappings change during the trace */
  struct analysis_files files; /* for analysis_names_new */
};

/* Opens a trace, or NAME.incomplete if there is no file NAME. Returns 0, or negative after a message. */
int trace_input_open(struct trace_input *input, const char *name);

/* Only sets `files`, of an input that is all zero: for callers that have a program and no trace. */
void trace_input_files(struct trace_input *input);

/* Maps a file that is open, and closes its descriptor. Returns as the `open` of `files`. */
int trace_input_map(const struct trace_input *input, int fd, const void **ret_bytes, size_t *ret_size);

/* As lb_trace_reader_next and _tail, but they remember and report errors. */
int trace_input_next(struct trace_input *input, struct lb_trace_record *ret_record);
int trace_input_tail(struct trace_input *input, uint32_t stream, uint64_t count);

/* Is there a thread with this number, or is it LB_TRACE_ALL? Takes constant time in a trace that has its index; rewinds
 * the reader. Returns 0, or negative after a message. */
int trace_input_check_stream(struct trace_input *input, uint32_t stream);

/* analysis_starts_read with its progress, if the use needs it (analysis_use_needs_starts) and there are names. */
int trace_input_read_starts(struct trace_input *input, struct analysis_names *names, const struct analysis_use *use);

/* Was everything read that was recorded? Gaps that the producer made do not count. */
bool trace_input_is_whole(const struct trace_input *input);

/* Tells the user if the trace names more code than is decoded (analysis_code_is_exhausted). `code` may be NULL. */
void trace_input_tell_limit(const struct trace_input *input, const struct analysis_code *code);

/* Tells the user that no file of this name was mapped (analysis_module_is_mapped) or, if one was, that nothing of it
 * ran. The trace must have been read. Returns LB_E_NO_ENTRY. */
int trace_input_tell_module(const struct trace_input *input, const struct analysis_names *names, const char *module);

/* Closes the trace and reports what was wrong with it. Returns 0, or 1 if the file is damaged. */
int trace_input_close(struct trace_input *input);

#endif
