/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions with their names and origins.
 */
#include "export/called.h"

#include <errno.h>

#include "symbol/symbol.h"

int called_get(const struct export_job *job, uint32_t function, struct text *name, struct called *ret_called)
{
  struct analysis_called found;
  struct symbol_place place;
  struct called called = {0};

  if (!analysis_calls_function(job->calls, function, &found))
    return LB_E_NO_ENTRY;
  name->length = 0;
  if (analysis_called_name(job->calls, function, name) < 0)
    return -ENOMEM;
  called.symbol = text_string(name);
  called.module = found.module;
  called.location = found.location;
  if (analysis_names_place(job->names, &found.location, &place) && place.frame_count) {
    called.source = place.frames[place.frame_count - 1].file;
    called.line = place.frames[place.frame_count - 1].declared;
  }
  *ret_called = called;
  return 0;
}

void called_warn(struct export_job *job, const struct analysis_stacks *stacks)
{
  if (job->is_by_time) /* then no instructions are shown */
    return;
  if (job->code && analysis_code_is_exhausted(job->code))
    export_warn(job,
                "the trace names more code than lbr decodes for a file: only the branches of the rest are counted");
  else if (analysis_calls_has_unknown(job->calls))
    export_warn(job, "some code that ran is unknown or not 64-bit code: only its branches are counted");
  if (stacks && analysis_stacks_is_full(stacks))
    export_warn(job, "there are too many different stacks, or they are too deep: some are truncated");
}

int called_fail(struct export_job *job)
{
  if (job->is_by_time && job->has_untimed)
    return export_fail(job, "the calls of the trace have no times; use --by instructions");
  return export_fail(job, job->filter ? "the trace has no calls that match the options" : "the trace has no calls");
}

int called_thread(const struct export_job *job, uint32_t stream, struct text *text)
{
  struct analysis_stream found = {.name = ""};
  bool is_known = analysis_names_stream(job->names, stream, &found);

  text->length = 0;
  if (is_known && found.thread)
    return text_addf(text, "%s (thread %u, %u for the system)", found.name, stream, found.thread);
  return text_addf(text, "%s%s(thread %u)", found.name, *found.name ? " " : "", stream);
}
