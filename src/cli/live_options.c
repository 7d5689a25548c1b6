/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr live`.
 */
#include "cli/live_options.h"

#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"

#define STATE_DIRECTORY "/run/lbr"
#define INTERVAL_LEAST 0.01
#define INTERVAL_MOST 86400.0

enum {
  KEY_SELECT = 0x100,
  KEY_CALL_STACK,
  KEY_USER,
  KEY_KERNEL,
  KEY_ARM,
  KEY_DISARM,
  KEY_FORCE,
  KEY_NO_STOP,
  KEY_INTERVAL,
  KEY_COUNT,
  KEY_STATE_DIRECTORY,
};

static const struct argp_option options[] = {
  {NULL, 0, NULL, 0, "Which processor:", 1},
  {"cpu-number", 'n', "N", 0, "Number of the logical processor (default: 0)", 0},
  {"cpu", 'c', "NAME", 0,
   "Treat the processor as this CPU, whatever CPUID says: for a CPU that is not in the catalogue", 0},
  {NULL, 0, NULL, 0, "What it records, for the time of reading or for --arm:", 2},
  {"select", KEY_SELECT, "LIST", 0,
   "Set these fields of the processor's filter, or its whole value: in LBR_SELECT a 1 leaves branches out, in IA32_LBR_CTL a 1 records them",
   0},
  {"call-stack", KEY_CALL_STACK, NULL, 0, "Record in call-stack mode: returns remove records", 0},
  {"user", KEY_USER, NULL, 0, "Record only branches to CPL 1 to 3", 0},
  {"kernel", KEY_KERNEL, NULL, 0, "Record only branches to CPL 0", 0},
  {NULL, 0, NULL, 0, "On and off:", 3},
  {"arm", KEY_ARM, NULL, 0, "Switch recording on, and leave it on", 0},
  {"disarm", KEY_DISARM, NULL, 0, "Restore the registers as they were before --arm", 0},
  {"force", KEY_FORCE, NULL, 0, "Take recording over from perf or a debugger", 0},
  {"state-directory", KEY_STATE_DIRECTORY, "DIR", 0, "Where --arm remembers what was before (" STATE_DIRECTORY ")", 0},
  {NULL, 0, NULL, 0, "How it is read and shown:", 4},
  {"no-stop", KEY_NO_STOP, NULL, 0, "Write no register: read while recording continues", 0},
  {"watch", 'w', NULL, 0, "Refresh until Ctrl-C", 0},
  {"interval", KEY_INTERVAL, "SECONDS", 0, "Wait this long before each reading (default: 1)", 0},
  {"count", KEY_COUNT, "N", 0, "With --watch: stop after N readings", 0},
  {"format", 'f', "FORMAT", 0, "table (default), windbg, windbg-old or json", 0},
  {"pid", 'p', "PID", 0, "Show names of this process for addresses in user space", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_SYMBOLS, SHARED_JSON, SHARED_COMMON, {0}};

/* The result of parsing the command line. */
struct live_line {
  struct live_arguments *arguments;
  struct live_show *show;
  struct shared_options shared;
};

/* ---- the command line ---- */

static uint64_t number_option(const char *name, const char *argument, uint64_t most, struct argp_state *state)
{
  uint64_t number = 0;

  if (number_parse(argument, &number) < 0 || number > most)
    argp_error(state, "%s: '%s' is no number up to %llu", name, argument, (unsigned long long)most);
  return number;
}

static double interval_option(const char *argument, struct argp_state *state)
{
  char *end;
  double seconds = strtod(argument, &end);

  if (end == argument || *end || !(seconds >= INTERVAL_LEAST && seconds <= INTERVAL_MOST))
    argp_error(state, "--interval: '%s' is no number of seconds from 0.01 to 86400", argument);
  return seconds;
}

static void rings_option(struct live_arguments *arguments, enum lbr_rings rings, struct argp_state *state)
{
  if (arguments->rings != LBR_RINGS_ALL && arguments->rings != rings)
    argp_error(state, "--user and --kernel exclude each other; without them, both are recorded");
  arguments->rings = rings;
}

/* Checks for options that exclude each other. */
static void options_check(struct live_arguments *arguments, struct argp_state *state)
{
  bool wants_change = arguments->wants_arm || arguments->wants_disarm;

  arguments->has_filter =
    arguments->setup.filter || arguments->setup.has_call_stack || arguments->rings != LBR_RINGS_ALL;
  if (arguments->wants_arm && arguments->wants_disarm)
    argp_error(state, "--arm and --disarm exclude each other");
  if (arguments->setup.filter && arguments->setup.has_call_stack)
    argp_error(state, "--call-stack and --select exclude each other: --call-stack sets the filter");
  if (arguments->wants_disarm && arguments->has_filter)
    argp_error(state, "--disarm restores the old filter: it takes no filter options");
  if (wants_change && (arguments->wants_watch || arguments->keeps_running))
    argp_error(state, "--arm and --disarm read no records: --watch and --no-stop do not apply");
  if (arguments->keeps_running && arguments->has_filter)
    argp_error(state, "--no-stop writes no register: it takes no filter options");
  if (arguments->count && !arguments->wants_watch)
    argp_error(state, "--count needs --watch");
}

static error_t filter_parse(int key, char *argument, struct live_arguments *arguments, struct argp_state *state)
{
  switch (key) {
  case KEY_SELECT:
    arguments->setup.filter = argument;
    break;
  case KEY_CALL_STACK:
    arguments->setup.has_call_stack = true;
    break;
  case KEY_USER:
    rings_option(arguments, LBR_RINGS_USER, state);
    break;
  case KEY_KERNEL:
    rings_option(arguments, LBR_RINGS_KERNEL, state);
    break;
  case KEY_ARM:
    arguments->wants_arm = true;
    break;
  case KEY_DISARM:
    arguments->wants_disarm = true;
    break;
  case KEY_FORCE:
    arguments->is_forced = true;
    break;
  case KEY_STATE_DIRECTORY:
    arguments->state_directory = argument;
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static error_t show_parse(int key, char *argument, const struct live_line *line, struct argp_state *state)
{
  struct live_arguments *arguments = line->arguments;

  switch (key) {
  case KEY_NO_STOP:
    arguments->keeps_running = true;
    break;
  case 'w':
    arguments->wants_watch = true;
    break;
  case KEY_INTERVAL:
    arguments->interval = interval_option(argument, state);
    break;
  case KEY_COUNT:
    arguments->count = number_option("--count", argument, UINT32_MAX, state);
    break;
  case 'f':
    line->show->format = option_format(argument, state);
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct live_line *line = state->input;
  struct live_arguments *arguments = line->arguments;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &line->shared);
    break;
  case 'n':
    arguments->number = (unsigned)number_option("--cpu-number", argument, 65535, state);
    break;
  case 'c':
    arguments->cpu = cli_option_cpu(argument);
    break;
  case 'p':
    arguments->process = (unsigned)number_option("--pid", argument, INT32_MAX, state);
    break;
  case ARGP_KEY_ARG:
    argp_error(state, "too many arguments: '%s'; lbr live takes options only", argument);
    break;
  case ARGP_KEY_END:
    arguments->has_symbols = line->shared.has_symbols;
    if (line->shared.is_json)
      line->show->format = REPORT_JSON;
    options_check(arguments, state);
    break;
  default:
    return filter_parse(key, argument, arguments, state) == 0 ? 0 : show_parse(key, argument, line, state);
  }
  return 0;
}

const struct argp live_argp = {
  .options = options,
  .parser = option_parse,
  .doc =
    "Show the branch records of this machine's own processor, newest first, with DEBUGCTL and PERF_CAPABILITIES. Needs root and the msr module. Recording stops while the records are read; every register is restored, also on Ctrl-C.",
  .children = children,
};

void live_arguments_read(struct live_arguments *ret_arguments, struct live_show *ret_show, int argc, char **argv)
{
  struct live_arguments arguments = {.interval = 1, .state_directory = STATE_DIRECTORY};
  struct live_show show = {.wants_color = cli_wants_color()};
  struct live_line line = {.arguments = &arguments, .show = &show};

  shared_options_init(&line.shared);
  argp_parse(&live_argp, argc, argv, 0, NULL, &line);
  *ret_arguments = arguments;
  *ret_show = show;
}
