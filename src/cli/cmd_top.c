/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr top: the hot functions and edges of running processes. Attaches to them for a moment, records all branches of
 * this moment, leaves, and shows the counts; again after each interval.
 */
#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/program_option.h"
#include "report/report.h"
#include "session/session.h"

#define BURST_SECONDS 0.1
#define INTERVAL_SECONDS 1.0

struct top_arguments {
  struct record_arguments record;
  struct shared_options shared;
  double interval;
  uint64_t count; /* of pages, 0: until the user ends it */
  enum analysis_by by;
};

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

/* ---- a page ---- */

static void tables_print(const struct top_arguments *arguments, const struct analysis_reading *reading,
                         struct analysis_hot *hot)
{
  struct source_files sources = {.is_quiet = true};
  struct report_output output = cli_output();
  const struct report_page page = {.reading = reading,
                                   .hot = hot,
                                   .sources = &sources,
                                   .by = arguments->by,
                                   .top = arguments->shared.top,
                                   .stream = LB_TRACE_ALL,
                                   .has_utf8 = words_has_utf8()};

  if (is_terminal_changed)
    fputs("\033[H\033[J", stdout);
  report_page_print(&page, &output, arguments->shared.is_json);
  source_done(&sources);
  fflush(stdout);
}

static int page_show(const struct top_arguments *arguments, const char *trace)
{
  struct analysis_reading reading;
  struct analysis_hot *hot = NULL;
  const struct analysis_hot_filter filter = {0};

  if (analysis_reading_open(&reading, trace, LB_TRACE_ALL, arguments->shared.has_symbols) < 0)
    return -EIO;
  if (arguments->shared.is_mangled)
    analysis_names_keep_mangled(reading.names);
  int r = analysis_reading_tables(&reading, arguments->by, -1, &filter, &hot);
  if (r >= 0)
    tables_print(arguments, &reading, hot);
  analysis_hot_free(hot);
  analysis_reading_close(&reading);
  return r;
}

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
static int top_run(const struct top_arguments *arguments)
{
  char trace[64];
  int r = 0;

  trace_name(arguments->record.attached.processes[0], trace);
  for (uint64_t i = 0; r >= 0 && (!arguments->count || i < arguments->count); i++) {
    unsigned signals = relay_count();

    r = record_burst(&arguments->record, trace);
    if (r >= 0)
      r = page_show(arguments, trace);
    unlink(trace);
    bool is_last = i + 1 == arguments->count || relay_count() != signals;
    if (r < 0 || is_last || !interval_wait(arguments->interval - arguments->record.seconds) ||
        attach_is_over(&arguments->record.attached))
      break;
  }
  return r;
}

/* ---- the command line ---- */

enum { KEY_INTERVAL = 0x100, KEY_BURST, KEY_COUNT, KEY_BY };

static const struct argp_option options[] = {
  {"pid", 'p', "PID[,PID...]", 0, "The processes", 0},
  ATTACH_MORE_OPTIONS,
  {"interval", KEY_INTERVAL, "TIME", 0, "Show a new page after this time (default: 1s)", 0},
  {"burst", KEY_BURST, "TIME", 0, "Record for this time for each page (default: 100ms)", 0},
  {"count", KEY_COUNT, "N", 0, "Show N pages (default: until q or Ctrl-C)", 0},
  {"by", KEY_BY, "WHAT", 0,
   "Show one table: function, line, edge, branch (conditional ones), indirect or module. Default: functions, and the top of the others",
   0},
  {0},
};

static const struct argp_child children[] = {
  SHARED_TOP, SHARED_SYMBOLS, SHARED_DEMANGLE, SHARED_NAMES, SHARED_JSON, SHARED_COMMON, {0}};

static enum analysis_by by_option(const char *argument, struct argp_state *state)
{
  for (unsigned i = ANALYSIS_BY_FUNCTION; i < ANALYSIS_BYS; i++)
    if (i != ANALYSIS_BY_THREAD && !strcmp(analysis_by_name((enum analysis_by)i), argument))
      return (enum analysis_by)i;
  argp_error(state, "--by wants function, line, edge, branch, indirect or module, not '%s'", argument);
  return ANALYSIS_BY_ALL;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct top_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_INTERVAL:
    arguments->interval = option_seconds("--interval", argument, state);
    return 0;
  case KEY_BURST:
    arguments->record.seconds = option_seconds("--burst", argument, state);
    return 0;
  case KEY_COUNT:
    arguments->count = option_number("--count", argument, 1, UINT32_MAX, state);
    return 0;
  case KEY_BY:
    arguments->by = by_option(argument, state);
    return 0;
  case ARGP_KEY_ARG:
    argp_error(state, "name processes with -p, not '%s'", argument);
    return 0;
  case ARGP_KEY_END:
    attach_option_end(&arguments->record.attached, false, state);
    if (!arguments->record.attached.count)
      argp_error(state, "name a process with -p");
    return 0;
  default:
    return attach_option_parse(key, argument, &arguments->record.attached, state);
  }
}

const struct argp top_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "-p PID[,PID...]",
  .doc =
    "Show where running processes spend their instructions. lbr attaches to them for a moment, records every branch of this moment, leaves them, and shows functions, edges and branches with their exact counts; again after each interval. In a terminal, q ends it.\vExit status: 0, or 1 if a process cannot be recorded, 2 for a usage error.",
  .children = children,
};

int cmd_top(int argc, char **argv)
{
  struct top_arguments arguments = {.record = {.seconds = BURST_SECONDS, .is_quiet = true, .source = SOURCE_SOFTWARE},
                                    .interval = INTERVAL_SECONDS};
  char folder[] = "/tmp/lbr-top-XXXXXX";

  shared_options_init(&arguments.shared);
  arguments.shared.top = 10;
  arguments.shared.top_default = "10";
  argp_parse(&top_argp, argc, argv, 0, NULL, &arguments);
  if (!mkdtemp(folder) || chdir(folder) < 0) {
    cli_error("%s: %s", folder, strerror(errno));
    return CLI_FAILURE;
  }
  relay_start(0);
  terminal_set();
  int r = top_run(&arguments);
  terminal_restore();
  rmdir(folder);
  relay_restore();
  attach_list_done(&arguments.record.attached);
  return r < 0 ? CLI_FAILURE : CLI_OK;
}
