/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr machine: boots a PC whose processor records branches. Connects the machine to files and the terminal, runs it,
 * and shows the result.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/machine_options.h"
#include "gdb/gdb.h"
#include "session/session.h"

#define MACHINE_DIED 3 /* exit status */

/* ---- while it runs ---- */

/* Shows no progress where it would mix with the guest's output. */
static void progress_show(const struct machine_session *session, const struct machine_progress *progress)
{
  bool is_mixed = isatty(STDOUT_FILENO) && (session->serial == stdout || session->bus == stdout);

  if (!isatty(STDERR_FILENO) || is_mixed)
    return;
  if (progress)
    fprintf(stderr, "\r%.1f million instructions, %.0f a microsecond, %.3f s of the guest's time\033[K",
            progress->retired * 1e-6, progress->rate * 1e-6, progress->seconds);
  else
    fputs("\r\033[K", stderr);
}

/* ---- the end ---- */

static int session_status(const struct machine_session *session)
{
  const char *wanted = session->arguments->until_text;

  if (session->end == END_FAILED)
    return CLI_FAILURE;
  if (session->end == END_SHUTDOWN || session->end == END_UNIMPLEMENTED)
    return MACHINE_DIED;
  if (session->end == END_EXIT)
    return (int)((machine_exit_value(session->machine) << 1 | 1) & 0xFF); /* as QEMU's isa-debug-exit */
  if (session->end == END_ASLEEP) {
    cli_error("the guest sleeps (ACPI S3), and nothing will wake it: no alarm of the real-time clock is enabled");
    return CLI_FAILURE;
  }
  if (session->end == END_INTERRUPTED)
    return machine_session_signal ? 128 + machine_session_signal : CLI_OK;
  if (wanted && session->end != END_TEXT) {
    cli_error("'%s' was not seen before the guest ended (%s)", wanted, machine_session_end_name(session->end));
    return CLI_FAILURE;
  }
  if (machine_has_no_boot(session->machine) && session->end != END_TEXT && session->end != END_OFF) {
    cli_error(
      "no bootable device: no drive has a boot sector (55 AA at its end), or what it booted gave up by INT 18h");
    return CLI_FAILURE;
  }
  return CLI_OK;
}

static void events_complain(const struct machine_view *view)
{
  struct text text = {0};

  if (machine_text_unmodelled(view, &text))
    cli_error("counter events programmed but not modelled: %s; they count 0, and 'lbr cpu %s' lists those that count",
              text_string(&text), machine_cpu(view->machine)->model->name);
  text_done(&text);
}

static struct machine_view session_view(const struct machine_session *session, const struct machine_show *show)
{
  return (struct machine_view){session->machine, session->symbols, show->dumps};
}

static struct machine_result session_result(const struct machine_session *session)
{
  return (struct machine_result){
    .end = machine_session_end_name(session->end),
    .has_exit = session->end == END_EXIT,
    .seconds = session->seconds,
    .wants_screens = session->screen == SCREEN_ALL,
    .serial = text_string(&session->heard),
    .serial_dropped = session->heard_dropped,
    .last = session->trace.last,
    .last_size = TRACE_LAST,
    .total = session->trace.total,
  };
}

/* Shows everything about the death of a guest on stderr. */
static void death_show(const struct machine_session *session, const struct machine_show *show)
{
  struct machine_view view = session_view(session, show);
  struct machine_result result = session_result(session);
  const char *reason = machine_stop_reason(session->machine);
  struct text text = {0};

  cli_error("%s%s%s, after %llu instructions", session->end == END_SHUTDOWN ? "the guest shut down" : "not implemented",
            *reason ? ": " : "", reason, (unsigned long long)machine_retired(session->machine));
  machine_text_death(&view, &result, &text);
  fputs(text_string(&text), stderr);
  text_done(&text);
}

