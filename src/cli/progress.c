/* SPDX-License-Identifier: Apache-2.0
 *
 * How far the reading of a trace is, in a line that is written over again and again.
 */
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"

#define PROGRESS_FIRST 0.5 /* seconds before it is shown, and between two of them */
#define PROGRESS_STEP 0.2
#define STREAMS_ASKED 64 /* for their lengths: with more streams there is no percentage */

/* How many branches a stream has: the number of its last one tells. */
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

uint64_t progress_branches(struct lb_trace_reader *reader, uint32_t stream)
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

void progress_begin(struct progress *progress, struct lb_trace_reader *reader)
{
  *progress =
    (struct progress){.is_on = !cli_is_quiet() && isatty(STDERR_FILENO), .next = clock_seconds() + PROGRESS_FIRST};
  if (progress->is_on)
    progress->total = progress_branches(reader, LB_TRACE_ALL);
}

void progress_show(struct progress *progress, uint64_t branches)
{
  double now = progress->is_on ? clock_seconds() : 0;

  if (!progress->is_on || now < progress->next)
    return;
  progress->next = now + PROGRESS_STEP;
  progress->is_shown = true;
  fprintf(stderr, "\r%.1f million branches", (double)branches / 1e6);
  if (progress->total && branches <= progress->total)
    fprintf(stderr, ", %.0f%%", 100 * (double)branches / (double)progress->total);
  fputs("\033[K", stderr);
}

void progress_end(struct progress *progress)
{
  if (progress->is_shown)
    fputs("\r\033[K", stderr);
  progress->is_shown = false;
}
