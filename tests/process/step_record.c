/* SPDX-License-Identifier: Apache-2.0
 *
 * step_record record --quiet -o TRACE -- PROGRAM [ARGUMENT]...: records with the block-step source as `lbr record`
 * does, but with single steps in the place of blocks, so that the whole path runs where no processor steps by branches:
 * many hypervisors. Takes the place of lbr in tests/process/compare. STEP_BLOCKS in the environment: with the real
 * thing. The exit status is the program's, 125 if it cannot be recorded.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source/kernel.h"
#include "source/source.h"

static int fail(const char *what, const char *why, int status)
{
  fprintf(stderr, "step_record: %s: %s\n", what, why);
  return status;
}

int main(int argc, char **argv)
{
  const struct source_options options = {.kind = SOURCE_BLOCK_STEP, .steps_singly = !getenv("STEP_BLOCKS")};
  struct source_problem problem;
  struct lb_trace_writer *writer;
  struct source_sink sink;
  struct source *source;
  char clock[64];
  int r, status;

  if (argc > 1 && strcmp(argv[1], "record") != 0)
    execv(LBR, argv); /* reading traces is lbr's business */
  if (argc < 7 || strcmp(argv[3], "-o") != 0 || strcmp(argv[5], "--") != 0)
    return fail("usage", "step_record record --quiet -o TRACE -- PROGRAM [ARGUMENT]...", 125);
  if (lb_trace_writer_open(argv[4], &writer) < 0)
    return fail(argv[4], "cannot be written", 125);
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"source", "process"});
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"recorder", "block-step"});
  sink = source_sink_trace(writer);
  r = source_start(source_kernel_real(), &options, argv[6], argv + 6, environ, &sink, &source, &problem);
  if (r < 0)
    return fail(argv[6], problem.text, 125);
  snprintf(clock, sizeof(clock), "system monotonic %llu", (unsigned long long)source_clock(source));
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"clock", clock});
  while (r >= 0 && !source_state(source)->is_over)
    r = source_step(source, 50);
  if (r >= 0)
    r = source_finish(source);
  status = source_state(source)->status;
  source_free(source);
  if (r < 0 || lb_trace_writer_close(writer) < 0)
    return fail(argv[4], "the trace could not be written", 125);
  if (WIFSIGNALED(status))
    raise(WTERMSIG(status));
  return WEXITSTATUS(status);
}
