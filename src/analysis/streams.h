/* SPDX-License-Identifier: Apache-2.0
 *
 * The streams of a trace: whose branches they are and how many were seen.
 */
#ifndef ANALYSIS_STREAMS_H
#define ANALYSIS_STREAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/trace.h"

#define STREAM_NO_SPACE UINT32_MAX /* of a stream that nothing describes: no module is in it */

struct analysis_stream {
  bool is_described; /* the trace says what it is */
  uint32_t space, process, thread;
  const char *name;    /* fit to be printed, */
  const char *command; /* too: the command line of its process or the title that this has set; NULL: not known */
  uint64_t branches;
  uint64_t lost; /* as far as known */
};

struct stream_list {
  struct analysis_stream *streams;
  size_t count, capacity;
};

/* The stream with this number; if there is none yet, it is added without a description. NULL without memory. */
struct analysis_stream *stream_list_get(struct stream_list *list, uint32_t number);

/* Notes what a stream is. Returns 0, or -ENOMEM. */
int stream_list_describe(struct stream_list *list, const struct lb_trace_stream *stream);

/* A meta record may say more of a stream: its name and its title. Returns 0, or -ENOMEM. */
int stream_list_meta(struct stream_list *list, const struct lb_trace_meta *meta);

void stream_list_done(struct stream_list *list);

#endif