static void session_show(struct machine_session *session, const struct machine_show *show)
{
  struct report_output output = cli_output();
  struct machine_view view = session_view(session, show);
  struct machine_result result = session_result(session);

  if (show->is_json) {
    output.wants_color = false;
    machine_page_result(&view, &result, &output);
    return;
  }
  if (session->is_serial_text)
    serial_text_end(&session->serial_text, stdout);
  if (session->serial == stdout && session->heard.length && session->heard.data[session->heard.length - 1] != '\n')
    putchar('\n');
  if (session->screen != SCREEN_NONE)
    machine_page_screen(&view, session->screen == SCREEN_ALL, &output);
  machine_page_dumps(&view, show->format, &output);
  events_complain(&view);
  if (isatty(STDERR_FILENO) && session->end != END_SHUTDOWN && session->end != END_UNIMPLEMENTED)
    cli_error("ended: %s, after %llu instructions in %.2f s", machine_session_end_name(session->end),
              (unsigned long long)machine_retired(session->machine), session->seconds);
}

static int session_run_and_show(struct machine_session *session, const struct machine_show *show,
                                struct gdb_machine *gdb)
{
  int status;

  machine_session_catch_signals(session);
  machine_session_run(session);
  gdb_machine_close(gdb);
  if (machine_trace_close(session) < 0)
    session->end = END_FAILED;
  session_show(session, show);
  if (session->end == END_SHUTDOWN || session->end == END_UNIMPLEMENTED)
    death_show(session, show);
  status = session_status(session);
  if (session->arguments->save && machine_session_save(session) < 0 && status == CLI_OK)
    status = CLI_FAILURE;
  return machine_session_close_outputs(session) < 0 ? CLI_FAILURE : status;
}

/* Sets the options that were not given, depending on the others and on where the output goes. */
static int session_begin(struct machine_session *session, struct machine_arguments *arguments,
                         const struct machine_show *show)
{
  bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
  bool has_limit = arguments->until_instructions || arguments->until_seconds > 0;
  bool has_until = has_limit || arguments->until_idle || arguments->until_halt || arguments->until_text;

  session->is_json = show->is_json || show->format == REPORT_JSON;
  session->screen = arguments->screen;
  if (session->screen == SCREEN_LIVE && !is_terminal) {
    cli_error("--screen live wants a terminal for input and output; --screen final needs none");
    return CLI_USAGE;
  }
  if (session->screen == SCREEN_DEFAULT) {
    bool is_taken = show->is_json || (arguments->serial && !strcmp(arguments->serial, "stdio")) ||
                    (arguments->bus && !strcmp(arguments->bus, "-"));

    session->screen = is_terminal && !is_taken ? SCREEN_LIVE : SCREEN_FINAL;
    if (show->format == REPORT_JSON && !show->is_json)
      session->screen = SCREEN_NONE; /* standard output is for the JSON objects */
  }
  session->is_serial_live = is_terminal && arguments->serial && !strcmp(arguments->serial, "stdio");
  /* If no user can type and no debugger can connect, an idle guest will print no further text and execute no HLT: the
   * run ends then. */
  if (session->screen != SCREEN_LIVE && !session->is_serial_live && !arguments->gdb &&
      (!has_until || arguments->until_text || arguments->until_halt))
    arguments->until_idle = true;
  return CLI_OK;
}

/* Returns the exit status. */
static int machine_run_and_show(struct machine_session *session, struct machine_arguments *arguments,
                                const struct machine_show *show, char **argv)
{
  struct gdb_machine *gdb = NULL;
  const struct machine_file *kernel = &session->files.started;
  int r = machine_session_open(session, arguments);

  if (r >= 0 && arguments->trace)
    r = machine_trace_open(session, kernel, argv);
  if (r >= 0 && arguments->gdb)
    r = gdb_machine_open(session, kernel, &gdb);
  return r < 0 ? CLI_FAILURE : session_run_and_show(session, show, gdb);
}

int cmd_machine(int argc, char **argv)
{
  struct machine_arguments arguments;
  struct machine_show show;
  struct machine_session *session = calloc(1, sizeof(*session));
  int status;

  if (!session) {
    cli_error("no memory");
    return CLI_FAILURE;
  }
  machine_arguments_read(&arguments, &show, argc, argv);
  session->console = stdout;
  session->progress = progress_show;
  status = session_begin(session, &arguments, &show);
  if (status == CLI_OK)
    status = machine_run_and_show(session, &arguments, &show, argv);
  machine_session_close(session);
  free(session);
  machine_arguments_done(&arguments);
  return status;
}
