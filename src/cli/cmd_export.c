/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr export: a trace as a file that other tools read. The formats are those of src/export.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/export_size.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "export/export.h"
#include "report/report.h"
#include "session/session.h"

struct export_arguments {
  const char *file, *format;
  struct shared_options shared;
  struct filter_options filter;
  struct export_options options;
};

struct export_session {
  struct trace_input input;
  struct trace_progress progress;
};

/* ---- words for system calls and signals ---- */

static int words_call(struct text *text, const struct trace_stamp *stamp)
{
  return call_text(text, stamp->code, stamp->arguments, stamp->argument_count, stamp->paths, 0);
}

static int words_result(struct text *text, uint32_t number, int64_t result)
{
  return call_result_text(text, number, (uint64_t)result);
}

static int words_signal(struct text *text, const struct trace_stamp *stamp)
{
  return signal_text(text, (int)stamp->code, (int)stamp->result, stamp->value);
}

static const struct export_words words = {words_call, words_result, words_signal};

/* ---- the command ---- */

static int session_next(void *data, struct lb_trace_record *ret_record)
{
  struct export_session *session = data;

  return trace_input_next(&session->input, ret_record);
}

static void session_progress(void *data, uint64_t branches)
{
  struct export_session *session = data;

  trace_progress_show(&session->progress, branches);
}

static void export_complain(const struct export_session *session, const struct new_file *output, int error,
                            const char *message)
{
  if (error == LB_E_NO_ENTRY && *message)
    cli_error("%s: %s", session->input.name, message);
  else if (!session->input.has_failed)
    cli_error("%s: %s", output->name ? output->name : "standard output", lb_strerror(error));
}

static int export_write(const struct export_arguments *arguments, struct export_session *session,
                        struct analysis_names *names)
{
  struct export_input input = {session->input.reader, session_next, session_progress, session, names};
  char message[EXPORT_MESSAGE] = "";
  struct new_file output;
  int r = new_file_open(&output, arguments->file, arguments->shared.output, arguments->options.format->suffix);

  if (r >= 0)
    r = export_size_check(&arguments->options, session->input.reader, &output);
  if (r >= 0) {
    trace_progress_begin(&session->progress, session->input.reader);
    r = export_run(&arguments->options, &input, &(struct export_sink){&output, new_file_write, new_file_rewrite},
                   message);
    trace_progress_end(&session->progress);
    r = new_file_close(&output, r);
    if (r < 0)
      export_complain(session, &output, r, message);
    else if (*message)
      cli_error("warning: %s", message);
    if (r >= 0 && output.name && !cli_is_quiet())
      export_size_tell(&output);
  } else {
    new_file_close(&output, r);
  }
  new_file_done(&output);
  return r;
}

