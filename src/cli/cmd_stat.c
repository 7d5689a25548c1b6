/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr stat: the numbers of a trace: how many branches of which kinds, where they lead, and whether all of them are
 * there.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/stat_page.h"
#include "cli/trace_input.h"

struct stat_arguments {
  const char *file;
  unsigned top;
  bool has_symbols, is_mangled, is_json;
};

/* ---- the command ---- */

static int trace_count(struct trace_input *input, struct report_summary *summary)
{
  struct progress progress;
  struct lb_trace_record record;
  int r;

  progress_begin(&progress, input->reader);
  report_summary_count(summary, input->reader);
  lb_trace_reader_count(input->reader, LB_TRACE_ALL);
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
  if (report_summary_end(summary) < 0) {
    cli_error("%s: %s", input->name, lb_strerror(-ENOMEM));
    return -ENOMEM;
  }
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
  if (r >= 0 && arguments->is_mangled)
    report_names_keep_mangled(names);
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

enum { KEY_TOP = 0x100, KEY_NO_SYMBOLS, KEY_NO_DEMANGLE };

static const struct argp_option options[] = {
  {"top", KEY_TOP, "N", 0, "Show the N functions and edges with most branches (default 10)", 0},
  {"no-symbols", KEY_NO_SYMBOLS, NULL, 0, "Modules only; the files that the trace names are not opened", 0},
  {"no-demangle", KEY_NO_DEMANGLE, NULL, 0, "C++ names as the files have them, not as the source has them", 0},
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
  case KEY_NO_DEMANGLE:
    arguments->is_mangled = true;
    return 0;
  case 'j':
    arguments->is_json = true;
    return 0;
  case ARGP_KEY_ARG:
    trace_input_argument(&arguments->file, argument, state);
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
