/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr stat: the numbers of a trace: its branches by kind, their targets, and whether the trace is complete.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/report.h"
#include "trace/trace.h"

#define TOP_MAX (1u << 20) /* rows of a table, for --top all */

struct stat_arguments {
  const char *file, *module;
  bool has_syscalls;
  struct shared_options shared;
};

/* ---- the command ---- */

/* The counts of one module need every single branch. */
static int trace_count(struct trace_input *input, struct analysis_summary *summary, bool has_module)
{
  struct trace_progress progress;
  struct lb_trace_record record;
  int r;

  trace_reader_want_stamps(input->reader);
  trace_progress_begin(&progress, input->reader);
  if (!has_module) {
    analysis_summary_count(summary, input->reader);
    lb_trace_reader_count(input->reader, LB_TRACE_ALL);
  }
  while ((r = trace_input_next(input, &record)) > 0) {
    r = analysis_summary_record(summary, &record);
    if (r < 0) {
      trace_progress_end(&progress);
      cli_error("%s: %s", input->name, lb_strerror(r));
      return r;
    }
    trace_progress_show(&progress, analysis_summary_totals(summary)->all_branches);
  }
  trace_progress_end(&progress);
  if (analysis_summary_end(summary) < 0) {
    cli_error("%s: %s", input->name, lb_strerror(-ENOMEM));
    return -ENOMEM;
  }
  return r;
}

static int summary_make(const struct stat_arguments *arguments, struct trace_input *input,
                        struct analysis_names **ret_names, struct analysis_summary **ret_summary)
{
  int r = analysis_names_new(arguments->shared.has_symbols ? &input->files : NULL, ret_names);

  if (r >= 0)
    r = analysis_summary_new(*ret_names, ret_summary);
  if (r >= 0 && arguments->module)
    r = analysis_summary_only(*ret_summary, arguments->module);
  if (r >= 0 && arguments->shared.is_mangled)
    analysis_names_keep_mangled(*ret_names);
  if (r < 0)
    cli_error("%s: %s", input->name, lb_strerror(r));
  return r;
}

static int stat_run(const struct stat_arguments *arguments)
{
  struct analysis_summary *summary = NULL;
  struct analysis_names *names = NULL;
  struct analysis_module_totals module = {.name = arguments->module};
  struct trace_input input;
  int r, status;

  if (trace_input_open(&input, arguments->file) < 0)
    return CLI_FAILURE;
  r = module.name ? analysis_module_read(&input, arguments->shared.has_symbols, &module) : 0;
  if (r >= 0)
    r = summary_make(arguments, &input, &names, &summary);
  if (r >= 0) {
    uint64_t top = arguments->shared.top;
    struct report_output output = cli_output();
    struct stat_page page = {&input, names, summary, top < TOP_MAX ? (unsigned)top : TOP_MAX,
                             module.name ? &module : NULL};

    r = trace_count(&input, summary, module.name != NULL);
    if (stat_page_print(&page, &output, arguments->shared.is_json) < 0)
      r = -ENOMEM;
  }
  analysis_summary_free(summary);
  analysis_names_free(names);
  status = trace_input_close(&input);
  return r < 0 ? CLI_FAILURE : status;
}

static int syscalls_run(const struct stat_arguments *arguments)
{
  struct analysis_syscalls syscalls = {0};
  struct report_output output = cli_output();
  struct trace_input input;
  int r, status;

  if (trace_input_open(&input, arguments->file) < 0)
    return CLI_FAILURE;
  r = trace_input_check_stream(&input, arguments->shared.stream);
  if (r >= 0)
    r = analysis_syscalls_read(&input, arguments->shared.stream, &syscalls);
  if (r >= 0 && !syscalls.count) {
    cli_error("%s: there are no system calls in it; 'lbr record' of this version writes them", input.name);
    r = LB_E_NO_ENTRY;
  } else if (r >= 0) {
    syscalls_page_print(input.name, &syscalls, arguments->shared.top, &output, arguments->shared.is_json);
  }
  analysis_syscalls_done(&syscalls);
  status = trace_input_close(&input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_MODULE = 0x100, KEY_SYSCALLS };

static const struct argp_option options[] = {
  {"module", KEY_MODULE, "NAME", 0, "Show only this file: its path or the last part of it", 0},
  {"syscalls", KEY_SYSCALLS, NULL, 0, "Show the system calls instead: how many, and how long they took", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_TOP,      SHARED_THREAD, SHARED_SYMBOLS,
                                             SHARED_DEMANGLE, SHARED_NAMES,  SHARED_JSON,
                                             SHARED_OUTPUT,   SHARED_COMMON, {0}};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct stat_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_MODULE:
    arguments->module = argument;
    return 0;
  case KEY_SYSCALLS:
    arguments->has_syscalls = true;
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&arguments->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    if (!arguments->file)
      argp_error(state, "name a trace");
    if (arguments->has_syscalls && arguments->module)
      argp_error(state, "--syscalls and --module exclude each other");
    if (!arguments->has_syscalls && (arguments->shared.stream != LB_TRACE_ALL || arguments->shared.thread_name))
      argp_error(state, "--thread needs --syscalls");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp stat_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Show how many branches a trace has and of which kinds, its threads, modules and gaps, and the functions and edges with the most branches.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after showing what could be read), 2 for a usage error. An unfinished trace (NAME.incomplete) is read with a warning.",
  .children = children,
};

int cmd_stat(int argc, char **argv)
{
  struct stat_arguments arguments = {0};

  shared_options_init(&arguments.shared);
  arguments.shared.top = 10;
  arguments.shared.top_default = "10";
  argp_parse(&stat_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  return arguments.has_syscalls ? syscalls_run(&arguments) : stat_run(&arguments);
}
