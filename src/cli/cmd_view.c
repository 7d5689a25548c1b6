/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr view: a trace as a page for a browser.
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
#include "cli/source_options.h"
#include "cli/view_output.h"

#define SPAN 1000000u    /* branches around a place, if nothing else is said */
#define CONTEXT 1000000u /* branches before a part, in which the calls that are open when it begins are looked for */

struct view_arguments {
  const char *file, *around, *module;
  struct shared_options shared;
  uint64_t from, to, span, merge;
  bool has_source;
  struct source_paths sources;
};

/* A trace while a page is made of it. */
struct view_run {
  struct trace_input input;
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_counts *counts;
  struct report_view *view;
  struct trace_part part;
  struct source_paths *source_paths;
  struct analysis_files sources; /* opens only those that may be shown */
  struct trace_progress progress;
  uint64_t branches; /* of this reading */
};

static int run_fail(struct view_run *run, int error)
{
  trace_progress_end(&run->progress);
  cli_error("%s: %s", run->input.name, lb_strerror(error));
  return error;
}

/* ---- reading ---- */

static void run_progress(struct view_run *run, const struct lb_trace_record *record)
{
  if (record->type == LB_TRACE_BRANCHES)
    run->branches += record->branches.count;
  else if (record->type == LB_TRACE_COUNTED)
    run->branches += record->counted.count;
  trace_progress_show(&run->progress, run->branches);
}

static int counts_take(struct view_run *run, const struct lb_trace_record *record)
{
  int r = analysis_counts_record(run->counts, run->input.reader, record);

  run_progress(run, record);
  return r < 0 ? run_fail(run, r) : 0;
}

static int counts_take_part(void *data, const struct lb_trace_record *record)
{
  struct view_run *run = data;
  struct lb_trace_record taken = *record;

  if (record->type == LB_TRACE_BRANCHES && !trace_part_trim(&run->part, &taken.branches))
    return 0;
  return counts_take(run, &taken);
}

static int counts_read(struct view_run *run)
{
  struct lb_trace_record record;
  int r = 0;

  if (!trace_part_is_all(&run->part))
    return trace_part_read(&run->input, &run->part, counts_take_part, run);
  lb_trace_reader_count(run->input.reader, LB_TRACE_ALL);
  while (r >= 0 && (r = trace_input_next(&run->input, &record)) > 0)
    r = counts_take(run, &record);
  return r;
}

/* The counts are gone before the calls come: they need memory, too. */
static int run_counts(struct view_run *run)
{
  int r = analysis_counts_new(run->names, run->code, &run->counts);

  if (r < 0)
    return run_fail(run, r);
  trace_progress_begin(&run->progress, run->input.reader);
  r = counts_read(run);
  trace_progress_end(&run->progress);
  if (r >= 0) {
    r = analysis_counts_end(run->counts, run->input.reader);
    if (r >= 0)
      r = report_view_counts(run->view, run->counts);
    r = r == -ENOMEM ? run_fail(run, r) : r;
  }
  analysis_counts_free(run->counts);
  return r;
}

static int calls_take(void *data, const struct lb_trace_record *record)
{
  struct view_run *run = data;
  int r = report_view_record(run->view, record);

  run_progress(run, record);
  return r < 0 ? run_fail(run, r) : 0;
}

static int run_calls(struct view_run *run)
{
  int r;

  run->branches = 0;
  run->part.before = CONTEXT;
  trace_progress_begin(&run->progress, run->input.reader);
  r = trace_part_read(&run->input, &run->part, calls_take, run);
  trace_progress_end(&run->progress);
  if (r < 0)
    return r;
  r = report_view_end(run->view);
  return r < 0 ? run_fail(run, r) : r;
}

/* ---- --around ---- */

struct finder {
  const struct view_arguments *arguments;
  struct analysis_calls *calls;
  uint32_t function; /* the last that was looked at, */
  bool is_wanted;    /* and whether it is the one */
  struct analysis_call found;
  bool is_found;
};

static int finder_take(void *data, const struct analysis_call *call)
{
  struct finder *finder = data;
  struct analysis_called called;

  if (!call->is_enter ||
      (finder->arguments->shared.stream != LB_TRACE_ALL && finder->arguments->shared.stream != call->stream))
    return 0;
  if (call->function != finder->function) {
    finder->function = call->function;
    finder->is_wanted = analysis_calls_function(finder->calls, call->function, &called) &&
                        analysis_called_is(finder->calls, &called, finder->arguments->around);
  }
  if (!finder->is_wanted)
    return 0;
  finder->found = *call;
  finder->is_found = true;
  return -ECANCELED;
}

