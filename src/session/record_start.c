/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts a program and records it, with any source, into a trace that describes the run.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "session/new_file.h"
#include "session/program.h"
#include "session/record.h"
#include "session/record_source.h"
#include "session/relay.h"
#include "session/source_choice.h"
#include "session/trace_meta.h"

#define PARTS 4u /* of the log of a thread */

/* ---- the trace ---- */

#define STANDARD_OUTPUT "/dev/stdout"

char *record_output_name(const struct record_arguments *arguments, char *const *words)
{
  const char *slash = strrchr(words[0], '/'), *base = slash ? slash + 1 : words[0];
  bool is_title = arguments->attached.count; /* as of setproctitle(3): it has more words in one */
  int length = (int)(is_title ? strcspn(base, " :") : strlen(base));
  char *name;

  if (arguments->output)
    return strdup(strcmp(arguments->output, "-") ? arguments->output : STANDARD_OUTPUT);
  return asprintf(&name, "%.*s.lbr", length ? length : 7, length ? base : "program") < 0 ? NULL : name;
}

/* ---- messages at the end ---- */

static const char *plural(uint64_t count)
{
  return count == 1 ? "" : "s";
}

/* The size of a file is known, but not the number of bytes written to a pipe. */
void record_totals_show(const struct record_session *session)
{
  const struct process_drain_state *state = session->state;
  uint64_t branches = session->size.branches;
  struct stat status;
  char size[80] = "";

  if (strcmp(session->output, STANDARD_OUTPUT) != 0 && stat(session->output, &status) == 0 && S_ISREG(status.st_mode))
    snprintf(size, sizeof(size), ", %" PRIu64 " bytes, %.3g bits per branch", (uint64_t)status.st_size,
             branches ? 8 * (double)status.st_size / (double)branches : 0);
  message("%s: %" PRIu64 " branches of %" PRIu64 " thread%s in %" PRIu64 " process%s%s%s", session->output, branches,
          state->threads, plural(state->threads), state->processes, state->processes == 1 ? "" : "es", size,
          session->slowdown);
}

/* ---- recording ---- */

/* Returns an exit status. */
static int session_record(struct record_session *session, const struct record_arguments *arguments, const char *path)
{
  uint64_t part = PARTS;
  struct process_options options = {
    .has_store = !arguments->is_uncached, .is_all = true, .is_alone = arguments->is_alone};
  int r;

  while (part < arguments->ring)
    part *= 2;
  options.part_size = arguments->ring ? (uint32_t)(part / PARTS) : 0;
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  r = program_launch(&options, path, arguments->program, &session->process);
  program_aslr_restore();
  if (r >= 0) {
    r = process_drain_new(&session->process, session->writer, arguments->limit, &session->drain);
    if (r < 0)
      message("%s: %s", path, lb_strerror(r));
  }
  if (r < 0) {
    record_session_drop(session);
    if (session->process.pid > 0)
      kill(session->process.pid, SIGKILL); /* it would wait for lbr */
    return PROGRAM_FAILURE;
  }
  record_session_run(session);
  if (!process_is_destroyed(&session->process))
    program_show_error(&session->process, arguments->program[0], session->status);
  if (!session->is_dropped && !session->is_quiet && session->close_error >= 0)
    record_totals_show(session);
  return 0;
}

/* Another source than the software one. Returns an exit status. */
static int source_record(const struct record_arguments *arguments, const char *name, const char *path,
                         struct lb_trace_writer *writer)
{
  uint64_t aux = SOURCE_AUX_LEAST;
  struct record_source_options options = {.source = {.kind = arguments->source,
                                                     .period = arguments->period,
                                                     .kinds = arguments->kinds,
                                                     .is_alone = arguments->is_alone,
                                                     .steps_singly = source_choice_steps_singly()},
                                          .output = name,
                                          .limit = arguments->limit,
                                          .is_quiet = arguments->is_quiet,
                                          .path = path,
                                          .program = arguments->program};
  int status, r;

  while (aux < arguments->ring)
    aux *= 2;
  options.source.aux_size = arguments->ring ? aux : 0;
  r = record_source_run(&options, writer, &status);
  return r ? r : program_pass_on(status);
}

static int software_record(const struct record_arguments *arguments, const char *name, const char *path,
                           struct lb_trace_writer *writer)
{
  struct record_session session = {.output = name,
                                   .is_quiet = arguments->is_quiet,
                                   .is_alone = arguments->is_alone,
                                   .progress = arguments->progress,
                                   .writer = writer};
  int status = session_record(&session, arguments, path);

  process_drain_free(session.drain);
  process_done(&session.process);
  if (!status && session.close_error < 0)
    status = program_status_without_trace(session.status);
  return status ? status : program_pass_on(session.status);
}

/* The trace goes to standard output; the program's own standard output goes to standard error. */
static int stdout_open(struct lb_trace_writer **ret_writer)
{
  int fd, r;

  if (isatty(STDOUT_FILENO)) {
    message("standard output is a terminal, where a trace is of no use: redirect it, or name a file");
    return -ENOTTY;
  }
  relay_start(0);
  fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  r = fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ? -errno : lb_trace_writer_open_fd(fd, ret_writer);
  if (r < 0)
    message("standard output: %s", lb_strerror(r));
  if (r < 0 && fd >= 0)
    close(fd);
  return r;
}

/* From here on, no signal leaves an incomplete trace behind. Opening a pipe waits for its reader; a signal may end that
 * wait. */
int record_open(const char *name, struct lb_trace_writer **ret_writer)
{
  struct stat status;

  if (!strcmp(name, STANDARD_OUTPUT))
    return stdout_open(ret_writer);
  bool can_wait = stat(name, &status) == 0 && S_ISFIFO(status.st_mode);
  int r;

  if (!can_wait)
    relay_start(0);
  r = lb_trace_writer_open(name, ret_writer);
  if (can_wait)
    relay_start(0);
  if (r < 0)
    new_file_complain_trace(name, r);
  return r;
}

int record_run(const struct record_arguments *arguments)
{
  struct lb_trace_writer *writer = NULL;
  char *name, *path;
  int r, status = program_find(arguments->program[0], &path);

  if (status)
    return status;
  status = program_aslr_set(arguments->aslr, arguments->source, arguments->program[0]);
  if (status) {
    free(path);
    return status;
  }
  status = PROGRAM_FAILURE;
  name = record_output_name(arguments, arguments->program);
  if (!name)
    message("no memory");
  r = name ? record_open(name, &writer) : -ENOMEM;
  if (r >= 0) {
    /* the writer keeps its error */
    trace_meta_put_all(writer, "process", "recorder", source_word(arguments->source), arguments->program);
    status = (arguments->source == SOURCE_SOFTWARE ? software_record : source_record)(arguments, name, path, writer);
  }
  free(name);
  free(path);
  return status;
}
