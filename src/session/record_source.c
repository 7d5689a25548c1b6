/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr record with another source than the software one: takes its branches until the program, and the processes it left
 * behind, have ended. The trace has the same form; data that the source cannot provide is marked as missing.
 */
#include "session/record_source.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "session/new_file.h"
#include "session/program.h"
#include "session/relay.h"
#include "session/source_choice.h"

#define STEP_MILLISECONDS 20u

struct recording {
  const struct record_source_options *options;
  struct lb_trace_writer *writer;
  struct source_sink trace; /* the writer's own */
  bool is_full;             /* the limit is reached: the rest is left out */
};

/* ---- the trace, up to its limit ---- */

static int sink_module(void *data, const struct lb_trace_module *module)
{
  struct recording *recording = data;

  return recording->is_full ? 0 : recording->trace.module(recording->trace.data, module);
}

static int sink_code(void *data, const struct lb_trace_code *code)
{
  struct recording *recording = data;

  return recording->is_full ? 0 : recording->trace.code(recording->trace.data, code);
}

static int sink_stream(void *data, const struct lb_trace_stream *stream, uint32_t *ret_number)
{
  struct recording *recording = data;

  *ret_number = 0;
  return recording->is_full ? 0 : recording->trace.stream(recording->trace.data, stream, ret_number);
}

static int limit_reach(struct recording *recording)
{
  const struct lb_trace_gap gap = {.stream = LB_TRACE_ALL, .reason = LB_TRACE_LOST};
  int r = lb_trace_writer_gap(recording->writer, &gap);

  recording->is_full = true;
  message("%s: the trace has reached its size limit; the program runs on, unrecorded", recording->options->output);
  return r < 0 ? r
               : lb_trace_writer_meta(recording->writer, &(struct lb_trace_meta){"remark", "reached its size limit"});
}

static int sink_branches(void *data, uint32_t stream, const struct lb_branch *branches, size_t count)
{
  struct recording *recording = data;
  uint64_t limit = recording->options->limit;
  int r;

  if (recording->is_full)
    return 0;
  r = recording->trace.branches(recording->trace.data, stream, branches, count);
  if (r >= 0 && limit && lb_trace_writer_size(recording->writer).bytes >= limit)
    r = limit_reach(recording);
  return r;
}

static int sink_gap(void *data, const struct lb_trace_gap *gap)
{
  struct recording *recording = data;

  return recording->is_full ? 0 : recording->trace.gap(recording->trace.data, gap);
}

static int sink_describe(void *data, uint32_t stream, const char *key, const char *value)
{
  struct recording *recording = data;

  return recording->is_full ? 0 : recording->trace.describe(recording->trace.data, stream, key, value);
}

static int sink_stamp(void *data, uint32_t stream, const struct trace_stamp *stamp)
{
  struct recording *recording = data;

  return recording->is_full ? 0 : recording->trace.stamp(recording->trace.data, stream, stamp);
}

/* The meta `clock`, as of the process recorder. */
static void clock_note(struct lb_trace_writer *writer, const struct source *source)
{
  struct timespec monotonic, real;
  uint64_t passed, wall;
  char value[96];

  if (clock_gettime(CLOCK_MONOTONIC, &monotonic) || clock_gettime(CLOCK_REALTIME, &real))
    return;
  passed = (uint64_t)monotonic.tv_sec * 1000000000 + (uint64_t)monotonic.tv_nsec - source_clock(source);
  wall = (uint64_t)real.tv_sec * 1000000000 + (uint64_t)real.tv_nsec;
  snprintf(value, sizeof(value), "system monotonic %" PRIu64 " realtime %" PRIu64, source_clock(source), wall - passed);
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"clock", value});
}

/* ---- messages at the end ---- */

static void totals_show(const struct record_source_options *options, const struct source_state *state,
                        struct lb_trace_size size)
{
  struct stat status;
  bool is_file = stat(options->output, &status) == 0 && S_ISREG(status.st_mode);
  uint64_t branches = size.branches, bytes = is_file ? (uint64_t)status.st_size : size.bytes;

