/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr record: runs a program and writes every branch of all its threads and children to a trace.
 */
#include <argp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "cli/program_option.h"
#include "cli/source_option.h"
#include "session/session.h"

#define RING_LEAST (256u << 10)
#define RING_MOST (1u << 30)
#define AFTER_DEFAULT 0.1         /* seconds after a trigger */
#define PROGRESS_BYTES (1u << 20) /* with less, most of the trace is not in the file yet */

/* ---- progress ---- */

/* A program that draws on the terminal itself must not be disturbed: such a program has switched off line editing. */
static bool terminal_is_free(void)
{
  struct termios settings;

  return tcgetattr(STDERR_FILENO, &settings) == 0 && settings.c_lflag & ICANON;
}

static void size_text(uint64_t bytes, char text[32])
{
  static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  unsigned unit = 0;

  for (; value >= 1024 && unit < 4; unit++)
    value /= 1024;
  snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static bool progress_show(const struct record_session *session, bool is_over)
{
  struct lb_trace_size size;
  char text[32], slowdown[RECORD_SLOWDOWN];

  if (is_over)
    fputs("\r\033[K", stderr);
  if (is_over || !terminal_is_free())
    return false;
  size = lb_trace_writer_size(session->writer);
  size_text(size.bytes, text);
  fprintf(stderr, "\r%.1f million branches, %s", (double)size.branches / 1e6, text);
  if (size.bytes >= PROGRESS_BYTES)
    fprintf(stderr, ", %.3g bits per branch", 8 * (double)size.bytes / (double)size.branches);
  record_slowdown(session, slowdown);
  fputs(slowdown, stderr);
  if (session->has_ended)
    fprintf(stderr, "; %u threads still run (Ctrl-C: stop recording them)", session->state->alive);
  fputs("\033[K", stderr);
  return true;
}

/* ---- the command line ---- */

enum { KEY_RING = 0x100, KEY_PERIOD, KEY_KIND, KEY_FOR, KEY_TRIGGER, KEY_SLOW, KEY_BEFORE, KEY_AFTER };

static const struct argp_option options[] = {
  ATTACH_OPTIONS,
  {"for", KEY_FOR, "TIME", 0, "With -p: record for this time, such as 10s, 500ms or 5m (default: until Ctrl-C)", 0},
  {"trigger", KEY_TRIGGER, "PLACE", 0,
   "Record only the branches around the moment when PLACE is first reached: FUNCTION, FILE:LINE or 0xADDRESS", 0},
  {"trigger-slow", KEY_SLOW, "FUNCTION:TIME", 0,
   "Record only the branches around the end of the first call of FUNCTION that takes longer than TIME", 0},
  {"before", KEY_BEFORE, "TIME", 0, "With a trigger: keep this time before it (default: as much as --ring holds)", 0},
  {"after", KEY_AFTER, "TIME", 0, "With a trigger: keep this time after it (default: 100ms)", 0},
  PROGRAM_OPTIONS,
  {"period", KEY_PERIOD, "N", 0, "With --source lbr: take a sample every N branches (default: 1000003)", 0},
  {"kind", KEY_KIND, "LIST", 0, "With --source lbr: record only branches of these kinds, as for 'lbr script'", 0},
  {"ring", KEY_RING, "SIZE", 0,
   "Size of the log of a thread (bts and pt: of a processor): 256K to 1G (default: 4M; with a trigger 16M)", 0},
  {0},
};

static const struct argp_child children[] = {SHARED_LIMIT, SHARED_OUTPUT, SHARED_COMMON, {0}};

/* The result of parsing the command line. */
struct record_line {
  struct record_arguments *arguments;
  struct shared_options shared;
};

/* FUNCTION:TIME. A C++ name may have colons, too. */
static void slow_parse(char *argument, struct record_arguments *arguments, struct argp_state *state)
{
  char *colon = strrchr(argument, ':');

  if (!colon || colon == argument) {
    argp_error(state, "--trigger-slow wants FUNCTION:TIME, such as handle_request:50ms, not '%s'", argument);
    return;
  }
  arguments->slow = option_seconds("--trigger-slow", colon + 1, state);
  *colon = 0;
  arguments->trigger = argument;
}

/* What does not go together. */
static void arguments_check(const struct record_arguments *arguments, struct argp_state *state)
{
  if (arguments->attached.count && arguments->program)
    argp_error(state, "-p and -t attach to processes that run already: a program cannot be named with them");
  if (!arguments->attached.count && (!arguments->program || !*arguments->program[0]))
    argp_error(state, "name a program, or a process with -p");
  if (arguments->seconds > 0 && !arguments->attached.count)
    argp_error(state, "--for is for processes that are named with -p");
  if (arguments->attached.count && arguments->source != SOURCE_SOFTWARE)
    argp_error(state, "-p is for --source software");
  if (arguments->trigger && arguments->source != SOURCE_SOFTWARE)
    argp_error(state, "--trigger and --trigger-slow are for --source software");
  if (!arguments->trigger && (arguments->before > 0 || arguments->after > 0))
    argp_error(state, "--before and --after are for --trigger and --trigger-slow");
  if ((arguments->period || arguments->kinds) && arguments->source != SOURCE_LBR)
    argp_error(state, "--period and --kind are for --source lbr");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct record_line *line = state->input;
  struct record_arguments *arguments = line->arguments;
  const struct program_options program = {&arguments->is_alone, &arguments->is_uncached, &arguments->aslr,
                                          &arguments->source, &arguments->program};

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &line->shared);
    return 0;
  case KEY_RING:
    arguments->ring = option_size("--ring", argument, RING_LEAST, RING_MOST, state);
    return 0;
  case KEY_FOR:
    arguments->seconds = option_seconds("--for", argument, state);
    return 0;
  case KEY_TRIGGER:
  case KEY_SLOW:
    if (arguments->trigger)
      argp_error(state, "only one trigger can be given");
    if (key == KEY_SLOW)
      slow_parse(argument, arguments, state);
    else
      arguments->trigger = argument;
    return 0;
  case KEY_BEFORE:
    arguments->before = option_seconds("--before", argument, state);
    return 0;
  case KEY_AFTER:
    arguments->after = option_seconds("--after", argument, state);
    return 0;
  case KEY_PERIOD:
    arguments->period = source_option_period(argument, state);
    return 0;
  case KEY_KIND:
    arguments->kinds = filter_option_kinds(argument, state);
    return 0;
  case ARGP_KEY_END:
    arguments->output = line->shared.output;
    arguments->limit = line->shared.limit;
    arguments->is_quiet = cli_is_quiet();
    attach_option_end(&arguments->attached, arguments->is_alone, state);
    arguments_check(arguments, state);
    if (arguments->trigger && arguments->after <= 0)
      arguments->after = AFTER_DEFAULT;
    return 0;
  default:
    return attach_option_parse(key, argument, &arguments->attached, state) == 0
             ? 0
             : program_option_parse(key, argument, &program, state);
  }
}

