/* SPDX-License-Identifier: Apache-2.0
 *
 * The engine of `lbr top`. Each page is made from a trace in a folder of its own, which is removed when the page is
 * shown. With processes, the trace is a recording of a moment (record_burst); without, it holds what is in the logs of
 * the recordings that go on now (process_peek_write).
 */
#include "session/top.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/base.h"
#include "session/relay.h"

#define START_SECONDS 5.0 /* within which a recording that begins shows a thread */
#define START_WAIT 0.05
#define PEEK_TRACE "recording"

/* ---- the terminal ---- */

static struct termios terminal_before;
static bool is_terminal_changed;

static void terminal_restore(void)
{
  if (is_terminal_changed)
    tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
  is_terminal_changed = false;
}

/* Keys arrive without Enter, and are not shown. */
static void terminal_set(void)
{
  struct termios raw;

  if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &terminal_before) < 0)
    return;
  raw = terminal_before;
  raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
  is_terminal_changed = tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0;
}

/* Waits until the time is over. Returns false: the user wants to end. */
static bool interval_wait(double seconds)
{
  double end = clock_seconds() + seconds;
  unsigned signals = relay_count();
  char key;

  for (double left = seconds; left > 0 && relay_count() == signals; left = end - clock_seconds()) {
    struct pollfd input = {.fd = is_terminal_changed ? STDIN_FILENO : -1, .events = POLLIN};

    if (poll(&input, 1, (int)(left * 1e3) + 1) > 0 && (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q'))
      return false;
  }
  return relay_count() == signals;
}

/* ---- processes that lbr records itself ---- */

/* The page begins with the name of its trace: "redis-server.4711". */
static void trace_name(int process, char name[64])
{
  char path[64], word[32] = "process";

  snprintf(path, sizeof(path), "/proc/%d/comm", process);
  FILE *file = fopen(path, "re");
  if (file) {
    if (!fgets(word, sizeof(word), file))
      word[0] = 0;
    fclose(file);
  }
  word[strcspn(word, "\n")] = 0;
  for (char *at = word; *at; at++)
    *at = *at == '/' ? '_' : *at;
  snprintf(name, 64, "%s.%d", *word && *word != '.' ? word : "process", process);
}

/* The traces are in the current folder. */
static int processes_run(const struct top_session *session)
{
  char trace[64];
  int r = 0;

  trace_name(session->record.attached.processes[0], trace);
  for (uint64_t i = 0; r >= 0 && (!session->count || i < session->count); i++) {
    unsigned signals = relay_count();

    r = record_burst(&session->record, trace);
    if (r >= 0)
      r = session->show(session->data, &(struct top_view){.trace = trace, .is_new_screen = is_terminal_changed});
    unlink(trace);
    bool is_last = i + 1 == session->count || relay_count() != signals;
    if (r < 0 || is_last || !interval_wait(session->interval - session->record.seconds) ||
        attach_is_over(&session->record.attached))
      break;
  }
  return r;
}

/* ---- recordings of others ---- */

/* Returns 1 if there is a page; 0: no thread of the recording can be seen; or negative after a message. */
static int peek_show(const struct top_session *session, struct process_peek *peek, bool is_first)
{
  struct process_peek_view view;
  struct lb_trace_writer *writer;
  char trace[64];
  int r = lb_trace_writer_open(PEEK_TRACE, &writer);

  if (r >= 0)
    r = process_peek_write(peek, writer, &view);
  if (r < 0) {
    message("%s: %s", PEEK_TRACE, lb_strerror(r));
    unlink(PEEK_TRACE ".incomplete");
    return r;
  }
  if (!view.process) {
    unlink(PEEK_TRACE);
    return 0;
  }
  trace_name(view.process, trace);
  r = rename(PEEK_TRACE, trace) < 0 ? -errno : 0;
  if (r >= 0)
    r = session->show(
      session->data,
      &(struct top_view){.trace = trace, .is_new_screen = is_first && is_terminal_changed, .peek = &view});
  unlink(trace);
  return r < 0 ? r : 1;
}

/* Returns how many recordings were shown, or negative after a message. */
static int peeks_show(const struct top_session *session, struct process_peeks *peeks)
{
  int r = process_peeks_look(peeks), shown = 0;

  if (r < 0)
    message("cannot look for recordings in /proc: %s", strerror(-r));
  for (size_t i = 0; i < peeks->count && r >= 0; i++) {
    r = peek_show(session, peeks->list[i], !shown);
    shown += r > 0;
  }
  return r < 0 ? r : shown;
}

static int peeks_complain(const struct process_peeks *peeks)
{
  if (peeks->count)
    message("the processes that are recorded now cannot be seen from here: use sudo");
  else if (peeks->refused)
    message("what is recorded now belongs to another user: use sudo, or name a process with -p");
  else
    message("nothing is being recorded now; name a process with -p");
  return -ESRCH;
}

/* A recording that has just begun has no thread yet. */
static int recordings_run(const struct top_session *session)
{
  struct process_peeks peeks = {0};
  uint64_t pages = 0;
  double start = clock_seconds();
  int r = 0;
  bool goes_on = true;

  while (r >= 0 && goes_on) {
    unsigned signals = relay_count();
    int shown = r = peeks_show(session, &peeks);

    pages += shown > 0;
    if (r < 0 || relay_count() != signals || (session->count && pages == session->count))
      break;
    bool is_starting = !pages && peeks.count && clock_seconds() - start < START_SECONDS;
    if (!pages && !is_starting)
      r = peeks_complain(&peeks);
    goes_on = peeks.count && interval_wait(is_starting ? START_WAIT : session->interval);
  }
  process_peeks_done(&peeks);
  return r;
}

int top_run(const struct top_session *session)
{
  char folder[] = "/tmp/lbr-top-XXXXXX";

  if (!mkdtemp(folder) || chdir(folder) < 0) {
    int error = errno;

    message("%s: %s", folder, strerror(error));
    return -error;
  }
  relay_start(0);
  terminal_set();
  int r = session->record.attached.count ? processes_run(session) : recordings_run(session);
  terminal_restore();
  rmdir(folder);
  relay_restore();
  return r;
}
