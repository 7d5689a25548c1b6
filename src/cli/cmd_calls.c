/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr calls: the calls between functions, in their order, and the cost of each.
 */
#include <argp.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/report.h"
#include "trace/trace.h"

#define TREE_LINES 1000u /* of the tree, and of each table, without --top */
#define TABLE_LINES 40u
#define NO_LIMIT UINT64_MAX
#define TOP_DEFAULT (UINT64_MAX - 1) /* --top was not given */

struct calls_arguments {
  struct calls_options calls;
  struct shared_options shared;
  const char *file;
  bool is_all, is_summary, is_folded;
};

static enum calls_shape shape_wanted(const struct calls_arguments *arguments)
{
  if (arguments->calls.callers)
    return CALLS_CALLERS;
  if (arguments->is_summary)
    return CALLS_SUMMARY;
  if (arguments->is_folded)
    return CALLS_FOLDED;
  return arguments->is_all || arguments->shared.is_json ? CALLS_LIST : CALLS_TREE;
}

/* ---- the command ---- */

/* Returns 0, or negative after a message. */
static int input_show(const struct calls_arguments *arguments, struct trace_input *input)
{
  const struct shared_options *shared = &arguments->shared;
  struct calls_walk walk = {0};
  struct calls_page page = {cli_output(), shape_wanted(arguments), shared->is_json, input, NULL, NULL, &walk};
  struct analysis_code *code = NULL;
  int r = analysis_names_new(shared->has_symbols ? &input->files : NULL, &page.names);

  if (r >= 0 && shared->is_mangled)
    analysis_names_keep_mangled(page.names);
  if (r >= 0)
    r = analysis_code_new(page.names, &code);
  if (r >= 0)
    r = analysis_summary_new(page.names, &page.summary);
  if (r >= 0)
    r = calls_walk_init(&walk, &arguments->calls, page.names, code, input->reader);
  if (r >= 0)
    r = trace_input_read_starts(input, page.names, &(struct analysis_use){.has_calls = true});
  if (r < 0)
    cli_error("%s: %s", input->name, lb_strerror(r));
  else
    r = calls_page_print(&page);
  trace_input_tell_limit(input, code);
  calls_walk_done(&walk);
  analysis_summary_free(page.summary);
  analysis_code_free(code);
  analysis_names_free(page.names);
  return r;
}

static int calls_run(const struct calls_arguments *arguments)
{
  struct trace_input input;
  int r, status;

  if (trace_input_open(&input, arguments->file) < 0)
    return CLI_FAILURE;
  trace_reader_want_stamps(input.reader);
  r = trace_input_check_stream(&input, arguments->calls.thread);
  if (r >= 0)
    r = input_show(arguments, &input);
  status = trace_input_close(&input);
  return r < 0 ? CLI_FAILURE : status;
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
  KEY_TIME,
  KEY_NO_SYSCALLS,
};

static const struct argp_option options[] = {
  {NULL, 0, NULL, 0, "Output:", 1},
  {"all", KEY_ALL, NULL, 0, "Show each call in a line of its own; sum nothing up", 1},
  {"summary", KEY_SUMMARY, NULL, 0, "Show the functions and the call graph, summed up over the run", 1},
  {"callers", KEY_CALLERS, "NAME", 0,
   "Show the callers of this function, their callers and so on, and how many of its calls came through each", 1},
  {"folded", KEY_FOLDED, NULL, 0, "Print one stack per line with its cost, for flame graphs: a;b;c COUNT", 1},
  {"by", KEY_BY, "WHAT", 0,
   "Weigh calls by 'instructions' (default), 'branches', 'time', or 'running' (time without waiting)", 1},
  {"no-syscalls", KEY_NO_SYSCALLS, NULL, 0, "Do not show system calls below the functions that made them", 1},
  {NULL, 0, NULL, 0, "Selection:", 2},
  {"depth", KEY_DEPTH, "N", 0, "Show the outermost N levels; with --callers, N levels of callers", 2},
  {"function", KEY_FUNCTION, "NAME", 0, "Show only calls of this function, and the calls that they make", 2},
  {"module", KEY_MODULE, "NAME", 0,
   "Only functions of this file: its path or the last part of it. What others ran counts for the function that called "
   "them",
   2},
  {"between", KEY_BETWEEN, "A..B", 0, "Only branches A to B of each thread, as 'lbr script' numbers them", 2},
  {"time", KEY_TIME, "FROM,TO", 0,
   "Only calls that are open in this span of time since the start of the recording; either end may be missing", 2},
  {"limit", KEY_LIMIT, "N", OPTION_HIDDEN, NULL, 2},
  {0},
};

