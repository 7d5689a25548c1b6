/* SPDX-License-Identifier: Apache-2.0
 *
 * stamps TRACE: prints the stamps of a trace, one in each line, with absolute times of CLOCK_MONOTONIC in nanoseconds:
 *
 *   STREAM NUMBER TIME CPU USED TYPE CODE RESULT VALUE NAME [PATH]
 *
 * A missing value is -1; NAME is that of the system call, or "-". It fails if times go back in a stream, or if the
 * times of branches are not between those of the stamps around them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "trace/trace.h"

enum { STREAMS = 4096 };

static uint64_t start, last[STREAMS], numbers[STREAMS];

static void wrong(const char *what, uint32_t stream, uint64_t a, uint64_t b)
{
  printf("wrong: %s in stream %u: %" PRIu64 " and %" PRIu64 "\n", what, stream, a, b);
  exit(1);
}

static void later(uint32_t stream, uint64_t time)
{
  if (stream < STREAMS && time < last[stream])
    wrong("time goes back", stream, last[stream], time);
  if (stream < STREAMS)
    last[stream] = time;
}

static void stamp_print(const struct trace_stamp *stamp)
{
  const struct trace_call_info *info = stamp->type == TRACE_STAMP_CALL ? trace_call_info(stamp->code) : NULL;

  if (stamp->stream < STREAMS && stamp->number != numbers[stamp->stream])
    wrong("not between the right branches", stamp->stream, stamp->number, numbers[stamp->stream]);
  later(stamp->stream, stamp->time);
  printf("%u %" PRIu64 " %" PRIu64 " %d %" PRId64 " %s %u %" PRId64 " %" PRIu64 " %s %s\n", stamp->stream,
         stamp->number, start + stamp->time, stamp->has_cpu ? stamp->cpu : -1,
         stamp->has_used ? (int64_t)stamp->used : -1, trace_stamp_name(stamp->type), stamp->code, stamp->result,
         stamp->value, info ? info->name : "-", stamp->paths[0] ? stamp->paths[0] : "");
}

static void branches_check(const struct lb_trace_reader *reader, const struct lb_trace_branches *branches)
{
  for (size_t i = 0; i <= branches->count; i += branches->count > 64 ? branches->count / 16 : 1) {
    uint64_t time = trace_reader_time(reader, branches->first + i);

    if (time != TRACE_NO_TIME)
      later(branches->stream, time);
  }
  if (branches->stream < STREAMS)
    numbers[branches->stream] = branches->first + branches->count;
}

int main(int argc, char **argv)
{
  struct lb_trace_reader *reader;
  struct lb_trace_record record;
  int r;

  if (argc != 2 || lb_trace_reader_open(argv[1], &reader) < 0)
    return 2;
  trace_reader_want_stamps(reader);
  while ((r = lb_trace_reader_next(reader, &record)) > 0) {
    const struct trace_stamp *stamp = trace_record_stamp(&record);

    if (stamp)
      stamp_print(stamp);
    else if (record.type == LB_TRACE_BRANCHES)
      branches_check(reader, &record.branches);
    else if (record.type == LB_TRACE_META)
      (void)sscanf(record.meta.value, "%*s monotonic %" SCNu64, &start);
    else if (record.type == LB_TRACE_GAP && record.gap.stream < STREAMS)
      numbers[record.gap.stream] = record.gap.first + record.gap.count;
  }
  lb_trace_reader_close(reader);
  return r < 0;
}
