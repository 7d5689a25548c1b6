/* SPDX-License-Identifier: Apache-2.0
 *
 * `lbr record -p`: attaches to processes, records them until they end, the time is over, the trace has its size or lbr
 * is told to end, and leaves them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "session/program.h"
#include "session/record.h"
#include "session/relay.h"
#include "session/source_choice.h"
#include "session/trace_meta.h"

#define SLEEP_MILLISECONDS 50u
#define LOOK_SECONDS 0.2 /* between two looks whether the processes are there */
#define PARTS 4u

static void session_ring(const void *process)
{
  process_drain_ring(process);
}

/* Records until it is over. */
static void session_run(struct record_session *session, const struct record_arguments *arguments)
{
  double now = clock_seconds(), end = arguments->seconds > 0 ? now + arguments->seconds : 0, look = now + LOOK_SECONDS;
  struct record_progress progress;

  record_progress_begin(&progress);
  relay_bell(session_ring, &session->process);
  while (!session->has_ended && !relay_count()) { /* a signal that came before ends it, too */
    double left = end ? end - now : 1;

    session->state = process_drain_step(session->drain, left < 0.05 ? 1 : SLEEP_MILLISECONDS);
    now = clock_seconds();
    if (session->state->end != DRAIN_NONE || (end && now >= end) ||
        process_error(&session->process, NULL, NULL, NULL) != 0)
      break;
    if (now >= look) {
      session->has_ended = attach_is_over(&arguments->attached);
      look = now + LOOK_SECONDS;
    }
    record_progress_tell(&progress, session, now);
  }
  relay_bell(NULL, NULL);
  record_progress_hide(&progress, session);
}

static void stops_show(double attached, double left)
{
  if (left > 0)
    message("the processes stood still for %.1f ms to attach and %.1f ms to leave", attached * 1e3, left * 1e3);
  else
    message("the processes stood still for %.1f ms to attach", attached * 1e3);
}

/* Returns an exit status. */
static int session_record(struct record_session *session, const struct record_arguments *arguments)
{
  uint64_t part = PARTS;
  struct process_options options = {.is_all = true, .is_alone = arguments->is_alone};
  int r;

  while (part < arguments->ring)
    part *= 2;
  options.part_size = arguments->ring ? (uint32_t)(part / PARTS) : 0;
  r = attach_open(&options, &arguments->attached, &session->process);
  if (r < 0) {
    record_session_drop(session);
    return PROGRAM_FAILURE;
  }
  double attached = process_stopped(&session->process);
  r = process_drain_new(&session->process, session->writer, arguments->limit, &session->drain);
  if (r >= 0)
    session_run(session, arguments);
  int left = attach_close(&session->process, session->drain);
  if (r < 0) {
    message("%s", lb_strerror(r));
    record_session_drop(session);
    return PROGRAM_FAILURE;
  }
  session->is_over = left >= 0;
  session->state = process_drain_step(session->drain, 0);
  bool is_limit = session->state->end == DRAIN_LIMIT;
  record_session_close(session);
  if (session->close_error < 0)
    return PROGRAM_FAILURE;
  if (is_limit)
    message("%s: the trace has reached its size limit", session->output);
  if (!session->is_quiet) {
    record_totals_show(session);
    stops_show(attached, process_stopped(&session->process));
  }
  return left < 0 ? PROGRAM_FAILURE : 0;
}

int record_burst(const struct record_arguments *arguments, const char *name)
{
  struct record_session session = {.is_quiet = true, .is_alone = arguments->is_alone, .output = name};
  int r = lb_trace_writer_open(name, &session.writer);

  if (r < 0) {
    message("%s: %s", name, lb_strerror(r));
    return r;
  }
  int status = session_record(&session, arguments);
  process_drain_free(session.drain);
  process_done(&session.process);
  return status ? -EIO : 0;
}

int record_attach(const struct record_arguments *arguments)
{
  struct record_session session = {
    .is_quiet = arguments->is_quiet, .is_alone = arguments->is_alone, .progress = arguments->progress};
  char **words = attach_words(arguments->attached.processes[0]);
  char *name = words ? record_output_name(arguments, words) : NULL;
  int status = PROGRAM_FAILURE;

  if (!name)
    message("no memory");
  else if (record_open(name, &session.writer) >= 0) {
    session.output = name;
    trace_meta_put_all(session.writer, "process", "recorder", source_word(arguments->source), words);
    status = session_record(&session, arguments);
    process_drain_free(session.drain);
    process_done(&session.process);
  }
  if (words)
    free(words[0]);
  free(words);
  free(name);
  return status;
}
