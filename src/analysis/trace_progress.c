/* SPDX-License-Identifier: Apache-2.0
 *
 * The progress of reading a trace: a line for the listener, a few times a second.
 */
#include "analysis/trace_progress.h"

#include <stdio.h>

#include "base/base.h"

#define PROGRESS_FIRST 0.5 /* seconds before the first line, and between two lines */
#define PROGRESS_STEP 0.2
#define STREAMS_ASKED 64 /* streams whose lengths are looked up: with more streams there is no percentage */

static const struct trace_progress_listener *listener; /* NULL: progress is not reported */

void trace_progress_listen(const struct trace_progress_listener *wanted)
{
  listener = wanted;
}

/* The number of branches of a stream, from the number of its last one. */
static uint64_t stream_length(struct lb_trace_reader *reader)
{
  struct lb_trace_record record;
  uint64_t length = 0;

  lb_trace_reader_skip(reader);
  while (lb_trace_reader_next(reader, &record) > 0)
    if (record.type == LB_TRACE_BRANCHES)
      length = record.branches.first + record.branches.count;
  return length;
}

uint64_t trace_progress_total(struct lb_trace_reader *reader, uint32_t stream)
{
  uint64_t total = 0;

  for (uint32_t i = stream == LB_TRACE_ALL ? 0 : stream; lb_trace_reader_tail(reader, i, 1) >= 0; i++) {
    if (i >= STREAMS_ASKED && stream == LB_TRACE_ALL) {
      total = 0;
      break;
    }
    total += stream_length(reader);
    if (stream != LB_TRACE_ALL)
      break;
  }
  lb_trace_reader_rewind(reader);
  return total;
}

void trace_progress_begin(struct trace_progress *progress, struct lb_trace_reader *reader)
{
  *progress = (struct trace_progress){.is_on = listener && listener->wants(), .next = clock_seconds() + PROGRESS_FIRST};
  if (progress->is_on)
    progress->total = trace_progress_total(reader, LB_TRACE_ALL);
}

void trace_progress_show(struct trace_progress *progress, uint64_t branches)
{
  double now = progress->is_on ? clock_seconds() : 0;
  char line[64], part[16] = "";

  if (!progress->is_on || now < progress->next)
    return;
  progress->next = now + PROGRESS_STEP;
  progress->is_shown = true;
  if (progress->total && branches <= progress->total)
    snprintf(part, sizeof(part), ", %.0f%%", 100 * (double)branches / (double)progress->total);
  snprintf(line, sizeof(line), "%.1f million branches%s", (double)branches / 1e6, part);
  listener->show(line);
}

void trace_progress_end(struct trace_progress *progress)
{
  if (progress->is_shown)
    listener->show(NULL);
  progress->is_shown = false;
}
