/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr view: a trace as a page for a browser.
 */
#include <argp.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/source_path_options.h"
#include "cli/view_output.h"
#include "trace/trace.h"

#define SPAN 1000000u /* branches around a place by default */

struct view_arguments {
  const char *file, *around, *module;
  struct shared_options shared;
  uint64_t from, to, span, merge;
  uint64_t time_from, time_to;
  bool has_source;
  struct source_paths sources;
};

/* The state of making a page from a trace. */
struct view_run {
  struct trace_input input;
  struct source_paths *source_paths;
  struct report_view_options options;
  struct analysis_files sources; /* opens only files that may be shown */
};

/* Finds the part that --around means. Returns 0, or negative after a message. */
static int around_find(struct view_run *run, struct view_arguments *arguments)
{
  uint64_t branch, half = arguments->span / 2;
  struct analysis_call call;
  int r;

  if (!arguments->around)
    return 0;
  if (number_parse(arguments->around, &branch) < 0) {
    r = analysis_calls_first(&run->input, arguments->around, arguments->shared.stream, &call);
    if (r < 0)
      return r;
    arguments->shared.stream = call.stream;
    branch = call.branch;
  }
  arguments->from = branch > half ? branch - half : 0;
  arguments->to = branch < UINT64_MAX - half ? branch + half : UINT64_MAX;
  return 0;
}

static int source_open(void *data, const char *name, const void **ret_bytes, size_t *ret_size)
{
  struct view_run *run = data;
  int fd = source_paths_open(run->source_paths, name);

  return fd < 0 ? fd : trace_input_map(&run->input, fd, ret_bytes, ret_size);
}

static void source_close(void *data, const void *bytes, size_t size)
{
  struct view_run *run = data;

  run->input.files.close(run->input.files.data, bytes, size);
}

static struct report_view_options options_make(const struct view_run *run, const struct view_arguments *arguments)
{
  return (struct report_view_options){
    .files = arguments->has_source ? &run->sources : NULL,
    .reader = run->input.reader,
    .file = run->input.name,
    .module = arguments->module,
    .stream = arguments->shared.stream,
    .from = arguments->from,
    .to = arguments->to,
    .time_from = arguments->time_from,
    .time_to = arguments->time_to ? arguments->time_to : UINT64_MAX,
    .merge = arguments->merge,
    .size = arguments->shared.limit ? arguments->shared.limit : REPORT_VIEW_SIZE,
  };
}

/* Makes the page. Returns 0, or negative after a message. */
static int run_make(struct view_run *run, struct view_arguments *arguments)
{
  struct report_view *view = NULL;
  int r = analysis_names_new(arguments->shared.has_symbols ? &run->input.files : NULL, &run->options.names);

  if (r >= 0 && arguments->shared.is_mangled)
    analysis_names_keep_mangled(run->options.names);
  if (r >= 0)
    r = analysis_code_new(run->options.names, &run->options.code);
  arguments->sources.names = run->options.names;
  if (r >= 0)
    r = report_view_new(&run->options, &view);
  if (r < 0)
    cli_error("%s: %s", run->input.name, lb_strerror(r));
  if (r >= 0)
    r = report_view_read(view, &run->options, &run->input);
  if (r >= 0)
    r = view_output_write(view, run->input.name, arguments->shared.output);
  report_view_free(view);
  return r;
}

