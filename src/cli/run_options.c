/* SPDX-License-Identifier: Apache-2.0
 *
 * The command line of `lbr run`.
 */
#include "cli/run_options.h"

#include <argp.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/program_option.h"
#include "gdb/gdb.h"

#define LAST_DEFAULT 32

enum {
  KEY_ALL_THREADS = 0x100,
  KEY_OWN,
  KEY_ALL,
  KEY_ALWAYS,
  KEY_ON_EXIT_CODE,
  KEY_ON_SIGNAL,
  KEY_TIMEOUT,
  KEY_SELECT,
  KEY_FILTER,
  KEY_LAST,
  KEY_GDB,
  KEY_SNAPSHOT,
};

static const struct argp_option options[] = {
  {NULL, 0, NULL, 0, "Output:", 1},
  {"last", KEY_LAST, "N", OPTION_HIDDEN, NULL, 0},
  {"own", KEY_OWN, NULL, 0,
   "Show only branches in the program's own code: its executable, and libraries outside the system's folders", 0},
  {"all", KEY_ALL, NULL, 0,
   "Show the last branches of all code. Default, without --own and --all: those in the program's own code, then those that libraries took after them",
   0},
  {"all-threads", KEY_ALL_THREADS, NULL, 0, "Show the other threads of the process, too", 0},
  {"cpu", 'c', "NAME", 0, "Show what the LBR stack of this processor would hold instead ('lbr cpu --list' shows all)",
   0},
  {"select", KEY_SELECT, "LIST", 0,
   "Set these fields of the processor's filter, or its whole value: in LBR_SELECT a 1 leaves branches out, in IA32_LBR_CTL a 1 records them",
   0},
  {"filter", KEY_FILTER, "LIST", OPTION_HIDDEN, NULL, 0},
  {"format", 'f', "FORMAT", 0, "Print as table (default) or json; with --cpu also as windbg or windbg-old", 0},
  {"gdb", KEY_GDB, "PORT|unix:PATH", OPTION_ARG_OPTIONAL,
   "Open the dead process in gdb, with its registers, its memory and 100000 branches to step back through: start gdb, or wait for one to connect there",
   0},
  {NULL, 0, NULL, 0, "When to report:", 2},
  {"always", KEY_ALWAYS, NULL, 0, "Report also when the program exits", 0},
  {"on-exit-code", KEY_ON_EXIT_CODE, "N", 0, "Report also when the program exits with status N", 0},
  {"on-signal", KEY_ON_SIGNAL, "SIG", 0, "Report also when lbr gets this signal; the program runs on", 0},
  {"timeout", KEY_TIMEOUT, "SECONDS", 0,
   "End the program after this time: with SIGTERM, and two seconds later with SIGKILL", 0},
  {"snapshot", KEY_SNAPSHOT, NULL, 0, "With -p: report on the running process once, and leave it", 0},
  {NULL, 0, NULL, 0, "Program:", 3},
  ATTACH_OPTIONS,
  PROGRAM_OPTIONS,
  {0},
};

static const struct argp_child children[] = {SHARED_TAIL,   SHARED_DEMANGLE, SHARED_JSON,
                                             SHARED_OUTPUT, SHARED_COMMON,   {0}};

/* The result of parsing the command line. */
struct run_line {
  struct run_arguments *arguments;
  struct run_show *show;
  struct shared_options shared;
};

static void shared_take(const struct run_line *line, struct argp_state *state)
{
  const struct shared_options *shared = &line->shared;
  struct run_arguments *arguments = line->arguments;
  struct run_show *show = line->show;

  if (shared->tail < 1 || shared->tail > UINT32_MAX)
    argp_error(state, "--tail wants a number from 1 to %u", UINT32_MAX);
  arguments->last = show->last = (uint32_t)shared->tail;
  arguments->is_mangled = shared->is_mangled;
  show->output = shared->output;
  if (shared->is_json)
    show->format = REPORT_JSON;
}

/* "USR1", "SIGUSR1" or its number; it must be a signal that can be caught. */
static int signal_option(const char *argument, struct argp_state *state)
{
  const char *word = strncasecmp(argument, "SIG", 3) ? argument : argument + 3, *name;
  uint64_t value = 0;

  for (int signal = 1; signal < 32; signal++)
    if ((name = sigabbrev_np(signal)) && !strcasecmp(name, word))
      value = (uint64_t)signal;
  if (!value && number_parse(argument, &value) < 0)
    value = 0;
  if (value < 1 || value > 64 || value == SIGKILL || value == SIGSTOP || value == SIGCHLD || value == 32 || value == 33)
    argp_error(state, "--on-signal wants a signal that can be caught, such as USR1, not '%s'", argument);
  return (int)value;
}

