/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr script: the branches of a trace, a line each.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "report/report.h"

#define CONTEXT_DEFAULT 16
#define TAIL_FIRST 65536u /* branches that are looked at for the last ones that a filter lets pass; then */
#define TAIL_GROWTH 16u   /* so many times more */

struct script_arguments {
  const char *file;
  struct shared_options shared;
  bool has_context;
  struct filter_options filter;
  struct analysis_target around;
  struct report_script_options options;
};

/* A trace while it is printed. */
struct script_run {
  struct trace_input input;
  struct analysis_names *names;
  struct analysis_code *code;
  struct analysis_filter *filter; /* NULL: all branches */
  struct report_script *script;
  struct text text;
  bool is_search;   /* not every branch is printed */
  bool is_terminal; /* where they are printed */
  struct trace_progress progress;
};

/* ---- printing ---- */

/* Prints what is there. Returns false when it cannot be written: main will say so. */
static bool run_print(struct script_run *run)
{
  if (run->is_terminal)
    trace_progress_end(&run->progress);
  fwrite(run->text.data, 1, run->text.length, stdout);
  run->text.length = 0;
  return !ferror(stdout);
}

/* Says what does not go. */
static int run_complain(const struct script_run *run, int error)
{
  if (error == LB_E_TOO_BIG)
    cli_error("%s: too many threads for this much context; choose one with --thread, or less with --context",
              run->input.name);
  else
    cli_error("%s: %s", run->input.name, lb_strerror(error));
  return error;
}

/* Returns 1 to go on, 0 when it is enough, or negative after a complaint. */
static int run_record(struct script_run *run, const struct lb_trace_record *record)
{
  int r = report_script_record(run->script, record, &run->text);

  if (run->text.length && !run_print(run))
    return -1;
  return r < 0 ? run_complain(run, r) : r;
}

/* Lines on the terminal show by themselves how far it is, unless they are rare; who reads from a pipe may be drawing on
 * it. */
static bool wants_progress(const struct script_run *run)
{
  struct stat status;

  if (run->is_terminal)
    return run->is_search;
  return fstat(STDOUT_FILENO, &status) == 0 && (S_ISREG(status.st_mode) || S_ISCHR(status.st_mode));
}

static int run_all(struct script_run *run)
{
  struct lb_trace_record record;
  uint64_t branches = 0;
  int r;

  if (wants_progress(run))
    trace_progress_begin(&run->progress, run->input.reader);
  while ((r = trace_input_next(&run->input, &record)) > 0) {
    r = run_record(run, &record);
    if (r <= 0)
      break;
    branches += record.type == LB_TRACE_BRANCHES ? record.branches.count : 0;
    trace_progress_show(&run->progress, branches);
  }
  trace_progress_end(&run->progress);
  return r;
}

/* The end of one stream. The reader gives all that describes the trace before it, which is wanted once. Modules that
 * went away are kept, since some of these branches are older. */
static int run_stream(struct script_run *run, uint32_t stream, uint64_t count, bool is_first)
{
  struct lb_trace_record record;
  int r = trace_input_tail(&run->input, stream, count);

  if (r < 0)
    return r;
  if (!is_first)
    lb_trace_reader_skip(run->input.reader);
  while ((r = trace_input_next(&run->input, &record)) > 0) {
    if (record.type == LB_TRACE_MODULE && record.module.is_gone)
      continue;
    r = run_record(run, &record);
    if (r <= 0)
      return r;
  }
  return r < 0 ? r : 1;
}

/* ---- the last ones that a filter lets pass ---- */

/* Looks at the last `count` branches of a stream. Returns 1 if there are more before them, 0 if not, or negative. */
static int matches_count(struct script_run *run, uint32_t stream, uint64_t count, bool is_first, uint64_t *ret_matches)
{
  uint16_t places[LB_TRACE_BATCH_MAX];
  struct lb_trace_record record;
  uint64_t seen = 0, matches = 0;
  int r = trace_input_tail(&run->input, stream, count);

  if (r < 0)
    return r;
  if (!is_first)
    lb_trace_reader_skip(run->input.reader);
  while ((r = trace_input_next(&run->input, &record)) > 0) {
    if (record.type == LB_TRACE_BRANCHES) {
      seen += record.branches.count;
      matches += analysis_filter_branches(run->filter, &record.branches, places);
    } else if (record.type != LB_TRACE_GAP && !(record.type == LB_TRACE_MODULE && record.module.is_gone)) {
      r = run_record(run, &record);
      if (r < 0)
        return r;
    }
  }
  *ret_matches = matches;
  return r < 0 ? r : seen >= count;
}