static int view_run(struct view_arguments *arguments)
{
  struct view_run run = {.source_paths = &arguments->sources};
  int r, status;

  if (trace_input_open(&run.input, arguments->file) < 0)
    return CLI_FAILURE;
  trace_reader_want_stamps(run.input.reader);
  run.sources = (struct analysis_files){.data = &run, .open = source_open, .close = source_close};
  r = trace_input_check_stream(&run.input, arguments->shared.stream);
  if (r >= 0)
    r = around_find(&run, arguments);
  if (r >= 0) {
    run.options = options_make(&run, arguments);
    r = run_make(&run, arguments);
  }
  trace_input_tell_limit(&run.input, run.options.code);
  analysis_code_free(run.options.code);
  analysis_names_free(run.options.names);
  status = trace_input_close(&run.input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum {
  KEY_FROM = 0x100,
  KEY_TO,
  KEY_BETWEEN,
  KEY_TIME,
  KEY_AROUND,
  KEY_MODULE,
  KEY_SPAN,
  KEY_DETAIL,
  KEY_SIZE,
  KEY_NO_SOURCE
};

static const struct argp_option options[] = {
  {"between", KEY_BETWEEN, "A..B", 0, "Timeline of branches A to B of each thread, as 'lbr script' numbers them", 0},
  {"time", KEY_TIME, "FROM,TO", 0,
   "Timeline of this span of time since the start of the recording; either end may be missing", 0},
  {"from", KEY_FROM, "N", OPTION_HIDDEN, NULL, 0},
  {"to", KEY_TO, "N", OPTION_HIDDEN, NULL, 0},
  {"around", KEY_AROUND, "WHERE", 0, "Timeline around a branch, or around the first call of a function", 0},
  {"span", KEY_SPAN, "N", 0, "Number of branches that --around shows (default: 1000000)", 0},
  {"module", KEY_MODULE, "NAME", 0,
   "Only functions of this file, and edges from and to it: its path or the last part of it", 0},
  {"detail", KEY_DETAIL, "N", 0, "Merge calls of fewer than N branches, for a smaller page", 0},
  {"size", KEY_SIZE, "MB", OPTION_HIDDEN, NULL, 0},
  {"no-source", KEY_NO_SOURCE, NULL, 0, "Leave out source files", 0},
  {0},
};

static const struct argp_child children[] = {SOURCE_PATHS,    SHARED_LIMIT,  SHARED_THREAD, SHARED_SYMBOLS,
                                             SHARED_DEMANGLE, SHARED_OUTPUT, SHARED_COMMON, {0}};

static void arguments_check(const struct view_arguments *arguments, struct argp_state *state)
{
  if (!arguments->file)
    argp_error(state, "name a trace");
  if (arguments->around && (arguments->from || arguments->to != UINT64_MAX))
    argp_error(state, "--around and --between exclude each other");
  if ((arguments->time_from || arguments->time_to) &&
      (arguments->around || arguments->from || arguments->to != UINT64_MAX))
    argp_error(state, "--time excludes --around and --between");
  if (arguments->from >= arguments->to)
    argp_error(state, "--between: the first number is greater than the last");
  if (arguments->shared.limit &&
      (arguments->shared.limit < REPORT_VIEW_SIZE_MIN || arguments->shared.limit > REPORT_VIEW_SIZE_MAX))
    argp_error(state, "--limit wants a size from %uM to %uM", (unsigned)(REPORT_VIEW_SIZE_MIN >> 20),
               (unsigned)(REPORT_VIEW_SIZE_MAX >> 20));
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct view_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->sources;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_BETWEEN:
    option_between(argument, &arguments->from, &arguments->to, state);
    arguments->to += arguments->to != UINT64_MAX; /* `to` is exclusive */
    return 0;
  case KEY_TIME:
    option_time_span(argument, &arguments->time_from, &arguments->time_to, state);
    return 0;
  case KEY_FROM:
    option_renamed("--from N", "--between N..");
    arguments->from = option_number("--from", argument, 0, UINT64_MAX - 1, state);
    return 0;
  case KEY_TO:
    option_renamed("--to N", "--between ..N");
    arguments->to = option_number("--to", argument, 1, UINT64_MAX - 1, state);
    return 0;
  case KEY_AROUND:
    arguments->around = argument;
    return 0;
  case KEY_MODULE:
    arguments->module = argument;
    return 0;
  case KEY_SPAN:
    arguments->span = option_number("--span", argument, 2, UINT64_MAX - 1, state);
    return 0;
  case KEY_DETAIL:
    arguments->merge = option_number("--detail", argument, 0, UINT32_MAX, state);
    return 0;
  case KEY_SIZE: /* in megabytes */
    option_renamed("--size", "--limit");
    arguments->shared.limit =
      option_number("--size", argument, REPORT_VIEW_SIZE_MIN >> 20, REPORT_VIEW_SIZE_MAX >> 20, state) << 20;
    return 0;
  case KEY_NO_SOURCE:
    arguments->has_source = false;
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

const struct argp view_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Make one HTML page of a trace: a zoomable timeline of all calls, functions and edges with exact counts, source with execution counts, and where the program died. The page needs no network.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after writing what could be read), 2 for a usage error. An unfinished trace (NAME.incomplete) is read with a warning.",
  .children = children,
};

int cmd_view(int argc, char **argv)
{
  struct view_arguments arguments = {
    .to = UINT64_MAX,
    .span = SPAN,
    .has_source = true,
  };

  shared_options_init(&arguments.shared);
  arguments.shared.limit_default = "20M; short calls are merged until the page fits";
  arguments.shared.output_default = "the trace's name with .html, in this folder";
  argp_parse(&view_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  return view_run(&arguments);
}
