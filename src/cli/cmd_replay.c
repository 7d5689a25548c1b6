/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr replay: what the LBR stack or BTS buffer of a processor would have held at some point of a recorded run.
 */
#include <argp.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "hardware/hardware.h"
#include "report/report.h"
#include "session/session.h"

#define BTS_DEFAULT 1024
#define BTS_MOST (1u << 22)

struct replay_arguments {
  const char *file;
  struct shared_options shared;
  struct lbr_setup setup;
  struct lbr_bts bts;
  struct replay_options options;
  enum report_format format;
  bool has_bts;
  const char *bts_file; /* NULL to print them */
};

/* ---- the recorder ---- */

static int recorder_make(void *data, bool has_kernel, struct lb_recorder **ret_recorder)
{
  struct replay_arguments *arguments = data;

  arguments->setup.has_kernel = has_kernel;
  arguments->bts.size = arguments->options.bts_size;
  return arguments->has_bts ? lbr_setup_bts(&arguments->setup, &arguments->bts, ret_recorder)
                            : lbr_setup_new(&arguments->setup, ret_recorder);
}

static void recorder_drop(void *data, struct lb_recorder *recorder)
{
  struct replay_arguments *arguments = data;

  free(recorder);
  lbr_bts_done(&arguments->bts);
}

/* ---- the command ---- */

static int bts_write(const struct replay_arguments *arguments, size_t count)
{
  const char *name = arguments->bts_file;
  struct new_file file;
  int r = new_file_open(&file, name, name, "");

  if (r >= 0) {
    r = new_file_close(&file, new_file_write(&file, arguments->bts.bytes, arguments->bts.record_size * count));
    if (r < 0)
      cli_error("%s: %s", name, lb_strerror(r));
  }
  new_file_done(&file);
  return r;
}

static int run_print(struct replay_arguments *arguments, struct replay_run *run)
{
  struct replay_page page = {.output = cli_output(),
                             .run = run,
                             .cpu = arguments->setup.cpu->name,
                             .format = arguments->format,
                             .bts_file = arguments->bts_file};

  replay_page_warn(run);
  if (arguments->has_bts) {
    page.bts_count = lbr_bts_sort(run->recorder, &arguments->bts);
    page.bts_bytes = arguments->bts.bytes;
    page.record_size = arguments->bts.record_size;
    if (arguments->bts_file && bts_write(arguments, page.bts_count) < 0)
      return -1;
  }
  return replay_page_print(&page);
}

static int replay_command(struct replay_arguments *arguments)
{
  struct replay_run run;
  int r, status;

  if (replay_open(&run, arguments->file, &arguments->options) < 0)
    return CLI_FAILURE;
  r = replay_run(&run);
  if (r == 0)
    r = run_print(arguments, &run);
  status = replay_close(&run);
  return r > 0 ? CLI_USAGE : r < 0 ? CLI_FAILURE : status;
}

/* ---- the command line ---- */

enum {
  KEY_SELECT = 0x100,
  KEY_AT,
  KEY_BTS,
  KEY_BTS_SIZE,
  KEY_CALL_STACK,
  KEY_FROM_START,
};

static const struct argp_option options[] = {
  {NULL, 0, NULL, 0, "Recording unit:", 1},
  {"cpu", 'c', "NAME", 0, "Processor that records ('lbr cpu --list' shows all)", 0},
  {"select", KEY_SELECT, "LIST", 0,
   "Set these fields of the processor's filter, or its whole value: in LBR_SELECT a 1 leaves branches out, in IA32_LBR_CTL a 1 records them",
   0},
  {"call-stack", KEY_CALL_STACK, NULL, 0, "Record in call-stack mode: returns remove records", 0},
  {"bts", KEY_BTS, "FILE", OPTION_ARG_OPTIONAL,
   "Show the branch trace store instead of the LBR stack; with FILE, write the records to it as they are in memory", 0},
  {"bts-size", KEY_BTS_SIZE, "N", 0, "Size of the BTS buffer in records (default: 1024)", 0},
  {NULL, 0, NULL, 0, "Position:", 2},
  {"at", KEY_AT, "POSITION", 0,
   "Show the state at end (default), crash, after branch N, or when FUNCTION[:NTH] or an address (0x...) is entered",
   0},
  {"from-start", KEY_FROM_START, NULL, 0, "Read all branches before that point, even if the last ones are enough", 0},
  {NULL, 0, NULL, 0, "Output:", 3},
  {"format", 'f', "FORMAT", 0, "table (default), windbg, windbg-old or json", 0},
  {0},
};