/* Goes back as far as is needed, further each time. What was found is then read once more to be printed. */
static int run_stream_matches(struct script_run *run, uint32_t stream, uint64_t wanted, bool is_first)
{
  uint64_t count = wanted > TAIL_FIRST ? wanted : TAIL_FIRST, matches = 0;
  int r;

  for (;;) {
    r = matches_count(run, stream, count, is_first, &matches);
    is_first = false;
    if (r <= 0 || matches >= wanted || count == UINT64_MAX)
      break;
    count = count > UINT64_MAX / TAIL_GROWTH ? UINT64_MAX : count * TAIL_GROWTH;
  }
  if (r < 0)
    return r;
  report_script_skip(run->script, matches > wanted ? matches - wanted : 0);
  return run_stream(run, stream, count, false);
}

/* ---- which streams ---- */

/* A trace without streams has no end of any; what is wrong with it shows when it is read. */
static int run_empty(struct script_run *run)
{
  lb_trace_reader_rewind(run->input.reader);
  return run_all(run);
}

static int run_tail(struct script_run *run, const struct script_arguments *arguments)
{
  int (*print)(struct script_run *, uint32_t, uint64_t, bool) = run->filter ? run_stream_matches : run_stream;
  int r = 1;

  if (arguments->options.stream != LB_TRACE_ALL)
    return print(run, arguments->options.stream, arguments->shared.tail, true);
  for (uint32_t stream = 0; r > 0; stream++) {
    r = print(run, stream, arguments->shared.tail, stream == 0);
    if (r == LB_E_NO_ENTRY)
      return stream ? 0 : run_empty(run);
  }
  return r;
}

/* ---- the command ---- */

/* Is there a thread with this number? Takes constant time in a trace that has its index. */
static int stream_check(struct script_run *run, uint32_t stream)
{
  int r = stream == LB_TRACE_ALL ? 0 : trace_input_tail(&run->input, stream, 0);

  if (r == LB_E_NO_ENTRY)
    cli_error("%s: no thread %u; 'lbr stat' lists the threads", run->input.name, stream);
  if (r >= 0)
    lb_trace_reader_rewind(run->input.reader);
  return r;
}

static bool wants_field(const struct report_script_options *options, unsigned field)
{
  return memchr(options->fields, (int)field, options->field_count);
}

/* What the script needs. Returns 0, or -ENOMEM. */
static int run_begin(struct script_run *run, struct script_arguments *arguments)
{
  struct report_script_options *options = &arguments->options;
  int r = arguments->shared.has_symbols ? analysis_names_new(&run->input.files, &run->names) : 0;

  if (run->names && arguments->shared.is_mangled)
    analysis_names_keep_mangled(run->names);
  if (r >= 0 && run->names && wants_field(options, REPORT_FIELD_INSN))
    r = analysis_code_new(run->names, &run->code);
  if (r >= 0 && run->names && analysis_filter_needs_starts(&arguments->filter.filter))
    r = trace_input_read_starts(&run->input, run->names);
  if (r >= 0 && !analysis_filter_is_empty(&arguments->filter.filter))
    r = analysis_filter_new(&arguments->filter.filter, run->names, &run->filter);
  run->is_search = run->filter || options->around;
  run->is_terminal = isatty(STDOUT_FILENO);
  options->names = run->names;
  options->code = run->code;
  options->filter = run->filter;
  return r < 0 ? r : report_script_new(options, &run->script);
}

static void run_done(struct script_run *run)
{
  report_script_free(run->script);
  analysis_filter_free(run->filter);
  analysis_code_free(run->code);
  analysis_names_free(run->names);
  text_done(&run->text);
}

/* Nothing came out of a search: that is an answer, too. */
static bool is_in_vain(const struct script_run *run, const struct script_arguments *arguments)
{
  if (!run->is_search || !arguments->options.limit || !arguments->shared.tail || report_script_count(run->script))
    return false;
  cli_error("%s: no branch matches", run->input.name);
  return true;
}

static int script_run(struct script_arguments *arguments)
{
  struct script_run run = {0};
  int r, status;

  if (trace_input_open(&run.input, arguments->file) < 0)
    return CLI_FAILURE;
  r = stream_check(&run, arguments->options.stream);
  if (r >= 0) {
    r = run_begin(&run, arguments);
    if (r < 0)
      run_complain(&run, r);
  }
  if (r >= 0) {
    r = arguments->shared.tail == UINT64_MAX ? run_all(&run) : run_tail(&run, arguments);
    r = r >= 0 && is_in_vain(&run, arguments) ? LB_E_NO_ENTRY : r;
  }
  run_done(&run);
  status = trace_input_close(&run.input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_LIMIT = 0x100, KEY_AROUND, KEY_CONTEXT };

static const struct argp_option options[] = {
  {"limit", KEY_LIMIT, "N", OPTION_HIDDEN, NULL, 2},
  {"around", KEY_AROUND, "PLACE", 0,
   "Only the branches before and after each time that PLACE (as for --from) is entered", 2},
  {"context", KEY_CONTEXT, "N", 0, "With --around: N branches before and N after (default: 16)", 2},
  {NULL, 0, NULL, 0, "Output:", 3},
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