/* Reads up to the first call of the function. */
static int finder_read(struct view_run *run, struct finder *finder)
{
  struct lb_trace_record record;
  int r;

  trace_progress_begin(&run->progress, run->input.reader);
  while ((r = trace_input_next(&run->input, &record)) > 0) {
    r = analysis_calls_record(finder->calls, &record);
    if (r < 0)
      break;
    run_progress(run, &record);
  }
  trace_progress_end(&run->progress);
  lb_trace_reader_rewind(run->input.reader);
  return r == -ECANCELED ? 0 : r;
}

static int function_find(struct view_run *run, struct view_arguments *arguments, uint64_t *ret_branch)
{
  struct finder finder = {.arguments = arguments, .function = UINT32_MAX};
  struct analysis_names *names = NULL;
  int r = analysis_names_new(&run->input.files, &names);

  if (r >= 0)
    r = analysis_calls_new(names, NULL, finder_take, &finder, &finder.calls);
  if (r >= 0)
    r = trace_input_read_starts(&run->input, names);
  if (r >= 0)
    r = finder_read(run, &finder);
  analysis_calls_free(finder.calls);
  analysis_names_free(names);
  if (r < 0)
    return r == -ENOMEM ? run_fail(run, r) : r;
  if (!finder.is_found) {
    cli_error("%s: no call of '%s'; 'lbr stat' lists functions", run->input.name, arguments->around);
    return LB_E_NO_ENTRY;
  }
  arguments->shared.stream = finder.found.stream;
  *ret_branch = finder.found.branch;
  return 0;
}

static int around_find(struct view_run *run, struct view_arguments *arguments)
{
  uint64_t branch, half = arguments->span / 2;

  if (!arguments->around)
    return 0;
  if (number_parse(arguments->around, &branch) < 0) {
    int r = function_find(run, arguments, &branch);

    if (r < 0)
      return r;
  }
  arguments->from = branch > half ? branch - half : 0;
  arguments->to = branch < UINT64_MAX - half ? branch + half : UINT64_MAX;
  return 0;
}

/* ---- the command ---- */

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

static int run_begin(struct view_run *run, struct view_arguments *arguments)
{
  struct report_view_options options = {
    .files = arguments->has_source ? &run->sources : NULL,
    .file = run->input.name,
    .module = arguments->module,
    .merge = arguments->merge,
    .size = arguments->shared.limit ? arguments->shared.limit : REPORT_VIEW_SIZE,
  };
  int r = around_find(run, arguments);

  if (r < 0)
    return r;
  r = analysis_names_new(arguments->shared.has_symbols ? &run->input.files : NULL, &run->names);
  if (r >= 0 && arguments->shared.is_mangled)
    analysis_names_keep_mangled(run->names);
  if (r >= 0)
    r = analysis_code_new(run->names, &run->code);
  arguments->sources.names = run->names;
  run->source_paths = &arguments->sources;
  run->sources = (struct analysis_files){.data = run, .open = source_open, .close = source_close};
  options.names = run->names;
  options.code = run->code;
  options.stream = arguments->shared.stream;
  options.from = arguments->from;
  options.to = arguments->to;
  run->part = (struct trace_part){.stream = options.stream, .from = options.from, .to = options.to};
  if (r >= 0)
    r = report_view_new(&options, &run->view);
  return r < 0 ? run_fail(run, r) : r;
}

static int stream_check(struct view_run *run, uint32_t stream)
{
  int r = stream == LB_TRACE_ALL ? 0 : trace_input_tail(&run->input, stream, 0);

  if (r == LB_E_NO_ENTRY)
    cli_error("%s: no thread %u; 'lbr stat' lists the threads", run->input.name, stream);
  if (r >= 0)
    lb_trace_reader_rewind(run->input.reader);
  return r;
}

static int view_run(struct view_arguments *arguments)
{
  struct view_run run = {0};
  int r, status;

  if (trace_input_open(&run.input, arguments->file) < 0)
    return CLI_FAILURE;
  r = stream_check(&run, arguments->shared.stream);
  if (r >= 0)
    r = run_begin(&run, arguments);
  if (r >= 0)
    r = run_counts(&run);
  if (r >= 0 && arguments->module && !report_view_ran(run.view))
    r = trace_input_tell_module(&run.input, run.names, arguments->module);
  if (r >= 0)
    r = run_calls(&run);
  if (r >= 0)
    r = view_output_write(run.view, run.input.name, arguments->shared.output);
  trace_input_tell_limit(&run.input, run.code);
  report_view_free(run.view);
  analysis_code_free(run.code);
  analysis_names_free(run.names);
  status = trace_input_close(&run.input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_FROM = 0x100, KEY_TO, KEY_BETWEEN, KEY_AROUND, KEY_MODULE, KEY_SPAN, KEY_DETAIL, KEY_SIZE, KEY_NO_SOURCE };

static const struct argp_option options[] = {
  {"between", KEY_BETWEEN, "A..B", 0, "Timeline of branches A to B of each thread, as 'lbr script' numbers them", 0},
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
    arguments->to += arguments->to != UINT64_MAX; /* which is behind the last one */
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
