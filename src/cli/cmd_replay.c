/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr replay: a recorded run, as the recording unit of a processor would have recorded it: what its LBR stack or BTS
 * buffer would have held at some point.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "cli/replay_feed.h"

#define BTS_DEFAULT 1024
#define BTS_MOST (1u << 22)

static int replay_command(const struct replay_arguments *arguments)
{
  struct replay_run run = {.arguments = arguments, .is_process = true, .space = UINT32_MAX};
  int r, status;

  if (trace_input_open(&run.input, arguments->file) < 0)
    return CLI_FAILURE;
  r = replay_run(&run);
  if (r == 0)
    r = replay_print(&run);
  replay_done(&run);
  status = trace_input_close(&run.input);
  return r > 0 ? r : r < 0 ? CLI_FAILURE : status;
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

/* What a command line parses into. */
struct replay_line {
  struct replay_arguments *arguments;
  struct shared_options shared;
};

static void shared_take(struct replay_arguments *arguments, const struct shared_options *shared)
{
  arguments->has_symbols = shared->has_symbols;
  arguments->is_mangled = shared->is_mangled;
  if (shared->is_json)
    arguments->format = REPORT_JSON;
}

static enum report_format format_option(const char *argument, struct argp_state *state)
{
  int format = report_format_find(argument);

  if (format < 0)
    argp_error(state, "no format '%s'; the formats are table, json, windbg, windbg-old", argument);
  return (enum report_format)format;
}

/* FUNCTION[+OFFSET][:NTH], MODULE:0xOFFSET[:NTH] or 0xADDRESS[:NTH]. C++ names have colons, too, but no number behind
 * the last. */
static struct analysis_position entry_option(char *argument, struct argp_state *state)
{
  struct analysis_position position = {.kind = ANALYSIS_AT_ENTRY, .nth = 1};
  char *colon = strrchr(argument, ':');

  if (colon && colon != argument && strncmp(colon, ":0x", 3) != 0 && number_parse(colon + 1, &position.nth) >= 0)
    *colon = '\0';
  if (!position.nth)
    argp_error(state, "--at: NTH counts from 1");
  position.target = filter_option_entry("--at", argument, state);
  return position;
}

static struct analysis_position position_option(char *argument, struct argp_state *state)
{
  struct analysis_position position = {.kind = ANALYSIS_AT_NUMBER};

  if (!strcmp(argument, "end"))
    position.kind = ANALYSIS_AT_END;
  else if (!strcmp(argument, "crash"))
    position.kind = ANALYSIS_AT_CRASH;
  else if (*argument == '-' || !strncasecmp(argument, "0x", 2) || number_parse(argument, &position.number) < 0)
    return entry_option(argument, state);
  return position;
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
  if (arguments->position.kind == ANALYSIS_AT_ENTRY && arguments->position.target.symbol && !arguments->has_symbols)
    argp_error(state, "--no-symbols excludes options that name functions");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct replay_line *line = state->input;
  struct replay_arguments *arguments = line->arguments;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &line->shared);
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
    arguments->bts_size = filter_option_number("--bts-size", argument, BTS_MOST, state);
    if (!arguments->bts_size)
      argp_error(state, "--bts-size wants a number from 1 to %u", BTS_MOST);
    return 0;
  case KEY_AT:
    arguments->position = position_option(argument, state);
    return 0;
  case KEY_FROM_START:
    arguments->is_from_start = true;
    return 0;
  case 'f':
    arguments->format = format_option(argument, state);
    return 0;
  case ARGP_KEY_ARG:
    option_trace(&arguments->file, argument, state);
    return 0;
  case ARGP_KEY_END:
    shared_take(arguments, &line->shared);
    arguments_check(arguments, state);
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
    .bts_size = BTS_DEFAULT,
    .format = REPORT_TABLE,
    .position = {.kind = ANALYSIS_AT_END},
  };
  struct replay_line line = {.arguments = &arguments};

  shared_options_init(&line.shared);
  argp_parse(&replay_argp, argc, argv, 0, NULL, &line);
  if (shared_options_settle(arguments.file, &line.shared) < 0)
    return CLI_FAILURE;
  arguments.stream = line.shared.stream == LB_TRACE_ALL ? 0 : line.shared.stream;
  return replay_command(&arguments);
}