static const struct argp_child children[] = {SHARED_TOP,      SHARED_THREAD, SHARED_SYMBOLS,
                                             SHARED_DEMANGLE, SHARED_NAMES,  SHARED_JSON,
                                             SHARED_OUTPUT,   SHARED_COMMON, {0}};

static void by_option(struct calls_options *calls, const char *argument, struct argp_state *state)
{
  static const char *const words[] = {"instructions", "branches", "time", "running"};

  for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (!strcmp(argument, words[i])) {
      calls->by = (enum calls_by)i;
      return;
    }
  argp_error(state, "--by wants 'instructions', 'branches', 'time' or 'running', not '%s'", argument);
}

/* Checks combinations of options. */
static void options_check(struct calls_arguments *arguments, struct argp_state *state)
{
  struct calls_options *calls = &arguments->calls;
  enum calls_shape shape = shape_wanted(arguments);

  if (!arguments->file)
    argp_error(state, "name a trace");
  if (arguments->is_all + arguments->is_summary + arguments->is_folded + (calls->callers != NULL) > 1)
    argp_error(state, "--all, --summary, --callers and --folded exclude each other");
  if (calls->callers && calls->function)
    argp_error(state, "--callers and --function exclude each other: --callers names the function");
  if (calls->callers && calls->depth != UINT32_MAX) {
    calls->caller_levels = calls->depth ? calls->depth : 1;
    calls->depth = UINT32_MAX;
  }
  if (arguments->shared.is_json && arguments->is_folded)
    argp_error(state, "--folded and --json exclude each other");
  calls->limit = arguments->shared.top;
  if (calls->limit != TOP_DEFAULT)
    return;
  if (shape == CALLS_LIST || shape == CALLS_FOLDED)
    calls->limit = NO_LIMIT;
  else
    calls->limit = shape == CALLS_TREE ? TREE_LINES : TABLE_LINES;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct calls_arguments *arguments = state->input;
  struct calls_options *calls = &arguments->calls;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_ALL:
    arguments->is_all = true;
    return 0;
  case KEY_SUMMARY:
    arguments->is_summary = true;
    return 0;
  case KEY_FOLDED:
    arguments->is_folded = true;
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
  case KEY_TIME:
    option_time_span(argument, &calls->from, &calls->to, state);
    return 0;
  case KEY_NO_SYSCALLS:
    calls->has_no_syscalls = true;
    return 0;
  case KEY_LIMIT: /* here 0 meant no limit */
    option_renamed("--limit", "--top");
    arguments->shared.top = option_number("--limit", argument, 0, UINT64_MAX, state);
    arguments->shared.top = arguments->shared.top ? arguments->shared.top : NO_LIMIT;
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&arguments->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    options_check(arguments, state);
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
    "Show which function called which, thread by thread, in order, and how many instructions, branches and how much time each call took, including the calls that it made. System calls are shown below the function that made them. Tail calls, longjmp, exceptions, signals and PLT entries are recognised. Equal calls in a row become one line ('x 1000'), and the smallest calls of a long run are summed up, so that the output fits in 1000 lines; --all shows each call.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after showing what could be read) or there is nothing to show, 2 for a usage error.",
  .children = children,
};

int cmd_calls(int argc, char **argv)
{
  struct calls_arguments arguments = {.calls = {.depth = UINT32_MAX, .last = UINT64_MAX}};

  shared_options_init(&arguments.shared);
  arguments.shared.top = TOP_DEFAULT;
  arguments.shared.top_default = "1000 of the tree, 40 of each table of --summary";
  argp_parse(&calls_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  arguments.calls.thread = arguments.shared.stream;
  return calls_run(&arguments);
}
