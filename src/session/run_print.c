/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes a report of `lbr run` to the file that was asked for.
 */
#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "session/run.h"

static void report_write(struct run_session *session, const struct text *text)
{
  const char *bytes = text_string(text);
  size_t size = text->length;

  while (size && !session->is_broken) {
    ssize_t written = write(session->fd, bytes, size);

    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0) {
      session->is_broken = true;
      message("cannot write the report: %s", lb_strerror(-errno));
      return;
    }
    bytes += written;
    size -= (size_t)written;
  }
}

static void report_flush(void *data, struct text *text)
{
  report_write(data, text);
  text->length = 0;
}

/* The width of the terminal that reports go to; 0 if they go elsewhere. */
static unsigned line_width(int fd)
{
  struct winsize size;

  return isatty(fd) && ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* Problems with files are ignored here: the report itself says where names are missing. */
static void file_ignore(void *data, const char *name, const char *why)
{
  (void)data, (void)name, (void)why;
}

/* Whether the limit of --timeout ended the program. */
static bool death_is_timeout(const struct run_session *session, const struct analysis_death *death)
{
  return session->is_timed_out && (int)death->process == session->process.pid &&
         ((death->ending == ANALYSIS_DIED && death->signal == SIGTERM && death->code == SI_USER) ||
          (death->ending == ANALYSIS_KILLED && (death->signal == SIGKILL || death->signal == SIGTERM)));
}

void run_report_print(struct run_session *session, const struct analysis_death *seen,
                      const struct analysis_places *places)
{
  struct analysis_death timed = *seen;
  const struct analysis_death *death = &timed;
  struct trace_input input = {0};
  struct report_death_options options = {.show = session->arguments->show,
                                         .last = (size_t)session->arguments->last,
                                         .files = &input.files,
                                         .format = session->arguments->format,
                                         .wants_color = session->wants_color,
                                         .width = line_width(session->fd),
                                         .places = places,
                                         .flush = report_flush,
                                         .data = session};
  struct text text = {0};
  int r = 0;

  timed.timeout = death_is_timeout(session, seen) ? session->arguments->timeout : 0;
  trace_input_files(&input);
  input.files.warn = file_ignore;
  if (session->has_reported && options.format != REPORT_JSON)
    r = text_add(&text, "\n");
  if (r >= 0)
    r = report_death_print(&text, death, &options);
  if (r == -ENOMEM)
    message("no memory for the report");
  session->has_reported = true;
  report_write(session, &text);
  text_done(&text);
}

void run_report_no_names(struct run_session *session)
{
  struct text text = {0};

  if (text_add(&text, "  no symbols found: do not strip the program to see names; compile it with -g to see lines\n") >=
      0)
    report_write(session, &text);
  text_done(&text);
}
