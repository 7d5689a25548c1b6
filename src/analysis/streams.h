/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a trace: the thread of each, and the number of its branches seen so far.
 */
#ifndef ANALYSIS_STREAMS_H
#define ANALYSIS_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/trace.h"

#define STREAM_NO_SPACE UINT32_MAX /* address space of a stream that nothing describes: no module is in it */

struct analysis_stream {
  bool is_described; /* the trace says what it is */
  uint32_t space, process, thread;
  const char *name;    /* printable */
  const char *command; /* printable command line of its process, or the title that it has set; NULL: not known */
  uint64_t branches;
  uint64_t lost; /* as far as known */
};

struct stream_list {
  struct analysis_stream *streams;
  size_t count, capacity;
};

/* The stream with this number; if there is none yet, it is added without a description. NULL without memory. */
struct analysis_stream *stream_list_get(struct stream_list *list, uint32_t number);

/* Stores the description of a stream. Returns 0, or -ENOMEM. */
int stream_list_describe(struct stream_list *list, const struct lb_trace_stream *stream);

/* Takes a meta record, which may have the name and the title of a stream. Returns 0, or -ENOMEM. */
int stream_list_meta(struct stream_list *list, const struct lb_trace_meta *meta);

void stream_list_done(struct stream_list *list);

#endif
