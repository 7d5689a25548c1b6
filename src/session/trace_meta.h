/* SPDX-License-Identifier: Apache-2.0
 *
 * The records at the beginning of a trace that say what made it.
 */
#ifndef SESSION_TRACE_META_H
#define SESSION_TRACE_META_H

#include "lastbranch/trace.h"

int trace_meta_put(struct lb_trace_writer *writer, const char *key, const char *value);

/* Writes producer, source, command, host and time. `key` and `value` are one more record, before the command. `words`
 * is the command line, ended by NULL; only its first LB_TRACE_TEXT_MAX bytes are written. Returns as
 * lb_trace_writer_meta. */
int trace_meta_put_all(struct lb_trace_writer *writer, const char *source, const char *key, const char *value,
                       char *const *words);

#endif
