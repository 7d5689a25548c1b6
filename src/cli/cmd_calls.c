/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr calls: which function called which, in their order, and what each call cost.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/calls_view.h"
#include "cli/cli.h"
#include "cli/options.h"

#define TREE_LINES 1000u /* of the tree, and of each table, without --top */
#define TABLE_LINES 40u
#define NO_LIMIT UINT64_MAX
#define TOP_DEFAULT (UINT64_MAX - 1) /* --top was not given */

/* A trace while its calls are shown. */
struct calls_run {
  struct calls_options *options;
  struct trace_input input;
  struct report_names *names;
  struct report_summary *summary; /* knows the threads */
  struct calls_walk walk;
  bool has_callers; /* --callers found some */
  union {
    struct calls_list list;
    struct calls_tree tree;
    struct calls_graph graph;
    struct calls_folded folded;
  };
};

static bool is_list(const struct calls_options *options)
{
  return options->is_all || (options->is_json && !options->is_summary && !options->callers);
}

/* --folded and --callers are made of the same stacks. */
static bool has_stacks(const struct calls_options *options)
{
  return options->is_folded || options->callers;
}

/* ---- the views ---- */

static bool trace_has_threads(struct calls_run *run)
{
  bool has = lb_trace_reader_tail(run->input.reader, 1, 0) >= 0;

  lb_trace_reader_rewind(run->input.reader);
  return has;
}

static void view_begin(struct calls_run *run)
{
  if (is_list(run->options))
    calls_list_begin(&run->list, &run->walk, run->options->thread == LB_TRACE_ALL && trace_has_threads(run));
  else if (run->options->is_summary)
    calls_graph_begin(&run->graph, &run->walk);
  else if (has_stacks(run->options))
    calls_folded_begin(&run->folded, &run->walk);
  else
    calls_tree_begin(&run->tree, &run->walk);
}

static int view_end(struct calls_run *run)
{
  if (is_list(run->options))
    return calls_list_end(&run->list);
  if (run->options->is_summary)
    return calls_graph_end(&run->graph);
  if (run->options->callers)
    return calls_callers_end(&run->folded, &run->walk, &run->has_callers);
  if (run->options->is_folded)
    return calls_folded_end(&run->folded);
  return calls_tree_end(&run->tree, run->summary);
}

static void view_done(struct calls_run *run)
{
  if (is_list(run->options))
    calls_list_done(&run->list);
  else if (run->options->is_summary)
    calls_graph_done(&run->graph);
  else if (has_stacks(run->options))
    calls_folded_done(&run->folded);
  else
    calls_tree_done(&run->tree);
}

/* ---- the trace ---- */

/* Returns 0, 1 when there is enough, or negative after a complaint. */
static int trace_walk(struct calls_run *run)
{
  struct lb_trace_record record;
  struct trace_progress progress;
  int r;

  trace_progress_begin(&progress, run->input.reader);
  if (is_list(run->options) && isatty(STDOUT_FILENO)) /* what is printed shows how far it is */
    progress.is_on = false;
  while ((r = trace_input_next(&run->input, &record)) > 0) {
    r =
      record.type == LB_TRACE_STREAM || record.type == LB_TRACE_META ? report_summary_record(run->summary, &record) : 0;
    if (!r)
      r = calls_walk_record(&run->walk, &record);
    if (r)
      break;
    trace_progress_show(&progress, run->walk.branches);
  }
  trace_progress_end(&progress);
  if (!r)
    r = calls_walk_end(&run->walk);
  return r;
}

static void cut_tell(const struct calls_run *run)
{
  if (is_list(run->options) && run->list.is_cut)
    cli_error("cut after %llu lines, as --top says: there are more calls", (unsigned long long)run->list.lines);
  if (has_stacks(run->options) && run->folded.stacks && report_stacks_is_full(run->folded.stacks))
    cli_error("warning: some stacks are too deep, or too many, to be kept: their ends are left out, and what they cost "
              "is counted for what is left");
}

/* Folded stacks have room for a number alone. */
static void unknown_tell(const struct calls_run *run)
{
  if (run->options->is_folded && !run->options->by_branches && report_calls_has_unknown(run->walk.calls))
    cli_error("warning: some of the code that ran is not known, or not 64-bit code: of its instructions only branches "
              "are counted; --by branches counts branches throughout");
}

static bool is_anything_found(const struct calls_run *run)
{
  if (is_list(run->options))
    return run->list.lines > 0;
  if (run->options->is_summary)
    return run->graph.edge_count > 0;
  if (run->options->callers)
    return run->has_callers;
  if (run->options->is_folded)
    return run->folded.stacks;
  return run->tree.lines > 0;
}

