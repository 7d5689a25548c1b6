/* SPDX-License-Identifier: Apache-2.0
 *
 * See syscalls.h. The branches are counted, not read, so that this takes little time.
 */
#include "analysis/syscalls.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "trace/trace.h"

#define ERROR_LEAST (-4095) /* results from here to -1 are errors */

struct reading {
  struct analysis_syscalls *syscalls;
  uint32_t stream;
};

static void row_add(struct analysis_syscall_row *row, const struct analysis_syscall *call)
{
  row->calls++;
  row->errors += call->has_returned && call->result < 0 && call->result >= ERROR_LEAST;
  row->time += call->duration;
  row->waited += call->waited;
  if (call->duration < row->longest)
    return;
  row->longest = call->duration;
  row->longest_start = call->start;
  row->longest_stream = call->stream;
}

/* Few different calls occur. A trace could name 2^32 of them: the rest is only in the sum. */
static struct analysis_syscall_row *row_get(struct analysis_syscalls *syscalls, uint32_t number)
{
  enum { ROWS_MOST = 4096 };
  struct analysis_syscall_row *row;

  for (size_t i = 0; i < syscalls->count; i++)
    if (syscalls->rows[i].number == number)
      return &syscalls->rows[i];
  if (syscalls->count >= ROWS_MOST)
    return &syscalls->all;
  row = array_append(&syscalls->rows, &syscalls->count, &syscalls->capacity);
  if (row)
    *row = (struct analysis_syscall_row){.number = number};
  return row;
}

static int call_take(void *data, const struct analysis_syscall *call)
{
  struct reading *reading = data;
  struct analysis_syscall_row *row;

  if (reading->stream != LB_TRACE_ALL && call->stream != reading->stream)
    return 0;
  row = row_get(reading->syscalls, call->call.code);
  if (!row)
    return -ENOMEM;
  if (row != &reading->syscalls->all)
    row_add(row, call);
  row_add(&reading->syscalls->all, call);
  return 0;
}

static int row_compare(const void *one, const void *other)
{
  const struct analysis_syscall_row *a = one, *b = other;

  if (a->time != b->time)
    return a->time < b->time ? 1 : -1;
  return a->calls != b->calls ? (a->calls < b->calls ? 1 : -1) : (a->number > b->number) - (a->number < b->number);
}

static int input_read(struct trace_input *input, uint32_t stream, struct analysis_clock *clock)
{
  struct trace_progress progress;
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r;

  trace_progress_begin(&progress, input->reader);
  trace_reader_want_stamps(input->reader);
  lb_trace_reader_count(input->reader, stream);
  while ((r = trace_input_next(input, &record)) > 0) {
    r = analysis_clock_record(clock, &record);
    if (r < 0)
      break;
    branches += record.type == LB_TRACE_COUNTED    ? record.counted.count
                : record.type == LB_TRACE_BRANCHES ? record.branches.count
                                                   : 0;
    trace_progress_show(&progress, branches);
  }
  trace_progress_end(&progress);
  return r < 0 ? r : analysis_clock_end(clock);
}

int analysis_syscalls_read(struct trace_input *input, uint32_t stream, struct analysis_syscalls *ret_syscalls)
{
  struct analysis_syscalls syscalls = {0};
  struct reading reading = {&syscalls, stream};
  const struct analysis_clock_listener listener = {&reading, call_take, NULL};
  struct analysis_clock *clock = NULL;
  int r = analysis_clock_new(&listener, &clock);

  if (r >= 0)
    r = input_read(input, stream, clock);
  if (r < 0 && !input->has_failed)
    message("%s: %s", input->name, lb_strerror(r));
  analysis_clock_free(clock);
  if (r < 0) {
    analysis_syscalls_done(&syscalls);
    return r;
  }
  if (syscalls.count)
    qsort(syscalls.rows, syscalls.count, sizeof(*syscalls.rows), row_compare);
  *ret_syscalls = syscalls;
  return 0;
}

void analysis_syscalls_done(struct analysis_syscalls *syscalls)
{
  free(syscalls->rows);
  *syscalls = (struct analysis_syscalls){0};
}
