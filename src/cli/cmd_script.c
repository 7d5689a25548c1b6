/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr script: the branches of a trace, a line each.
 */
#include <argp.h>
#include <errno.h>
#include <stdio.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/trace_input.h"

struct script_arguments {
  const char *file;
  uint64_t tail; /* UINT64_MAX: all */
  bool has_symbols;
  struct report_script_options options;
};

/* A trace while it is printed. */
struct script_run {
  struct trace_input input;
  struct report_script *script;
  struct text text;
};

/* ---- printing ---- */

/* Prints what is there. Returns false when it cannot be written: main will say so. */
static bool run_print(struct script_run *run)
{
  fwrite(run->text.data, 1, run->text.length, stdout);
  run->text.length = 0;
  return !ferror(stdout);
}

/* Returns 1 to go on, 0 when it is enough, or negative after a complaint. */
static int run_record(struct script_run *run, const struct lb_trace_record *record)
{
  int r = report_script_record(run->script, record, &run->text);

  if (r < 0) {
    cli_error("%s: %s", run->input.name, lb_strerror(r));
    return r;
  }
  if (run->text.length && !run_print(run))
    return -1;
  return r;
}

static int run_all(struct script_run *run)
{
  struct lb_trace_record record;
  int r;

  while ((r = trace_input_next(&run->input, &record)) > 0) {
    r = run_record(run, &record);
    if (r <= 0)
      return r;
  }
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

/* A trace without streams has no end of any; what is wrong with it shows when it is read. */
static int run_empty(struct script_run *run)
{
  lb_trace_reader_rewind(run->input.reader);
  return run_all(run);
}

static int run_tail(struct script_run *run, const struct script_arguments *arguments)
{
  int r = 1;

  if (arguments->options.stream != LB_TRACE_ALL)
    return run_stream(run, arguments->options.stream, arguments->tail, true);
  for (uint32_t stream = 0; r > 0; stream++) {
    r = run_stream(run, stream, arguments->tail, stream == 0);
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
    cli_error("%s: it has no thread %u; 'lbr stat' lists its threads", run->input.name, stream);
  if (r >= 0)
    lb_trace_reader_rewind(run->input.reader);
  return r;
}

static int script_run(struct script_arguments *arguments)
{
  struct script_run run = {0};
  struct report_names *names = NULL;
  int r, status;

  if (trace_input_open(&run.input, arguments->file) < 0)
    return CLI_FAILURE;
  r = stream_check(&run, arguments->options.stream);
  if (r >= 0 && arguments->has_symbols)
    r = report_names_new(&run.input.files, &names);
  arguments->options.names = names;
  if (r >= 0)
    r = report_script_new(&arguments->options, &run.script);
  if (r == -ENOMEM)
    cli_error("%s: %s", run.input.name, lb_strerror(r));
  if (r >= 0)
    r = arguments->tail == UINT64_MAX ? run_all(&run) : run_tail(&run, arguments);
  report_script_free(run.script);
  report_names_free(names);
  text_done(&run.text);
  status = trace_input_close(&run.input);
  return r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum { KEY_TAIL = 0x100, KEY_THREAD, KEY_LIMIT, KEY_NO_SYMBOLS };

static const struct argp_option options[] = {
  {"tail", KEY_TAIL, "N", 0, "Only the last N branches of each thread; takes no longer in a long trace", 0},
  {"thread", KEY_THREAD, "N", 0, "Only this thread: a number of the first column, which 'lbr stat' lists", 0},
  {"limit", KEY_LIMIT, "N", 0, "Stop after N branches", 0},
  {"no-symbols", KEY_NO_SYMBOLS, NULL, 0, "Addresses only; the files that the trace names are not opened", 0},
  {"json", 'j', NULL, 0, "A JSON object in each line", 0},
  {0},
};

static uint64_t number_option(const char *name, const char *argument, uint64_t max, struct argp_state *state)
{
  uint64_t value = 0;

  if (*argument == '-' || number_parse(argument, &value) < 0 || value > max)
    argp_error(state, "%s wants a number from 0 to %llu, not '%s'", name, (unsigned long long)max, argument);
  return value;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct script_arguments *arguments = state->input;

  switch (key) {
  case KEY_TAIL:
    arguments->tail = number_option("--tail", argument, UINT64_MAX - 1, state);
    return 0;
  case KEY_THREAD:
    arguments->options.stream = (uint32_t)number_option("--thread", argument, LB_TRACE_STREAMS_MAX - 1, state);
    return 0;
  case KEY_LIMIT:
    arguments->options.limit = number_option("--limit", argument, UINT64_MAX - 1, state);
    return 0;
  case KEY_NO_SYMBOLS:
    arguments->has_symbols = false;
    return 0;
  case 'j':
    arguments->options.is_json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (arguments->file)
      argp_error(state, "one trace at a time");
    arguments->file = argument;
    return 0;
  case ARGP_KEY_END:
    if (!arguments->file)
      argp_error(state, "a trace is wanted");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static const struct argp script_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Print the branches of a trace, a line each: thread, number, from and to with their names, kind, and whether "
    "it was mispredicted or changed the CPL. What is missing in the trace is a line that begins with 'gap:'.\v"
    "Exit status: 0 if the trace is whole, 1 if it is damaged or cut, after what could be read was printed, 2 for a "
    "command line that makes no sense. A trace that was not finished (NAME.incomplete) is read with a warning.",
  .children = cli_help,
};

int cmd_script(int argc, char **argv)
{
  struct script_arguments arguments = {
    .tail = UINT64_MAX,
    .has_symbols = true,
    .options = {.stream = LB_TRACE_ALL, .limit = UINT64_MAX},
  };

  argp_parse(&script_argp, argc, argv, 0, NULL, &arguments);
  return script_run(&arguments);
}