static void nothing_tell(const struct calls_run *run)
{
  const struct calls_options *options = run->options;

  if (options->module &&
      (!(options->function || options->callers) || !report_module_is_mapped(run->names, options->module)))
    (void)trace_input_tell_module(&run->input, run->names, options->module);
  else if (options->function || options->callers)
    cli_error("%s: '%s' is not called in it%s; 'lbr calls --summary' lists what is", run->input.name,
              options->function ? options->function : options->callers,
              options->first || options->last != UINT64_MAX ? ", there" : "");
  else
    cli_error("%s: there are no calls%s", run->input.name,
              options->first || options->last != UINT64_MAX ? " of these branches; 'lbr stat' tells how many there are"
                                                            : " in it");
}

/* Returns enum cli_exit. */
static int calls_show(struct calls_run *run)
{
  int r;

  view_begin(run);
  r = trace_walk(run);
  if (r >= 0)
    r = view_end(run) < 0 ? -ENOMEM : r;
  if (r < 0 && !run->input.has_failed && !ferror(stdout))
    cli_error("%s: %s", run->input.name, lb_strerror(r));
  if (r >= 0) {
    cut_tell(run);
    unknown_tell(run);
  }
  if (r >= 0 && !is_anything_found(run)) {
    nothing_tell(run);
    r = -ENOENT;
  }
  view_done(run);
  return r < 0 ? CLI_FAILURE : CLI_OK;
}

static int stream_check(struct calls_run *run)
{
  uint32_t stream = run->options->thread;
  int r = stream == LB_TRACE_ALL ? 0 : trace_input_tail(&run->input, stream, 0);

  if (r == LB_E_NO_ENTRY)
    cli_error("%s: it has no thread %u; 'lbr stat' lists its threads", run->input.name, stream);
  if (r >= 0)
    lb_trace_reader_rewind(run->input.reader);
  return r;
}

static int calls_run(struct calls_options *options)
{
  struct calls_run run = {.options = options};
  struct report_code *code = NULL;
  int r, status = CLI_FAILURE, closed;

  if (trace_input_open(&run.input, options->file) < 0)
    return CLI_FAILURE;
  r = stream_check(&run);
  if (r < 0)
    goto out;
  r = report_names_new(options->has_symbols ? &run.input.files : NULL, &run.names);
  if (r >= 0 && options->is_mangled)
    report_names_keep_mangled(run.names);
  if (r >= 0)
    r = report_code_new(run.names, &code);
  if (r >= 0)
    r = report_summary_new(run.names, &run.summary);
  if (r >= 0)
    r = calls_walk_init(&run.walk, options, run.names, code);
  if (r >= 0)
    r = trace_input_read_starts(&run.input, run.names);
  if (r >= 0)
    status = calls_show(&run);
  else
    cli_error("%s: %s", run.input.name, lb_strerror(r));
out:
  trace_input_tell_limit(&run.input, code);
  calls_walk_done(&run.walk);
  report_summary_free(run.summary);
  report_code_free(code);
  report_names_free(run.names);
  closed = trace_input_close(&run.input);
  return status == CLI_OK ? closed : status;
}

/* ---- the command line ---- */

enum {
  KEY_DEPTH = 0x100,
  KEY_FUNCTION,
  KEY_MODULE,
  KEY_CALLERS,
  KEY_BETWEEN,
  KEY_LIMIT,
  KEY_ALL,
  KEY_SUMMARY,
  KEY_FOLDED,
  KEY_BY,
};

static const struct argp_option options[] = {
  {NULL, 0, NULL, 0, "What is shown:", 1},
  {"all", KEY_ALL, NULL, 0, "Each call in a line of its own, as they come; nothing is summed up", 1},
  {"summary", KEY_SUMMARY, NULL, 0, "Functions and who calls whom, summed up over the run", 1},
  {"callers", KEY_CALLERS, "NAME", 0,
   "Callers of this function, their callers and so on, with how many of its calls came so", 1},
  {"folded", KEY_FOLDED, NULL, 0, "Stacks in one line each with what they cost, for flame graphs: a;b;c COUNT", 1},
  {"by", KEY_BY, "WHAT", 0, "Weigh calls by 'instructions' (as without) or 'branches'", 1},
  {NULL, 0, NULL, 0, "Of what:", 2},
  {"depth", KEY_DEPTH, "N", 0, "Only the outermost N levels; with --callers, N levels of callers", 2},
  {"function", KEY_FUNCTION, "NAME", 0, "Only calls of this function, with what they call", 2},
  {"module", KEY_MODULE, "NAME", 0,
   "Only functions of this file: its path or the last part of it. What others ran counts for the function that called "
   "them",
   2},
  {"between", KEY_BETWEEN, "A..B", 0, "Only branches A to B of each thread, as 'lbr script' numbers them", 2},
  {"limit", KEY_LIMIT, "N", OPTION_HIDDEN, NULL, 2},
  {0},
};

