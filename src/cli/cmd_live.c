/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr live: the branch records of this machine's own processor, read through the msr device. Zhang Yinkui's `!lbr` does
 * the same in a kernel debugger: stop recording, print, continue.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/live_options.h"
#include "cli/live_page.h"
#include "session/session.h"

/* Overwrites the last page on a terminal: clears each line to its end, then everything below. */
static void page_put_in_place(const char *line)
{
  fputs("\033[H", stdout);
  while (*line) {
    size_t length = strcspn(line, "\n");

    printf("%.*s\033[K\n", (int)length, line);
    line += length + (line[length] == '\n');
  }
  fputs("\033[J", stdout);
}

static void page_write(const struct live_session *session, const struct live_reading *reading, bool is_json,
                       const char *page)
{
  if (session->arguments->wants_watch && !is_json && isatty(STDOUT_FILENO))
    page_put_in_place(page);
  else
    printf("%s%s", reading->number && !is_json ? "\n" : "", page);
}

static int page_show(void *data, struct live_session *session, const struct live_reading *reading)
{
  const struct live_show *show = data;
  struct text text = {0};
  int r = live_page_print(&text, session, reading, show);

  if (r < 0)
    cli_error("%s", lb_strerror(r));
  else
    page_write(session, reading, show->format == REPORT_JSON, text_string(&text));
  text_done(&text);
  if (r < 0)
    return r;
  fflush(stdout);
  return ferror(stdout) ? -EIO : 0;
}

static int arm(struct live_session *session)
{
  unsigned number = session->arguments->number, counters = 0;
  int r = live_session_arm(session, &counters);

  if (r < 0)
    return r;
  printf("Processor %u, %s, records branches. 'lbr live%s' shows them, 'lbr live --disarm' ends it.\n", number,
         session->row.cpu.title, number ? " --cpu-number N" : "");
  if (counters)
    printf("%u performance counter%s in use there, by perf or by the kernel's watchdog: a branch stack of perf would "
           "take it over.\n",
           counters, counters == 1 ? " is" : "s are");
  return 0;
}

int cmd_live(int argc, char **argv)
{
  struct live_arguments arguments;
  struct live_session session;
  struct live_show show;
  int r, end;

  live_arguments_read(&arguments, &show, argc, argv);
  r = live_session_open(&session, &arguments);
  if (r < 0)
    return CLI_FAILURE;
  if (arguments.wants_arm)
    r = arm(&session);
  else if (arguments.wants_disarm)
    r = live_session_disarm(&session);
  else {
    if (arguments.has_symbols)
      r = live_names_new(arguments.process, &session.names);
    if (r >= 0)
      r = live_session_read(&session, page_show, &show);
  }
  end = live_session_close(&session);
  return r < 0 || end < 0 ? CLI_FAILURE : CLI_OK;
}
