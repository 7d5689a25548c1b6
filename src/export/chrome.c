/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls as events of the trace viewer of Chrome, which Perfetto reads, too: "B" when a function is entered, "E" when it
 * is left, nested strictly in each thread. Unless times are asked for, an instruction takes a nanosecond. Threads have
 * the numbers that `lbr stat` shows, plus 1, because the system may reuse its thread numbers.
 */
#include <errno.h>
#include <stdlib.h>

#include "export/called.h"

struct chrome {
  uint64_t events;
  uint8_t *named; /* streams */
  size_t count, capacity;
  struct text name;
};

static int chrome_begin(struct export_job *job)
{
  const char *clock = job->options.by == EXPORT_BY_TIME
                        ? "time since the start of the recording"
                        : "no clock: a nanosecond is an instruction that the thread ran; times of different threads "
                          "cannot be compared";

  export_print(job,
               "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"producer\":\"lbr %s\",\"clock\":\"%s\"},\n"
               "\"traceEvents\":[",
               LB_VERSION, clock);
  return 0;
}

static void put_event(struct export_job *job, uint32_t stream, char phase, const char *name)
{
  struct chrome *chrome = job->state;
  struct analysis_stream found = {0};

  (void)analysis_names_stream(job->names, stream, &found);
  export_print(job, "%s{\"ph\":\"%c\",\"pid\":%u,\"tid\":%u", chrome->events++ ? ",\n" : "\n", phase, found.process,
               stream + 1);
  if (!name)
    return;
  export_print(job, ",\"name\":");
  export_json(job, name);
}

static void put_name(struct export_job *job, uint32_t stream, const char *what, const char *name)
{
  put_event(job, stream, 'M', what);
  export_print(job, ",\"args\":{\"name\":");
  export_json(job, name);
  export_print(job, "}}");
}

/* Names the process and the thread when it is first seen. Returns 0, or -ENOMEM. */
static int stream_name(struct export_job *job, uint32_t stream)
{
  struct chrome *chrome = job->state;
  uint8_t *is_named = array_at(&chrome->named, stream, &chrome->count, &chrome->capacity);
  struct analysis_stream found;

  if (!is_named)
    return -ENOMEM;
  if (*is_named)
    return 0;
  *is_named = 1;
  if (analysis_names_stream(job->names, stream, &found))
    put_name(job, stream, "process_name", found.name);
  if (called_thread(job, stream, &chrome->name) < 0)
    return -ENOMEM;
  put_name(job, stream, "thread_name", text_string(&chrome->name));
  return 0;
}

static int chrome_call(struct export_job *job, const struct analysis_call *call)
{
  struct chrome *chrome = job->state;
  uint64_t time = 0;
  int r = stream_name(job, call->stream);

  if (r >= 0)
    r = export_call_time(job, call, &time);
  chrome->name.length = 0;
  if (r >= 0 && call->is_enter)
    r = analysis_called_name(job->calls, call->function, &chrome->name);
  if (r < 0)
    return r;
  put_event(job, call->stream, call->is_enter ? 'B' : 'E', call->is_enter ? text_string(&chrome->name) : NULL);
  export_print(job, ",\"ts\":%llu.%03u}", (unsigned long long)(time / 1000), (unsigned)(time % 1000));
  return 0;
}

static int chrome_end(struct export_job *job)
{
  struct chrome *chrome = job->state;

  if (!chrome->events)
    return called_fail(job);
  export_print(job, "\n]}\n");
  called_warn(job, NULL);
  return 0;
}

static void chrome_done(struct export_job *job)
{
  struct chrome *chrome = job->state;

  free(chrome->named);
  text_done(&chrome->name);
}

const struct export_format export_format_chrome = {
  .name = "chrome",
  .what = "timeline of calls, for Perfetto and chrome://tracing",
  .suffix = ".json",
  .needs = EXPORT_CALLS,
  .wants_instructions = true,
  .has_axis = true,
  .bytes_per_branch = 20,
  .state_size = sizeof(struct chrome),
  .begin = chrome_begin,
  .call = chrome_call,
  .end = chrome_end,
  .done = chrome_done,
};
