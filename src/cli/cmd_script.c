/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr script: the branches of a trace, one per line.
 */
#include <argp.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "report/report.h"
#include "trace/trace.h"

#define CONTEXT_DEFAULT 16

struct script_arguments {
  const char *file;
  struct shared_options shared;
  bool has_context;
  struct filter_options filter;
  struct analysis_target around;
  struct report_script_options options;
};

/* Lines on the terminal show the progress themselves, unless they are rare. If the output is a pipe, its reader may
 * draw on the terminal. */
static bool wants_progress(const struct report_script_options *options)
{
  struct stat status;

  if (isatty(STDOUT_FILENO))
    return options->filter || options->around;
  return fstat(STDOUT_FILENO, &status) == 0 && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode));
}

static bool wants_field(const struct report_script_options *options, unsigned field)
{
  return memchr(options->fields, (int)field, options->field_count);
}

/* Prepares what the script needs. Returns 0, or negative after a message. */
static int needs_make(struct trace_input *input, struct script_arguments *arguments)
{
  struct report_script_options *options = &arguments->options;
  const struct analysis_filter_options *filter = &arguments->filter.filter;
  int r = arguments->shared.has_symbols ? analysis_names_new(&input->files, &options->names) : 0;

  if (options->names && arguments->shared.is_mangled)
    analysis_names_keep_mangled(options->names);
  if (r >= 0 && options->names && wants_field(options, REPORT_FIELD_INSN))
    r = analysis_code_new(options->names, &options->code);
  if (r >= 0)
    r = trace_input_read_starts(input, options->names, &(struct analysis_use){.filter = filter});
  if (r >= 0 && !analysis_filter_is_empty(filter))
    r = analysis_filter_new(filter, options->names, &options->filter);
  if (r < 0)
    cli_error("%s: %s", input->name, lb_strerror(r));
  return r;
}

