/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces for the other folders: the public header, and paths for code that makes entries or walks through them.
 * doc/trace-format.md describes the bytes.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include "lastbranch/trace.h" /* IWYU pragma: export */
#include "trace/path.h"       /* IWYU pragma: export */

/* Tells whether the stream ended with an event without a target, such as the signal that kills a program, and at which
 * address. May be called when lb_trace_reader_next has returned 0 after lb_trace_reader_tail. Returns false, touching
 * nothing, if the stream ended otherwise, or the trace does not say. */
bool trace_reader_end(const struct lb_trace_reader *reader, uint64_t *ret_address);

/* Ends a stream that will not continue: writes its open chunk, and frees its memory for another stream. Returns 0, or
 * the error of the writer. */
int trace_writer_end(struct lb_trace_writer *writer, uint32_t stream);

/* Frees what the writer knows of the steps with numbers from `first` to before `end`. Entries will not name them any
 * more, and no stream of the space will continue. If they come again nevertheless, the writer looks them up as new
 * ones. */
void trace_writer_forget(struct lb_trace_writer *writer, uint32_t space, uint32_t first, uint32_t end);

/* Adds a description of a stream that became known only later: `key` is "title", the command line of its process or the
 * title that this has set, or "name", the name of the thread. The newest value counts. A value that is too long is cut.
 * Returns as lb_trace_writer_meta. */
int trace_writer_describe(struct lb_trace_writer *writer, uint32_t stream, const char *key, const char *value);

/* The loss by damage so far: branches that are known to be missing, and bytes that could not be read. Each is counted
 * once, however often the trace was read. */
void trace_reader_lost(const struct lb_trace_reader *reader, uint64_t *ret_branches, uint64_t *ret_bytes);

#endif
