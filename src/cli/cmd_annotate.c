/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr annotate: a function of a recorded program, its source and its instructions, with exact counts.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/source_path_options.h"
#include "report/report.h"

struct annotate_arguments {
  const char *file, *function;
  struct shared_options shared;
  bool wants_lines;
  struct source_files sources;
};

/* ---- the command ---- */

/* Returns 0, or negative after a message. */
static int reading_show(struct annotate_arguments *arguments, const struct analysis_reading *reading)
{
  struct annotate_page page = {
    .reading = reading,
    .sources = arguments->wants_lines ? &arguments->sources : NULL,
    .stream = arguments->shared.stream,
    .output = cli_output(),
    .has_utf8 = cli_wants_color() && words_has_utf8(),
  };
  struct analysis_hot_function *functions = NULL;
  struct analysis_hot *hot = NULL;
  int r = analysis_hot_new(reading->names, reading->code, reading->counts, &(struct analysis_hot_filter){0}, &hot);

  if (r >= 0)
    r = analysis_functions_find(reading->names, reading->counts, hot, arguments->function, &functions);
  if (r == 0) {
    analysis_reading_near(reading, hot, arguments->function);
    r = LB_E_NO_ENTRY;
  } else if (r > 0) {
    arguments->sources.time = reading->input.time;
    arguments->sources.paths.names = reading->names;
    r = annotate_page_print(&page, arguments->shared.is_json, functions, (size_t)r);
  }
  if (r == -ENOMEM)
    cli_error("%s: %s", reading->input.name, lb_strerror(r));
  free(functions);
  analysis_hot_free(hot);
  return r;
}

static int annotate_run(struct annotate_arguments *arguments)
{
  struct analysis_reading reading;
  int r, status;

  if (analysis_reading_open(&reading, arguments->file, arguments->shared.stream, true) < 0)
    return CLI_FAILURE;
  if (arguments->shared.is_mangled)
    analysis_names_keep_mangled(reading.names);
  r = reading_show(arguments, &reading);
  source_done(&arguments->sources);
  status = analysis_reading_close(&reading);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_NO_LINES = 0x100 };

static const struct argp_option options[] = {
  {"no-source", KEY_NO_LINES, NULL, 0, "Instructions only", 0},
  {0},
};

static const struct argp_child children[] = {SOURCE_PATHS, SHARED_THREAD, SHARED_DEMANGLE, SHARED_NAMES,
                                             SHARED_JSON,  SHARED_OUTPUT, SHARED_COMMON,   {0}};

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct annotate_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->sources.paths;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_NO_LINES:
    arguments->wants_lines = false;
    return 0;
  case ARGP_KEY_ARG:
    if (!arguments->file)
      arguments->file = argument;
    else if (!arguments->function)
      arguments->function = argument;
    else
      argp_error(state, "name one trace and one function");
    return 0;
  case ARGP_KEY_END:
    if (!arguments->function)
      argp_error(state, "name a trace and a function");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp annotate_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE FUNCTION",
  .doc =
    "Show the source lines and instructions of a function: how often each ran, which way its branches went and how often, and arrows for the hot edges inside it. FUNCTION is NAME, MODULE:NAME, or a location in it: 0xADDRESS, MODULE+0xADDRESS, NAME+0xOFFSET, FILE:LINE. Several functions of one name are all shown. Every branch of the trace is counted: these are exact numbers, not samples.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after showing what could be read) or if no such function ran, 2 for a usage error.",
  .children = children,
};

int cmd_annotate(int argc, char **argv)
{
  struct annotate_arguments arguments = {.wants_lines = true};

  shared_options_init(&arguments.shared);
  arguments.shared.is_cut_off = true; /* source lines have brackets, too */
  argp_parse(&annotate_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  return annotate_run(&arguments);
}