  message("%s: %" PRIu64 " %sbranches of %" PRIu64 " thread%s in %" PRIu64 " process%s, %" PRIu64 " bytes, by %s",
          options->output, branches, source_is_complete(options->source.kind) ? "" : "sampled ", state->threads,
          state->threads == 1 ? "" : "s", state->processes, state->processes == 1 ? "" : "es", bytes,
          source_word(options->source.kind));
}

/* Losses are reported even with --quiet, because they mean that something is wrong. */
static void losses_show(const struct record_source_options *options, const struct source_state *state)
{
  if (state->losses)
    message("warning: %s: branches were lost in %" PRIu64
            " places, which the trace marks as gaps; a larger --ring may help, --source software loses none",
            options->output, state->losses);
}

static void end_note(struct lb_trace_writer *writer, const struct source_state *state)
{
  bool is_signal = WIFSIGNALED(state->status);
  char value[64];

  snprintf(value, sizeof(value), "%" PRIu32 " %s %d", state->process, is_signal ? "signal" : "exit",
           is_signal ? WTERMSIG(state->status) : WEXITSTATUS(state->status));
  lb_trace_writer_meta(writer, &(struct lb_trace_meta){"end", value}); /* the writer keeps its error */
}

/* ---- the program ---- */

static void program_follow(const struct source_state *state)
{
  if (state->has_ended)
    relay_end();
  else
    relay_follow();
}

/* Waits until no process is left. After the program itself has ended, a signal to lbr ends the wait. */
static int source_follow(struct source *source)
{
  const struct source_state *state = source_state(source);
  unsigned signals = relay_count();
  int r = 0;

  while (r >= 0 && !state->is_over) {
    r = source_step(source, STEP_MILLISECONDS);
    program_follow(state);
    if (!state->has_ended)
      signals = relay_count();
    else if (signals != relay_count())
      break;
  }
  return r < 0 ? r : source_finish(source);
}

/* If recording has failed, the program continues. */
static void program_wait(struct source *source)
{
  const struct source_state *state = source_state(source);

  while (!state->has_ended) {
    source_step(source, STEP_MILLISECONDS);
    program_follow(state);
  }
}

static int trace_close(const struct record_source_options *options, struct lb_trace_writer *writer, int error)
{
  int r;

  new_file_back_up(options->output);
  r = lb_trace_writer_close(writer);
  if (error >= 0)
    error = r;
  if (error < 0)
    message("%s: the trace could not be written: %s", options->output, lb_strerror(error));
  return error;
}

static void trace_drop(const struct record_source_options *options, struct lb_trace_writer *writer)
{
  char *name;

  if (asprintf(&name, "%s.incomplete", options->output) >= 0) {
    unlink(name);
    free(name);
  }
  lb_trace_writer_close(writer);
}

int record_source_run(const struct record_source_options *options, struct lb_trace_writer *writer, int *ret_status)
{
  struct recording recording = {.options = options, .writer = writer, .trace = source_sink_trace(writer)};
  const struct source_sink sink = {&recording,    sink_module, sink_code,     sink_stream,
                                   sink_branches, sink_gap,    sink_describe, sink_stamp};
  struct source_problem problem;
  struct source *source;
  struct source_state state;
  struct lb_trace_size size;
  int r;

  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  r = source_start(source_kernel_real(), &options->source, options->path, options->program, environ, &sink, &source,
                   &problem);
  program_aslr_restore();
  if (r < 0) {
    trace_drop(options, writer);
    return source_choice_complain(options->program[0], r, &problem);
  }
  clock_note(writer, source);
  if (source_sampling(source))
    lb_trace_writer_meta(writer, &(struct lb_trace_meta){"sampling", source_sampling(source)});
  relay_to((int)source_state(source)->process, true);
  r = source_follow(source);
  program_wait(source);
  state = *source_state(source);
  *ret_status = state.status;
  source_free(source);
  end_note(writer, &state);
  size = lb_trace_writer_size(writer);
  r = trace_close(options, writer, r);
  if (r >= 0)
    losses_show(options, &state);
  if (r >= 0 && !options->is_quiet)
    totals_show(options, &state, size);
  return r < 0 ? program_status_without_trace(state.status) : 0;
}
