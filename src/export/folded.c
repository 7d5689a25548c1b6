/* SPDX-License-Identifier: Apache-2.0
 *
 * Stacks, one per line as "a;b;c COUNT", for programs that draw flame graphs: the output of `lbr calls --folded`. The
 * count is in instructions.
 */
#include "export/called.h"

struct folded {
  struct analysis_stacks *stacks;
};

static int folded_begin(struct export_job *job)
{
  struct folded *folded = job->state;

  return analysis_stacks_new(&folded->stacks);
}

static int folded_call(struct export_job *job, const struct analysis_call *call)
{
  struct folded *folded = job->state;

  return analysis_stacks_call(folded->stacks, call);
}

static int folded_end(struct export_job *job)
{
  struct folded *folded = job->state;
  const struct analysis_stack *stack;
  struct text line = {0};
  size_t lines = 0;
  int r = 0;

  for (size_t i = 0; r >= 0 && (stack = analysis_stacks_get(folded->stacks, i)); i++) {
    if (!stack->instructions)
      continue;
    line.length = 0;
    r = analysis_stacks_fold(folded->stacks, (uint32_t)i, job->calls, &line);
    export_put(job, line.data, line.length);
    export_print(job, " %llu\n", (unsigned long long)stack->instructions);
    lines++;
  }
  text_done(&line);
  if (r >= 0 && !lines)
    return called_fail(job);
  called_warn(job, folded->stacks);
  return r;
}

static void folded_done(struct export_job *job)
{
  struct folded *folded = job->state;

  analysis_stacks_free(folded->stacks);
}

const struct export_format export_format_folded = {
  .name = "folded",
  .what = "stacks with their instructions in one line each, for flame graphs",
  .suffix = ".folded",
  .needs = EXPORT_CALLS,
  .wants_instructions = true,
  .state_size = sizeof(struct folded),
  .begin = folded_begin,
  .call = folded_call,
  .end = folded_end,
  .done = folded_done,
};