const struct argp record_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "[--] PROGRAM [ARGUMENT...]\n-p PID[,PID...]\n-t TID[,TID...]",
  .doc =
    "Run a program and write every branch of it, of its threads and of the processes that it starts to a trace. 'lbr report', 'lbr script' and other commands read the trace.\vExit status: that of the program; if a signal kills it, lbr dies by the same signal. 125 if lbr itself fails, 126 if the program cannot be executed, 127 if it is not found, 2 for a usage error.",
  .children = children,
};

int cmd_record(int argc, char **argv)
{
  struct record_arguments arguments = {.source = SOURCE_SOFTWARE};
  struct record_line line = {.arguments = &arguments};

  shared_options_init(&line.shared);
  line.shared.limit_default = "none; at the limit recording stops, and the program runs on";
  line.shared.output_default = "PROGRAM.lbr in this folder";
  argp_parse(&record_argp, argc, argv, ARGP_IN_ORDER, NULL, &line);
  if (!source_choice_settle(&arguments.source, arguments.is_quiet))
    return PROGRAM_FAILURE;
  arguments.progress = !arguments.is_quiet && isatty(STDERR_FILENO) ? progress_show : NULL;
  int status = (arguments.trigger ? record_trigger : arguments.attached.count ? record_attach : record_run)(&arguments);
  attach_list_done(&arguments.attached);
  return status;
}
