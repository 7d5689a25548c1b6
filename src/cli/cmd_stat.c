/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr stat: the numbers of a trace: how many branches of which kinds, where they lead, and whether all of them are
 * there.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/stat_page.h"
#include "cli/trace_input.h"

struct stat_arguments {
  const char *file;
  unsigned top;
  bool has_symbols, is_json;
};

/* ---- the line that tells how far it is ---- */

#define PROGRESS_FIRST 0.5 /* seconds before it is shown, and between two of them */
#define PROGRESS_STEP 0.2
#define STREAMS_ASKED 64 /* for their lengths: with more streams there is no percentage */

struct progress {
  bool is_on, is_shown;
  double next;    /* when it is shown again */
  uint64_t total; /* branches, lost ones included; 0: not known */
};

/* How many branches a stream has: the number of its last one tells. */
static uint64_t stream_length(struct lb_trace_reader *reader)
{
  struct lb_trace_record record;
  uint64_t length = 0;

  lb_trace_reader_skip(reader);
  while (lb_trace_reader_next(reader, &record) > 0)
    if (record.type == LB_TRACE_BRANCHES)
      length = record.branches.first + record.branches.count;
  return length;
}

static void progress_begin(struct progress *progress, struct lb_trace_reader *reader)
{
  *progress = (struct progress){.is_on = isatty(STDERR_FILENO), .next = cli_seconds() + PROGRESS_FIRST};
  if (!progress->is_on)
    return;
  for (uint32_t i = 0; lb_trace_reader_tail(reader, i, 1) >= 0; i++) {
    progress->total = i < STREAMS_ASKED ? progress->total + stream_length(reader) : 0;
    if (i >= STREAMS_ASKED)
      break;
  }
  lb_trace_reader_rewind(reader);
}

static void progress_show(struct progress *progress, uint64_t branches)
{
  double now = progress->is_on ? cli_seconds() : 0;

  if (!progress->is_on || now < progress->next)
    return;
  progress->next = now + PROGRESS_STEP;
  progress->is_shown = true;
  fprintf(stderr, "\r%.1f million branches", (double)branches / 1e6);
  if (progress->total && branches <= progress->total)
    fprintf(stderr, ", %.0f%%", 100 * (double)branches / (double)progress->total);
  fputs("\033[K", stderr);
}

static void progress_end(const struct progress *progress)
{
  if (progress->is_shown)
    fputs("\r\033[K", stderr);
}

/* ---- the command ---- */

static int trace_count(struct trace_input *input, struct report_summary *summary)
{
  struct progress progress;
  struct lb_trace_record record;
  int r;

  progress_begin(&progress, input->reader);
  while ((r = trace_input_next(input, &record)) > 0) {
    r = report_summary_record(summary, &record);
    if (r < 0) {
      progress_end(&progress);
      cli_error("%s: %s", input->name, lb_strerror(r));
      return r;
    }
    progress_show(&progress, report_summary_totals(summary)->branches);
  }
  progress_end(&progress);
  return r;
}

static int stat_run(const struct stat_arguments *arguments)
{
  struct report_summary *summary = NULL;
  struct report_names *names = NULL;
  struct trace_input input;
  int r, status;

  if (trace_input_open(&input, arguments->file) < 0)
    return CLI_FAILURE;
  r = report_names_new(arguments->has_symbols ? &input.files : NULL, &names);
  if (r >= 0)
    r = report_summary_new(names, &summary);
  if (r < 0)
    cli_error("%s: %s", input.name, lb_strerror(r));
  if (r >= 0) {
    struct stat_page page = {&input, names, summary, arguments->top};

    r = trace_count(&input, summary);
    if (stat_page_print(&page, arguments->is_json) < 0)
      r = -ENOMEM;
  }
  report_summary_free(summary);
  report_names_free(names);
  status = trace_input_close(&input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

#define TOP_MAX 10000u

enum { KEY_TOP = 0x100, KEY_NO_SYMBOLS };

static const struct argp_option options[] = {
  {"top", KEY_TOP, "N", 0, "Show the N functions and edges with most branches (default 10)", 0},
  {"no-symbols", KEY_NO_SYMBOLS, NULL, 0, "Modules only; the files that the trace names are not opened", 0},
  {"json", 'j', NULL, 0, "Print JSON", 0},
  {0},
};

static unsigned top_option(const char *argument, struct argp_state *state)
{
  uint64_t value;

  if (number_parse(argument, &value) < 0 || value > TOP_MAX)
    argp_error(state, "--top wants a number from 0 to %u, not '%s'", TOP_MAX, argument);
  return (unsigned)value;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct stat_arguments *arguments = state->input;

  switch (key) {
  case KEY_TOP:
    arguments->top = top_option(argument, state);
    return 0;
  case KEY_NO_SYMBOLS:
    arguments->has_symbols = false;
    return 0;
  case 'j':
    arguments->is_json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (arguments->file)
      argp_error(state, "one trace at a time");
    arguments->file = argument;
    return 0;
  case ARGP_KEY_END:
    if (!arguments->file)
      argp_error(state, "a trace is wanted");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp stat_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc = "Show how many branches a trace has and of which kinds, its threads, modules and gaps, and the functions and "
         "edges with most branches.\v"
         "Exit status: 0 if the trace is whole, 1 if it is damaged or cut, after what could be read was shown, 2 for a "
         "command line that makes no sense. A trace that was not finished (NAME.incomplete) is read with a warning.",
  .children = cli_help,
};

int cmd_stat(int argc, char **argv)
{
  struct stat_arguments arguments = {.top = 10, .has_symbols = true};

  argp_parse(&stat_argp, argc, argv, 0, NULL, &arguments);
  return stat_run(&arguments);
}
