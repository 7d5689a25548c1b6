/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr report: where a recorded program spent its instructions, and the directions of its branches, with exact counts.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/predictor_option.h"
#include "cli/source_path_options.h"
#include "report/report.h"

#define BAR_COLUMNS 100 /* least width of a terminal for bars */

struct report_arguments {
  const char *file;
  enum analysis_by by;
  bool by_latency;  /* in place of `by` */
  const char *sort; /* NULL: the table's own order */
  int order;        /* enum analysis_hot_order, with by_latency enum analysis_latency_order; -1: the table's own */
  struct shared_options shared;
  struct analysis_hot_filter filter;
  const struct analysis_predictor *predictor; /* NULL if none */
  enum report_predict_order predict_order;
  bool wants_lines;
  struct source_files sources;
};

/* ---- the command ---- */

static int report_run(struct report_arguments *arguments)
{
  struct analysis_reading reading;
  struct analysis_predict *predict = NULL;
  struct report_output output = cli_output();
  struct analysis_hot *hot = NULL;
  int r, status;

  if (analysis_reading_open(&reading, arguments->file, arguments->shared.stream, arguments->shared.has_symbols) < 0)
    return CLI_FAILURE;
  if (arguments->shared.is_mangled)
    analysis_names_keep_mangled(reading.names);
  r = analysis_reading_tables(&reading, arguments->by, arguments->order, &arguments->filter, &hot);
  if (r >= 0 && (arguments->predictor || arguments->predict_order != REPORT_PREDICT_NO_ORDER))
    r = analysis_predict_read(&reading, arguments->shared.stream, arguments->predictor, &predict);
  if (r >= 0) {
    struct report_page page = {
      .reading = &reading,
      .hot = hot,
      .sources = &arguments->sources,
      .by = arguments->by,
      .top = arguments->shared.top,
      .stream = arguments->shared.stream,
      .predict = predict,
      .predictor = arguments->predictor,
      .predict_order = arguments->predict_order,
      .wants_lines = arguments->wants_lines && arguments->shared.has_symbols,
      .has_bars = output.columns >= BAR_COLUMNS,
      .has_utf8 = words_has_utf8(),
    };

    arguments->sources.time = reading.input.time;
    arguments->sources.paths.names = reading.names;
    arguments->sources.is_quiet = true; /* sources of libraries are mostly missing */
    report_page_print(&page, &output, arguments->shared.is_json);
  }
  analysis_predict_free(predict);
  analysis_hot_free(hot);
  source_done(&arguments->sources);
  status = analysis_reading_close(&reading);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- durations of calls ---- */

static int latency_show(const struct report_arguments *arguments, struct trace_input *input,
                        struct analysis_names *names, struct analysis_latency *latency)
{
  const struct analysis_hot_filter *filter = &arguments->filter;
  struct report_output output = cli_output();
  struct report_latency page = {
    .file = input->name,
    .names = names,
    .latency = latency,
    .top = arguments->shared.top,
    .stream = arguments->shared.stream,
    .has_histograms = filter->function != NULL,
    .has_utf8 = words_has_utf8(),
  };

  analysis_latency_keep(latency, names, filter->function, filter->module);
  if (!latency->count && filter->function) {
    cli_error("%s: no call of '%s'; 'lbr report --by function --top all' lists the functions", input->name,
              filter->function);
    return LB_E_NO_ENTRY;
  }
  if (!latency->count && filter->module)
    return trace_input_tell_module(input, names, filter->module);
  analysis_latency_sort(latency, arguments->order < 0 ? ANALYSIS_LATENCY_BY_LONGEST
                                                      : (enum analysis_latency_order)arguments->order);
  report_latency_print(&page, &output, arguments->shared.is_json);
  return 0;
}

static int latency_run(const struct report_arguments *arguments)
{
  struct analysis_latency latency = {0};
  struct analysis_names *names = NULL;
  struct analysis_code *code = NULL;
  struct trace_input input;
  int r, status;

  if (trace_input_open(&input, arguments->file) < 0)
    return CLI_FAILURE;
  r = trace_input_check_stream(&input, arguments->shared.stream);
  if (r >= 0)
    r = analysis_names_new(arguments->shared.has_symbols ? &input.files : NULL, &names);
  if (r >= 0 && arguments->shared.is_mangled)
    analysis_names_keep_mangled(names);
  if (r >= 0)
    r = analysis_code_new(names, &code);
  if (r == -ENOMEM)
    cli_error("%s: %s", input.name, lb_strerror(r));
  if (r >= 0)
    r = analysis_latency_read(&input, names, code, arguments->shared.stream, &latency);
  if (r >= 0)
    r = latency_show(arguments, &input, names, &latency);
  analysis_latency_done(&latency);
  analysis_code_free(code);
  analysis_names_free(names);
  status = trace_input_close(&input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_BY = 0x100, KEY_SORT, KEY_PREDICTOR, KEY_FUNCTION, KEY_MODULE, KEY_NO_LINES };

static const struct argp_option options[] = {
  {"by", KEY_BY, "WHAT", 0,
   "Show one table: function, line, edge, branch (conditional ones), indirect, module, thread or latency (durations of the calls of functions). Default: functions, and the top of edges, conditional and indirect branches",
   0},
  {"sort", KEY_SORT, "ORDER", 0,
   "Sort by instructions, taken, passed (not taken), calls, count, rate, targets, flips or mispredicted, largest first; or by name. Each table has some of these columns. With --by latency: longest, total, own, waiting, median, p99, calls or name",
   0},
  {"predictor", KEY_PREDICTOR, "MODEL", 0,
   "Show how often this branch predictor model mispredicts each conditional branch; 'help' lists the models", 0},
  {"function", KEY_FUNCTION, "NAME", 0,
   "Show only this function, and edges from and to it; with --by latency, also a histogram of durations", 0},
  {"module", KEY_MODULE, "NAME", 0, "Show only this file: its path or the last part of it", 0},
  {"no-lines", KEY_NO_LINES, NULL, 0,
   "Show no source lines beside addresses: faster if there is much debug information", 0},
  {0},
};

static const struct argp_child children[] = {SOURCE_PATHS, SHARED_TOP,  SHARED_THREAD, SHARED_SYMBOLS, SHARED_DEMANGLE,
                                             SHARED_NAMES, SHARED_JSON, SHARED_OUTPUT, SHARED_COMMON,  {0}};

static enum analysis_by by_option(struct report_arguments *arguments, const char *argument, struct argp_state *state)
{
  arguments->by_latency = !strcmp(argument, "latency");
  if (arguments->by_latency)
    return ANALYSIS_BY_FUNCTION;
  for (unsigned i = ANALYSIS_BY_FUNCTION; i < ANALYSIS_BYS; i++)
    if (!strcmp(analysis_by_name((enum analysis_by)i), argument))
      return (enum analysis_by)i;
  argp_error(state, "--by wants function, line, edge, branch, indirect, module, thread or latency, not '%s'", argument);
  return ANALYSIS_BY_ALL;
}

static int sort_option(struct report_arguments *arguments, const char *argument, struct argp_state *state)
{
  const char *name;

  arguments->predict_order = !strcmp(argument, "flips")          ? REPORT_PREDICT_BY_FLIPS
                             : !strcmp(argument, "mispredicted") ? REPORT_PREDICT_BY_MISPREDICTED
                                                                 : REPORT_PREDICT_NO_ORDER;
  if (arguments->predict_order != REPORT_PREDICT_NO_ORDER)
    return -1;
  for (int i = 0; (name = analysis_hot_order_name((unsigned)i)); i++)
    if (!strcmp(name, argument))
      return i;
  argp_error(
    state,
    "--sort wants instructions, taken, passed, calls, count, rate, targets, flips, mispredicted or name, not '%s'",
    argument);
  return -1;
}

static int latency_sort_option(const char *argument, struct argp_state *state)
{
  const char *name;

  for (unsigned i = 0; (name = analysis_latency_order_name(i)); i++)
    if (!strcmp(name, argument))
      return (int)i;
  argp_error(state, "--sort with --by latency wants longest, total, own, waiting, median, p99, calls or name, not '%s'",
             argument);
  return -1;
}

/* Predictions are about conditional branches: without --by, these are shown, the worst first. */
static void predict_check(struct report_arguments *arguments, struct argp_state *state)
{
  if (!arguments->predictor && arguments->predict_order == REPORT_PREDICT_NO_ORDER)
    return;
  if (arguments->by != ANALYSIS_BY_ALL && arguments->by != ANALYSIS_BY_BRANCH)
    argp_error(state, "--predictor, --sort flips and --sort mispredicted are for --by branch");
  arguments->by = ANALYSIS_BY_BRANCH;
  if (arguments->order < 0 && arguments->predict_order == REPORT_PREDICT_NO_ORDER)
    arguments->predict_order = REPORT_PREDICT_BY_MISPREDICTED;
}

static void arguments_check(struct report_arguments *arguments, struct argp_state *state)
{
  struct text good = {0};
  const char *name;

  if (arguments->sort && arguments->by_latency)
    arguments->order = latency_sort_option(arguments->sort, state);
  else if (arguments->sort)
    arguments->order = sort_option(arguments, arguments->sort, state);
  predict_check(arguments, state);
  if (!arguments->file)
    argp_error(state, "name a trace");
  if (arguments->by == ANALYSIS_BY_THREAD &&
      (arguments->filter.function || arguments->filter.module || arguments->shared.stream != LB_TRACE_ALL))
    argp_error(state, "--by thread excludes --function, --module and --thread");
  if (arguments->order < 0 || arguments->by_latency ||
      analysis_by_can_sort(arguments->by, (enum analysis_hot_order)arguments->order))
    return;
  for (unsigned i = 0; (name = analysis_hot_order_name(i)); i++)
    if (analysis_by_can_sort(arguments->by, (enum analysis_hot_order)i))
      text_addf(&good, "%s%s", good.length ? ", " : "", name);
  argp_error(state, "this table cannot be sorted by %s, only by %s",
             analysis_hot_order_name((unsigned)arguments->order), text_string(&good));
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct report_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->sources.paths;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_BY:
    arguments->by = by_option(arguments, argument, state);
    return 0;
  case KEY_SORT:
    arguments->sort = argument;
    return 0;
  case KEY_PREDICTOR:
    arguments->predictor = predictor_option(argument, state);
    return 0;
  case KEY_FUNCTION:
    arguments->filter.function = argument;
    return 0;
  case KEY_MODULE:
    arguments->filter.module = argument;
    return 0;
  case KEY_NO_LINES:
    arguments->wants_lines = false;
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&arguments->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    arguments_check(arguments, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp report_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Show where a recorded program spent its instructions and which way its branches went: functions, source lines, edges, conditional branches with their rates, indirect branches with their targets. Every branch of the trace is counted: these are exact numbers, not samples.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after showing what could be read), 2 for a usage error. An unfinished trace (NAME.incomplete) is read with a warning.",
  .children = children,
};

int cmd_report(int argc, char **argv)
{
  struct report_arguments arguments = {.order = -1, .wants_lines = true};

  shared_options_init(&arguments.shared);
  arguments.shared.top = 10;
  arguments.shared.top_default = "10";
  argp_parse(&report_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  return arguments.by_latency ? latency_run(&arguments) : report_run(&arguments);
}