static int script_run(struct script_arguments *arguments)
{
  struct report_script_options *options = &arguments->options;
  struct trace_input input;
  int r, status;

  if (trace_input_open(&input, arguments->file) < 0)
    return CLI_FAILURE;
  r = trace_input_check_stream(&input, options->stream);
  options->reader = input.reader;
  if (script_needs_times(options))
    trace_reader_want_stamps(input.reader);
  if (r >= 0)
    r = needs_make(&input, arguments);
  if (r >= 0) {
    struct report_script_page page = {cli_output(), &input, options, arguments->shared.tail, wants_progress(options)};

    r = report_script_page_print(&page);
  }
  analysis_filter_free(options->filter);
  analysis_code_free(options->code);
  analysis_names_free(options->names);
  status = trace_input_close(&input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_LIMIT = 0x100, KEY_AROUND, KEY_CONTEXT, KEY_EVENTS, KEY_TIME };

static const struct argp_option options[] = {
  {"limit", KEY_LIMIT, "N", OPTION_HIDDEN, NULL, 2},
  {"around", KEY_AROUND, "PLACE", 0,
   "Only the branches before and after each time that PLACE (as for --from) is entered", 2},
  {"context", KEY_CONTEXT, "N", 0, "With --around: N branches before and N after (default: 16)", 2},
  {"time", KEY_TIME, "FROM,TO", 0,
   "Only what happened in this span of time since the start of the recording; either end may be missing", 2},
  {NULL, 0, NULL, 0, "Output:", 3},
  {"events", KEY_EVENTS, "only", OPTION_ARG_OPTIONAL,
   "Print system calls, signals, and the start and end of threads, too; or nothing else", 3},
  {"fields", 'F', "LIST", 0, "Print these fields, in this order: thread, number, from, to, from_sym, kind, ...", 3},
  {0},
};

static const struct argp_child children[] = {FILTER_BRANCHES, SHARED_TOP,      SHARED_TAIL,  SHARED_THREAD,
                                             SHARED_SYMBOLS,  SHARED_DEMANGLE, SHARED_NAMES, SHARED_JSON,
                                             SHARED_OUTPUT,   SHARED_COMMON,   {0}};

static void fields_complain(const char *word, struct argp_state *state)
{
  struct text names = {0};

  for (unsigned i = 0; i < REPORT_FIELDS; i++)
    text_addf(&names, "%s%s", i ? ", " : "", report_field_name(i));
  argp_error(state, "no field '%s'; the fields are: %s", word, text_string(&names));
  text_done(&names);
}

static void fields_option(struct report_script_options *script, char *list, struct argp_state *state)
{
  char *word;

  script->field_count = 0;
  while ((word = strsep(&list, ","))) {
    int field = report_field_find(word);

    if (field < 0)
      fields_complain(word, state);
    if (wants_field(script, (unsigned)field))
      argp_error(state, "the field '%s' is named twice", word);
    script->fields[script->field_count++] = (uint8_t)field;
  }
}

static void events_option(struct report_script_options *script, const char *argument, struct argp_state *state)
{
  if (argument && strcmp(argument, "only") != 0)
    argp_error(state, "--events=%s: the only value is 'only'", argument);
  script->events = argument ? REPORT_EVENTS_ONLY : REPORT_EVENTS_TOO;
}

static void arguments_check(struct script_arguments *arguments, struct argp_state *state)
{
  bool needs_names =
    analysis_filter_needs_names(&arguments->filter.filter) || (arguments->options.around && arguments->around.symbol);

  if (!arguments->file)
    argp_error(state, "name a trace");
  if (needs_names && !arguments->shared.has_symbols)
    argp_error(state, "--no-symbols excludes options that name functions or modules");
  if (arguments->options.around && arguments->shared.tail != UINT64_MAX)
    argp_error(state, "--tail and --around exclude each other");
  if (arguments->options.around && arguments->options.events)
    argp_error(state, "--events and --around exclude each other");
  if (arguments->has_context && !arguments->options.around)
    argp_error(state, "--context needs --around");
  arguments->options.limit = arguments->shared.top;
  arguments->options.is_json = arguments->shared.is_json;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct script_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->filter;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_LIMIT:
    option_renamed("--limit", "--top");
    arguments->shared.top = option_number("--limit", argument, 0, UINT64_MAX - 1, state);
    return 0;
  case KEY_AROUND:
    arguments->around = filter_option_entry("--around", argument, state);
    arguments->options.around = &arguments->around;
    return 0;
  case KEY_CONTEXT:
    arguments->options.context = (uint32_t)filter_option_number("--context", argument, REPORT_CONTEXT_MAX, state);
    arguments->has_context = true;
    return 0;
  case KEY_EVENTS:
    events_option(&arguments->options, argument, state);
    return 0;
  case KEY_TIME:
    option_time_span(argument, &arguments->options.from, &arguments->options.to, state);
    return 0;
  case 'F':
    fields_option(&arguments->options, argument, state);
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

const struct argp script_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Print the branches of a trace, one per line: thread, number, from and to with their names, kind, and whether the branch was mispredicted or changed the CPL. A line that begins with 'gap:' stands for branches that are missing.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after showing what could be read) or if no branch matches, 2 for a usage error. An unfinished trace (NAME.incomplete) is read with a warning.",
  .children = children,
};

int cmd_script(int argc, char **argv)
{
  struct script_arguments arguments = {
    .options = {.context = CONTEXT_DEFAULT},
  };
  int status;

  shared_options_init(&arguments.shared);
  filter_options_init(&arguments.filter);
  argp_parse(&script_argp, argc, argv, 0, NULL, &arguments);
  status = shared_options_settle(arguments.file, &arguments.shared) < 0 ? CLI_FAILURE : CLI_OK;
  arguments.options.stream = arguments.shared.stream;
  if (status == CLI_OK)
    status = script_run(&arguments);
  filter_options_done(&arguments.filter);
  return status;
}
