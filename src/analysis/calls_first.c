/* SPDX-License-Identifier: Apache-2.0
 *
 * The first call of a function in a trace.
 */
#include <errno.h>

#include "analysis/analysis.h"
#include "base/base.h"

struct finder {
  struct analysis_calls *calls;
  const char *name;
  uint32_t stream;   /* or LB_TRACE_ALL */
  uint32_t function; /* the last one that was checked */
  bool is_wanted;    /* whether that is the one */
  struct analysis_call found;
  bool is_found;
};

static int finder_take(void *data, const struct analysis_call *call)
{
  struct finder *finder = data;
  struct analysis_called called;

  if (!call->is_enter || (finder->stream != LB_TRACE_ALL && finder->stream != call->stream))
    return 0;
  if (call->function != finder->function) {
    finder->function = call->function;
    finder->is_wanted = analysis_calls_function(finder->calls, call->function, &called) &&
                        analysis_called_is(finder->calls, &called, finder->name);
  }
  if (!finder->is_wanted)
    return 0;
  finder->found = *call;
  finder->is_found = true;
  return -ECANCELED;
}

/* Reads up to the first call of the function. */
static int finder_read(struct trace_input *input, const struct finder *finder)
{
  struct trace_progress progress;
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r;

  trace_progress_begin(&progress, input->reader);
  while ((r = trace_input_next(input, &record)) > 0) {
    r = analysis_calls_record(finder->calls, &record);
    if (r < 0)
      break;
    branches += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    trace_progress_show(&progress, branches);
  }
  trace_progress_end(&progress);
  lb_trace_reader_rewind(input->reader);
  return r == -ECANCELED ? 0 : r;
}

int analysis_calls_first(struct trace_input *input, const char *name, uint32_t stream, struct analysis_call *ret_call)
{
  struct finder finder = {.name = name, .stream = stream, .function = UINT32_MAX};
  struct analysis_names *names = NULL;
  int r = analysis_names_new(&input->files, &names);

  if (r >= 0)
    r = analysis_calls_new(names, NULL, finder_take, &finder, &finder.calls);
  if (r >= 0)
    r = trace_input_read_starts(input, names, &(struct analysis_use){.has_calls = true});
  if (r >= 0)
    r = finder_read(input, &finder);
  analysis_calls_free(finder.calls);
  analysis_names_free(names);
  if (r == -ENOMEM)
    message("%s: %s", input->name, lb_strerror(r));
  if (r >= 0 && !finder.is_found) {
    message("%s: no call of '%s'; 'lbr stat' lists functions", input->name, name);
    r = LB_E_NO_ENTRY;
  }
  if (r >= 0)
    *ret_call = finder.found;
  return r < 0 ? r : 0;
}