static double seconds_option(const char *argument, struct argp_state *state)
{
  char *end;
  double value = strtod(argument, &end);

  if (end == argument || *end || !isfinite(value) || value <= 0 || value > 1e9)
    argp_error(state, "--timeout wants a number of seconds, not '%s'", argument);
  return value;
}

static void arguments_check(const struct run_line *line, struct argp_state *state)
{
  const struct run_arguments *arguments = line->arguments;
  enum report_format format = line->show->format;
  bool is_windbg = format == REPORT_WINDBG || format == REPORT_WINDBG_OLD;

  if (arguments->attached.count && arguments->program)
    argp_error(state, "-p and -t attach to processes that run already: a program cannot be named with them");
  if (!arguments->attached.count && !arguments->program)
    argp_error(state, "name a program, or a process with -p");
  if (arguments->is_snapshot && !arguments->attached.count)
    argp_error(state, "--snapshot is for processes that are named with -p");
  if (arguments->attached.count && (arguments->is_gdb || arguments->source != SOURCE_SOFTWARE))
    argp_error(state, "-p is for --source software, without --gdb");
  if (is_windbg && !arguments->cpu)
    argp_error(state, "--format %s shows the LBR of a processor: name one with --cpu", report_format_name(format));
  if (arguments->filter && !arguments->cpu)
    argp_error(state, "--select is for the LBR of a processor: name one with --cpu");
  if (arguments->is_gdb && arguments->source != SOURCE_SOFTWARE)
    argp_error(state, "--gdb is for --source software");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct run_line *line = state->input;
  struct run_arguments *arguments = line->arguments;
  const struct program_options program = {&arguments->is_alone, &arguments->is_uncached, &arguments->aslr,
                                          &arguments->source, &arguments->program};

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &line->shared);
    return 0;
  case KEY_LAST:
    option_renamed("--last", "--tail");
    line->shared.tail = option_number("--last", argument, 1, UINT32_MAX, state);
    return 0;
  case KEY_OWN:
    line->show->show = ANALYSIS_SHOW_OWN;
    return 0;
  case KEY_ALL:
    line->show->show = ANALYSIS_SHOW_ALL;
    return 0;
  case KEY_ALL_THREADS:
    arguments->wants_all_threads = true;
    return 0;
  case 'c':
    arguments->cpu = cli_option_cpu(argument);
    return 0;
  case KEY_FILTER:
    option_renamed("--filter", "--select");
    /* fall through */
  case KEY_SELECT:
    arguments->filter = argument;
    return 0;
  case 'f':
    line->show->format = option_format(argument, state);
    return 0;
  case KEY_ALWAYS:
    arguments->is_always = true;
    return 0;
  case KEY_ON_EXIT_CODE:
    arguments->exit_code = (int)option_number("--on-exit-code", argument, 0, 255, state);
    return 0;
  case KEY_ON_SIGNAL:
    arguments->signal = signal_option(argument, state);
    return 0;
  case KEY_TIMEOUT:
    arguments->timeout = seconds_option(argument, state);
    return 0;
  case KEY_SNAPSHOT:
    arguments->is_snapshot = true;
    return 0;
  case KEY_GDB:
    if (argument && !gdb_listen_is_place(argument))
      argp_error(state, "--gdb takes a port number or unix:PATH, not '%s'", argument);
    arguments->is_gdb = true;
    arguments->gdb_place = argument;
    return 0;
  case ARGP_KEY_END:
    shared_take(line, state);
    attach_option_end(&arguments->attached, arguments->is_alone, state);
    arguments_check(line, state);
    return 0;
  default:
    return attach_option_parse(key, argument, &arguments->attached, state) == 0
             ? 0
             : program_option_parse(key, argument, &program, state);
  }
}

const struct argp run_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "[--] PROGRAM [ARGUMENT...]\n-p PID[,PID...]\n-t TID[,TID...]",
  .doc =
    "Run a program. When a signal kills it or a process that it started, show where and why, the call stack (rebuilt from its branches) and the last branches that it took. Reports go to standard error.\vExit status: that of the program; if a signal kills it, lbr dies by the same signal. 125 if lbr itself fails, 126 if the program cannot be executed, 127 if it is not found, 2 for a usage error.",
  .children = children,
};

void run_arguments_read(struct run_arguments *ret_arguments, struct run_show *ret_show, int argc, char **argv)
{
  struct run_arguments arguments = {.exit_code = -1, .source = SOURCE_SOFTWARE};
  struct run_show show = {.format = REPORT_TABLE};
  struct run_line line = {.arguments = &arguments, .show = &show};

  shared_options_init(&line.shared);
  line.shared.tail = LAST_DEFAULT;
  line.shared.tail_default = "32";
  line.shared.output_default = "standard error";
  argp_parse(&run_argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
  arguments.kept = arguments.is_gdb && arguments.last < GDB_TAIL_DEFAULT ? GDB_TAIL_DEFAULT : arguments.last;
  *ret_arguments = arguments;
  *ret_show = show;
}