static int export_command(const struct export_arguments *arguments)
{
  struct export_session session = {0};
  struct analysis_names *names = NULL;
  int r, status;

  if (trace_input_open(&session.input, arguments->file) < 0)
    return CLI_FAILURE;
  r = analysis_names_new(&session.input.files, &names);
  if (r < 0)
    cli_error("%s: %s", session.input.name, lb_strerror(r));
  if (r >= 0 && arguments->shared.is_mangled)
    analysis_names_keep_mangled(names);
  if (r >= 0)
    r = export_write(arguments, &session, names);
  analysis_names_free(names);
  status = trace_input_close(&session.input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_TO = 0x100, KEY_WINDOW, KEY_ALL_SOURCES, KEY_FORMAT_VERSION, KEY_BY };

#define WINDOW_MAX 127u /* perf takes longer stacks as damaged */

static const struct argp_option options[] = {
  {"to", KEY_TO, "FORMAT", 0, "Format to write; 'list' lists the formats", 0},
  {"by", KEY_BY, "WHAT", 0,
   "Time axis of perfetto, chrome and speedscope: time, or instructions of the thread (default: instructions; perfetto: time, if the trace has it)",
   0},
  {"window", KEY_WINDOW, "N", 0, "Number of branches in a sample, for perf and brstack (default: 32)", 0},
  {"all-sources", KEY_ALL_SOURCES, NULL, 0, "lcov: include source files of the system", 0},
  {"format-version", KEY_FORMAT_VERSION, "V", 0, "Version of a format that has several", 0},
  {0},
};

static const struct argp_child children[] = {FILTER_EXPORT, SHARED_THREAD, SHARED_DEMANGLE,
                                             SHARED_OUTPUT, SHARED_COMMON, {0}};

static void formats_list(void)
{
  const struct export_format *format;

  for (size_t i = 0; (format = export_format_get(i)); i++)
    printf("%-12s %s\n", format->name, format->what);
}

static const struct export_format *format_option(const char *word, struct argp_state *state)
{
  const struct export_format *format = export_format_find(word);

  if (!format)
    argp_error(state, "no format '%s'; '--to list' lists the formats", word);
  return format;
}

static enum export_by by_option(const char *word, struct argp_state *state)
{
  if (!strcmp(word, "time"))
    return EXPORT_BY_TIME;
  if (strcmp(word, "instructions"))
    argp_error(state, "--by wants time or instructions, not '%s'", word);
  return EXPORT_BY_INSTRUCTIONS;
}

/* Calls are computed from all branches, so single branches cannot be filtered. */
static void filter_check(const struct export_arguments *arguments, struct argp_state *state)
{
  const struct export_format *format = arguments->options.format;
  const struct analysis_filter_options *filter = &arguments->filter.filter;

  if (format->needs & EXPORT_CALLS && (filter->kinds || filter->from_count || filter->to_count))
    argp_error(state,
               "--to %s is about calls, not single branches: it takes --thread, --function and --module, not --kind, "
               "--from and --into",
               format->name);
}

static void arguments_finish(struct export_arguments *arguments, struct argp_state *state)
{
  if (!arguments->format)
    argp_error(state, "name a format with --to; '--to list' lists the formats");
  if (!arguments->file)
    argp_error(state, "name a trace");
  filter_check(arguments, state);
  if (arguments->options.by && !arguments->options.format->has_axis)
    argp_error(state, "--to %s has no time axis: --by is for perfetto, chrome and speedscope", arguments->format);
  arguments->options.filter = &arguments->filter.filter;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct export_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->filter;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_TO:
    arguments->format = argument;
    if (!strcmp(argument, "list")) {
      formats_list();
      exit(CLI_OK);
    }
    arguments->options.format = format_option(argument, state);
    return 0;
  case KEY_WINDOW:
    arguments->options.window = (unsigned)filter_option_number("--window", argument, WINDOW_MAX, state);
    return 0;
  case KEY_BY:
    arguments->options.by = by_option(argument, state);
    return 0;
  case KEY_ALL_SOURCES:
    arguments->options.has_all_sources = true;
    return 0;
  case KEY_FORMAT_VERSION:
    arguments->options.version = argument;
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&arguments->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    arguments_finish(arguments, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp export_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Write a trace as a file that other tools read: perf, BOLT, AutoFDO, gcc, lcov, Perfetto, pprof and others.\vExit status: 0 if the file was written, 1 if it was not, or if the trace is damaged or truncated, 2 for a usage error. A file is written whole or not at all.",
  .children = children,
};

int cmd_export(int argc, char **argv)
{
  struct export_arguments arguments = {.options.words = &words};
  int status;

  shared_options_init(&arguments.shared);
  arguments.shared.output_default = "the trace's name with another ending, in this folder";
  filter_options_init(&arguments.filter);
  argp_parse(&export_argp, argc, argv, 0, NULL, &arguments);
  status = shared_options_settle(arguments.file, &arguments.shared) < 0 ? CLI_FAILURE : CLI_OK;
  arguments.options.stream = arguments.shared.stream;
  if (status == CLI_OK)
    status = export_command(&arguments);
  filter_options_done(&arguments.filter);
  return status;
}