static const struct argp_child children[] = {SHARED_TOP,      SHARED_THREAD, SHARED_SYMBOLS,
                                             SHARED_DEMANGLE, SHARED_NAMES,  SHARED_JSON,
                                             SHARED_OUTPUT,   SHARED_COMMON, {0}};

/* What a command line parses into. */
struct calls_arguments {
  struct calls_options *calls;
  struct shared_options shared;
};

static void by_option(struct calls_options *calls, const char *argument, struct argp_state *state)
{
  calls->by_branches = !strcmp(argument, "branches");
  if (!calls->by_branches && strcmp(argument, "instructions") != 0)
    argp_error(state, "--by wants 'instructions' or 'branches', not '%s'", argument);
}

static void shared_take(struct calls_options *calls, const struct shared_options *shared)
{
  calls->limit = shared->top;
  calls->has_symbols = shared->has_symbols;
  calls->is_mangled = shared->is_mangled;
  calls->is_json = shared->is_json;
}

/* What depends on several options. */
static void options_check(struct calls_options *calls, struct argp_state *state)
{
  if (!calls->file)
    argp_error(state, "a trace is wanted");
  if (calls->is_all + calls->is_summary + calls->is_folded + (calls->callers != NULL) > 1)
    argp_error(state, "--all, --summary, --callers and --folded exclude each other");
  if (calls->callers && calls->function)
    argp_error(state, "--callers names its function itself; it goes without --function");
  if (calls->callers && calls->depth != UINT32_MAX) {
    calls->caller_levels = calls->depth ? calls->depth : 1;
    calls->depth = UINT32_MAX;
  }
  if (calls->is_json && calls->is_folded)
    argp_error(state, "--folded has a form of its own; --json goes without it");
  if (calls->limit != TOP_DEFAULT)
    return;
  if (is_list(calls) || calls->is_folded)
    calls->limit = NO_LIMIT;
  else
    calls->limit = calls->is_summary || calls->callers ? TABLE_LINES : TREE_LINES;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct calls_arguments *arguments = state->input;
  struct calls_options *calls = arguments->calls;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_ALL:
    calls->is_all = true;
    return 0;
  case KEY_SUMMARY:
    calls->is_summary = true;
    return 0;
  case KEY_FOLDED:
    calls->is_folded = true;
    return 0;
  case KEY_BY:
    by_option(calls, argument, state);
    return 0;
  case KEY_DEPTH:
    calls->depth = (uint32_t)option_number("--depth", argument, 0, UINT32_MAX, state);
    return 0;
  case KEY_FUNCTION:
    calls->function = argument;
    return 0;
  case KEY_MODULE:
    calls->module = argument;
    return 0;
  case KEY_CALLERS:
    calls->callers = argument;
    return 0;
  case KEY_BETWEEN:
    option_between(argument, &calls->first, &calls->last, state);
    return 0;
  case KEY_LIMIT: /* where 0 was no limit */
    option_renamed("--limit", "--top");
    arguments->shared.top = option_number("--limit", argument, 0, UINT64_MAX, state);
    arguments->shared.top = arguments->shared.top ? arguments->shared.top : NO_LIMIT;
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&calls->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    shared_take(calls, &arguments->shared);
    options_check(calls, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp calls_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Show which function called which in a trace, thread by thread, in their order, and how many instructions and "
    "branches each call took, with all that it called. Tail calls, longjmp, exceptions, signals and the entries of the "
    "PLT are understood. Calls that are alike and follow each other become one line ('x 1000'), and of a long run the "
    "smallest are summed up, so that the whole of it fits in 1000 lines; --all shows each.\v"
    "Exit status: 0 if the trace is whole, 1 if it is damaged or cut, after what could be read was shown, or there is "
    "nothing to show, 2 for a command line that makes no sense.",
  .children = children,
};

int cmd_calls(int argc, char **argv)
{
  struct calls_options calls = {.depth = UINT32_MAX, .last = UINT64_MAX};
  struct calls_arguments arguments = {.calls = &calls};

  shared_options_init(&arguments.shared);
  arguments.shared.top = TOP_DEFAULT;
  arguments.shared.top_default = "1000 of the tree, 40 of each table of --summary";
  argp_parse(&calls_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(calls.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  calls.thread = arguments.shared.stream;
  return calls_run(&calls);
}
