/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr top: the hot functions and edges of running processes, page after page: of those that are named, or of those
 * that other lbr processes record now.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  struct top_session session;
  struct shared_options shared;
  enum analysis_by by;
  bool has_burst;
};

/* ---- a page ---- */

/* The share of the logs that is in the trace, and the time that it is from. */
static void covers_add(struct text *covers, const struct process_peek_view *peek)
{
  double share = peek->logged ? 100.0 * (double)peek->entries / (double)peek->logged : 100;

  if (!(peek->seconds > 0))
    text_add(covers, ", all that its logs hold now");
  else if (peek->entries >= peek->logged)
    text_addf(covers, ", all of the last %.1f s", peek->seconds);
  else
    text_addf(covers, ", the newest %.2g%% of the last %.1f s", share, peek->seconds);
}

/* Says where the branches are from: a recording of another lbr. */
static void covers_put(struct text *covers, const struct process_peek_view *peek)
{
  char branches[WORDS_NUMBER_SIZE];

  text_addf(covers, "recorded by another lbr: %s branch%s of %zu thread%s in %zu process%s",
            words_number(branches, peek->branches), peek->branches == 1 ? "" : "es", peek->threads,
            peek->threads == 1 ? "" : "s", peek->processes, peek->processes == 1 ? "" : "es");
  covers_add(covers, peek);
}

static void tables_print(const struct top_arguments *arguments, const struct top_view *view,
                         const struct analysis_reading *reading, struct analysis_hot *hot)
{
  struct text covers = {0};
  struct source_files sources = {.is_quiet = true};
  struct report_output output = cli_output();

  if (view->peek)
    covers_put(&covers, view->peek);
  const struct report_page page = {.reading = reading,
                                   .hot = hot,
                                   .sources = &sources,
                                   .by = arguments->by,
                                   .top = arguments->shared.top,
                                   .stream = LB_TRACE_ALL,
                                   .covers = view->peek ? text_string(&covers) : NULL,
                                   .has_utf8 = words_has_utf8()};

  if (view->is_new_screen)
    fputs("\033[H\033[J", stdout);
  report_page_print(&page, &output, arguments->shared.is_json);
  source_done(&sources);
  text_done(&covers);
  fflush(stdout);
}

static int page_show(void *data, const struct top_view *view)
{
  const struct top_arguments *arguments = data;
  struct analysis_reading reading;
  struct analysis_hot *hot = NULL;
  const struct analysis_hot_filter filter = {0};

  if (analysis_reading_open(&reading, view->trace, LB_TRACE_ALL, arguments->shared.has_symbols) < 0)
    return -EIO;
  if (arguments->shared.is_mangled)
    analysis_names_keep_mangled(reading.names);
  int r = analysis_reading_tables(&reading, arguments->by, -1, &filter, &hot);
  if (r >= 0)
    tables_print(arguments, view, &reading, hot);
  analysis_hot_free(hot);
  analysis_reading_close(&reading);
  return r;
}

/* ---- the command line ---- */

enum { KEY_INTERVAL = 0x100, KEY_BURST, KEY_COUNT, KEY_BY };

static const struct argp_option options[] = {
  {"pid", 'p', "PID[,PID...]", 0, "Attach to these processes (default: show the processes that are being recorded now)",
   0},
  ATTACH_MORE_OPTIONS,
  {"interval", KEY_INTERVAL, "TIME", 0, "Show a new page after this time (default: 1s)", 0},
  {"burst", KEY_BURST, "TIME", 0, "With -p: record for this time for each page (default: 100ms)", 0},
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
    arguments->session.interval = option_seconds("--interval", argument, state);
    return 0;
  case KEY_BURST:
    arguments->session.record.seconds = option_seconds("--burst", argument, state);
    arguments->has_burst = true;
    return 0;
  case KEY_COUNT:
    arguments->session.count = option_number("--count", argument, 1, UINT32_MAX, state);
    return 0;
  case KEY_BY:
    arguments->by = by_option(argument, state);
    return 0;
  case ARGP_KEY_ARG:
    argp_error(state, "name processes with -p, not '%s'", argument);
    return 0;
  case ARGP_KEY_END:
    attach_option_end(&arguments->session.record.attached, false, state);
    if (arguments->has_burst && !arguments->session.record.attached.count)
      argp_error(state, "--burst needs -p: without it, lbr top shows what another lbr records");
    return 0;
  default:
    return attach_option_parse(key, argument, &arguments->session.record.attached, state);
  }
}

const struct argp top_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "[-p PID[,PID...]]",
  .doc =
    "Show where running processes spend their instructions: functions, edges and branches with their counts, again after each interval. With -p, lbr attaches to the processes for a moment, records every branch of this moment, and leaves them. Without -p, it shows the processes that other lbr commands record now, and reads the newest branches from their memory without disturbing them. In a terminal, q ends it.\vExit status: 0, or 1 if a process cannot be recorded or nothing is being recorded, 2 for a usage error.",
  .children = children,
};

int cmd_top(int argc, char **argv)
{
  struct top_arguments arguments = {
    .session = {.record = {.seconds = BURST_SECONDS, .is_quiet = true, .source = SOURCE_SOFTWARE},
                .interval = INTERVAL_SECONDS,
                .show = page_show,
                .data = &arguments}};

  shared_options_init(&arguments.shared);
  arguments.shared.top = 10;
  arguments.shared.top_default = "10";
  argp_parse(&top_argp, argc, argv, 0, NULL, &arguments);
  int r = top_run(&arguments.session);
  attach_list_done(&arguments.session.record.attached);
  return r < 0 ? CLI_FAILURE : CLI_OK;
}
