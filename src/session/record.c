/* SPDX-License-Identifier: Apache-2.0
 *
 * The loop while a program is recorded: takes its log, waits for it and for the processes it left behind, and shows the
 * progress. relay.c forwards signals to the program; the trace is closed when the program has ended. Recording can end
 * before the program, which then continues.
 */
#include "session/record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "session/new_file.h"
#include "session/relay.h"

#define SLEEP_MILLISECONDS 50u
#define LEFT_SECONDS 2.0   /* time in which a process that the program left behind must prove to be recorded */
#define PROGRESS_FIRST 1.0 /* seconds before the first progress line, and between two lines */
#define PROGRESS_STEP 0.25

/* ---- progress ---- */

void record_progress_begin(struct record_progress *progress)
{
  *progress = (struct record_progress){.next = clock_seconds() + PROGRESS_FIRST};
}

void record_progress_tell(struct record_progress *progress, const struct record_session *session, double now)
{
  if (!session->progress || now < progress->next || !session->writer)
    return;
  progress->next = now + PROGRESS_STEP;
  progress->is_shown |= session->progress(session, false);
}

void record_progress_hide(struct record_progress *progress, const struct record_session *session)
{
  if (progress->is_shown)
    session->progress(session, true);
  progress->is_shown = false;
}

/* ---- the end of the trace ---- */

static void close_complain(const struct record_session *session)
{
  const char *end = session->has_ended ? "" : ". The program runs on, unrecorded";
  char *name = NULL;

  if (asprintf(&name, "%s.incomplete", session->output) >= 0 && access(name, F_OK) == 0)
    message("%s: cannot write the trace: %s; %s has the branches before that%s", session->output,
            lb_strerror(session->close_error), name, end);
  else
    message("%s: cannot write the trace: %s%s", session->output, lb_strerror(session->close_error), end);
  free(name);
}

/* The program can overwrite the memory that it shares with lbr. The trace keeps the branches recorded before that. */
static void log_complain(const struct record_session *session, const struct process_drain_state *state)
{
  const char *end = session->has_ended ? "" : ". The program runs on, unrecorded";

  if (state->end == DRAIN_DESTROYED)
    message("%s: the program overwrote the log that it shares with lbr; the trace has what came before%s",
            session->output, end);
  else if (state->spoiled)
    message("%s: the program overwrote the log of %u thread%s; the trace lacks the branches after that",
            session->output, state->spoiled, state->spoiled == 1 ? "" : "s");
}

/* The end of the program is a fact of the run: "end", "PROCESS exit STATUS" or "PROCESS signal NUMBER". */
static void session_note_end(const struct record_session *session)
{
  bool is_signal = WIFSIGNALED(session->status);
  char value[64];

  if (!session->has_ended || (!is_signal && !WIFEXITED(session->status)))
    return;
  snprintf(value, sizeof(value), "%d %s %d", (int)session->process.pid, is_signal ? "signal" : "exit",
           is_signal ? WTERMSIG(session->status) : WEXITSTATUS(session->status));
  lb_trace_writer_meta(session->writer, &(struct lb_trace_meta){"end", value}); /* the writer keeps its error */
}

void record_session_close(struct record_session *session)
{
  const struct process_drain_state *state = process_drain_finish(session->drain, session->is_over);

  if (!session->writer)
    return;
  session_note_end(session);
  lb_trace_writer_flush(session->writer);
  session->size = lb_trace_writer_size(session->writer);
  record_slowdown(session, session->slowdown);
  new_file_back_up(session->output);
  session->close_error = lb_trace_writer_close(session->writer);
  session->writer = NULL;
  if (state->end == DRAIN_FAILED && session->close_error >= 0)
    session->close_error = state->error;
  if (session->close_error < 0)
    close_complain(session);
  else
    log_complain(session, state);
}

/* Removes the unfinished file, so that the writer cannot give it its name. */
void record_session_drop(struct record_session *session)
{
  char *name;

  if (session->writer && asprintf(&name, "%s.incomplete", session->output) >= 0) {
    unlink(name);
    free(name);
  }
  lb_trace_writer_close(session->writer);
  session->writer = NULL;
  session->is_dropped = true;
}

static bool is_nothing(const struct record_session *session)
{
  return session->writer && session->state->threads == 0 && process_error(&session->process, NULL, NULL, NULL) != 0 &&
         !process_is_destroyed(&session->process);
}

/* Recording has ended before the program: finishes the trace now and tells the user. */
static void session_stop(struct record_session *session, struct record_progress *progress)
{
  record_progress_hide(progress, session);
  record_session_close(session);
  if (session->state->end == DRAIN_LIMIT && session->close_error >= 0)
    message("%s: the trace has reached its size limit; the program runs on, unrecorded", session->output);
}

/* ---- waiting ---- */

/* Processes that the program leaves behind become our children (PR_SET_CHILD_SUBREAPER), and are reaped when they
 * end. */
void record_session_reap(struct record_session *session)
{
  int status, pid;

  while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
    if (pid == session->process.pid) {
      relay_end();
      session->has_ended = true;
      session->status = status;
    }
  if (pid < 0 && errno == ECHILD)
    session->has_ended = session->is_over = true;
}

/* The time since the program's end. */
struct aftermath {
  double seen;      /* when the program, or a recorded process that it left behind, was last alive */
  unsigned signals; /* signals received by then */
};

static bool session_goes_on(const struct record_session *session, struct aftermath *after, double now)
{
  if (!session->has_ended) {
    *after = (struct aftermath){now, relay_count()};
    return true;
  }
  if (session->is_over || !session->writer || relay_count() != after->signals)
    return false;
  if (session->state->alive > 0)
    after->seen = now;
  return !session->is_alone && now - after->seen < LEFT_SECONDS;
}

static void session_ring(const void *process)
{
  process_drain_ring(process);
}

void record_session_run(struct record_session *session)
{
  struct record_progress progress;
  struct aftermath after = {clock_seconds(), relay_count()};
  double now;

  record_progress_begin(&progress);
  relay_to(session->process.pid, false);
  relay_bell(session_ring, &session->process);
  do {
    session->state = process_drain_step(session->drain, SLEEP_MILLISECONDS);
    if (session->state->end != DRAIN_NONE && session->writer)
      session_stop(session, &progress);
    relay_follow();
    record_session_reap(session);
    now = clock_seconds();
    record_progress_tell(&progress, session, now);
  } while (session_goes_on(session, &after, now));
  relay_bell(NULL, NULL);
  record_progress_hide(&progress, session);
  if (is_nothing(session))
    record_session_drop(session);
  else
    record_session_close(session);
}