static const struct argp_child children[] = {
  SHARED_THREAD, SHARED_SYMBOLS, SHARED_DEMANGLE, SHARED_JSON, SHARED_OUTPUT, SHARED_COMMON, {0}};

static void shared_take(struct replay_arguments *arguments)
{
  const struct shared_options *shared = &arguments->shared;

  arguments->options.has_symbols = shared->has_symbols;
  arguments->options.is_mangled = shared->is_mangled;
  if (shared->is_json)
    arguments->format = REPORT_JSON;
}

static void arguments_check(const struct replay_arguments *arguments, struct argp_state *state)
{
  bool is_windbg = arguments->format == REPORT_WINDBG || arguments->format == REPORT_WINDBG_OLD;

  if (!arguments->file)
    argp_error(state, "name a trace");
  if (!arguments->setup.cpu)
    argp_error(state, "name a processor with --cpu; 'lbr cpu --list' shows all");
  if (arguments->setup.has_call_stack && arguments->setup.filter)
    argp_error(state, "--call-stack and --select exclude each other: --call-stack sets the filter");
  if (arguments->has_bts && (arguments->setup.has_call_stack || arguments->setup.filter || is_windbg))
    argp_error(state, "--bts excludes --select, --call-stack and --format windbg, which are for the LBR stack");
  if (arguments->options.position.kind == ANALYSIS_AT_ENTRY && arguments->options.position.target.symbol &&
      !arguments->options.has_symbols)
    argp_error(state, "--no-symbols excludes options that name functions");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct replay_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case 'c':
    arguments->setup.cpu = cli_option_cpu(argument);
    return 0;
  case KEY_SELECT:
    arguments->setup.filter = argument;
    return 0;
  case KEY_CALL_STACK:
    arguments->setup.has_call_stack = true;
    return 0;
  case KEY_BTS:
    arguments->has_bts = true;
    arguments->bts_file = argument;
    return 0;
  case KEY_BTS_SIZE:
    arguments->options.bts_size = filter_option_number("--bts-size", argument, BTS_MOST, state);
    if (!arguments->options.bts_size)
      argp_error(state, "--bts-size wants a number from 1 to %u", BTS_MOST);
    return 0;
  case KEY_AT:
    arguments->options.position = filter_option_position("--at", argument, state);
    return 0;
  case KEY_FROM_START:
    arguments->options.is_from_start = true;
    return 0;
  case 'f':
    arguments->format = option_format(argument, state);
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&arguments->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    shared_take(arguments);
    arguments_check(arguments, state);
    arguments->options.is_filtered = arguments->setup.filter || arguments->setup.has_call_stack;
    arguments->options.bts_size = arguments->has_bts ? arguments->options.bts_size : 0;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp replay_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "FILE",
  .doc =
    "Feed a recorded run to the recording unit of a processor, and show what its LBR stack or BTS buffer would have held at some point.\vExit status: 0 if the trace is complete, 1 if it is damaged or truncated (after showing what could be read), 2 for a usage error, a processor that does not record, or a position that does not exist.",
  .children = children,
};

int cmd_replay(int argc, char **argv)
{
  struct replay_arguments arguments = {
    .format = REPORT_TABLE,
    .options = {.bts_size = BTS_DEFAULT,
                .position = {.kind = ANALYSIS_AT_END},
                .make = recorder_make,
                .drop = recorder_drop,
                .data = &arguments},
  };

  shared_options_init(&arguments.shared);
  argp_parse(&replay_argp, argc, argv, 0, NULL, &arguments);
  if (shared_options_settle(arguments.file, &arguments.shared) < 0)
    return CLI_FAILURE;
  arguments.options.stream = arguments.shared.stream == LB_TRACE_ALL ? 0 : arguments.shared.stream;
  return replay_command(&arguments);
}
