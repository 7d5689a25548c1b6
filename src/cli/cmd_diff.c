/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr diff: the first branch where two recorded runs diverge, thread by thread, and the functions whose counts changed.
 */
#include <argp.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/filter_options.h"
#include "cli/options.h"
#include "report/report.h"

#define DIFF_EQUAL CLI_OK
#define DIFF_DIFFERENT CLI_FAILURE
#define DIFF_TROUBLE CLI_USAGE
#define TOP_MAX (1u << 20) /* rows, for --top all */

struct diff_arguments {
  struct shared_options shared; /* copied to the options after parsing */
  const char *files[2];
  struct filter_options filter;
  struct diff_options options;
};

/* ---- the command ---- */

static int threads_check(const struct diff_side sides[2], const uint32_t streams[2])
{
  for (unsigned i = 0; i < 2; i++)
    if (streams[i] != LB_TRACE_ALL && streams[i] >= sides[i].thread_count) {
      cli_error("%s: no thread %u; 'lbr stat' lists the threads", sides[i].input.name, streams[i]);
      return -1;
    }
  return 0;
}

static int diff_run(const struct diff_arguments *arguments)
{
  struct diff_side *sides = calloc(2, sizeof(*sides));
  const struct diff_page page = {sides, &arguments->options, {arguments->files[0], arguments->files[1]}};
  struct report_output output = cli_output();
  int r = -1, status = CLI_OK;

  if (!sides) {
    cli_error("no memory");
    return DIFF_TROUBLE;
  }
  if (diff_side_open(&sides[0], arguments->files[0]) >= 0) {
    if (diff_side_open(&sides[1], arguments->files[1]) >= 0) {
      r = threads_check(sides, arguments->options.streams);
      if (r >= 0)
        r = diff_page_print(&page, &output, arguments->shared.is_json);
      status = diff_side_close(&sides[1]);
    }
    if (diff_side_close(&sides[0]) != CLI_OK)
      status = CLI_FAILURE;
  }
  free(sides);
  return r < 0 || r == 2 || (r == 0 && status != CLI_OK) ? DIFF_TROUBLE : r == 1 ? DIFF_DIFFERENT : DIFF_EQUAL;
}

/* ---- the command line ---- */

enum {
  KEY_THREAD = 0x100,
  KEY_BEFORE,
  KEY_AFTER,
  KEY_RESYNC,
  KEY_DIFFERENCES,
  KEY_LIMIT,
  KEY_BY,
  KEY_NO_COUNTS,
  KEY_STRICT,
};

static const struct argp_option options[] = {
  {"thread", KEY_THREAD, "N[:M]", 0,
   "Compare only thread N of A with thread M of B (default: N): numbers that 'lbr stat' lists", 0},
  {"before", KEY_BEFORE, "N", 0, "Show N branches that both runs took before the difference (default: 8)", 0},
  {"after", KEY_AFTER, "N", 0, "Show N branches of each run after the difference (default: 8)", 0},
  {"resync", KEY_RESYNC, NULL, 0, "Continue where the runs agree again", 0},
  {"differences", KEY_DIFFERENCES, "N", 0, "With --resync: stop after N differences of a thread (default: 10)", 0},
  {"limit", KEY_LIMIT, "N", OPTION_HIDDEN, NULL, 0},
  {"strict", KEY_STRICT, NULL, 0,
   "Compare also the string functions of the C library, whose branches depend on alignment", 0},
  {"by", KEY_BY, "WHAT", 0,
   "Compare functions by 'count' (default: instructions, branches, entries) or by 'time' (also system calls)", 0},
  {"no-counts", KEY_NO_COUNTS, NULL, 0, "Show no counts of functions, which take a second pass over the traces", 0},
  {0},
};

static const struct argp_child children[] = {FILTER_BRANCHES, SHARED_TOP,    SHARED_SYMBOLS,
                                             SHARED_DEMANGLE, SHARED_NAMES,  SHARED_JSON,
                                             SHARED_OUTPUT,   SHARED_COMMON, {0}};

static void thread_option(struct diff_arguments *arguments, char *argument, struct argp_state *state)
{
  char *colon = strchr(argument, ':');

  if (colon)
    *colon++ = '\0';
  arguments->options.streams[0] = (uint32_t)filter_option_number("--thread", argument, LB_TRACE_STREAMS_MAX - 1, state);
  arguments->options.streams[1] =
    (uint32_t)filter_option_number("--thread", colon ? colon : argument, LB_TRACE_STREAMS_MAX - 1, state);
}

static bool by_option(const char *argument, struct argp_state *state)
{
  bool is_time = !strcmp(argument, "time");

  if (!is_time && strcmp(argument, "count") != 0)
    argp_error(state, "--by wants 'count' or 'time', not '%s'", argument);
  return is_time;
}

static void file_add(struct diff_arguments *arguments, const char *name, struct argp_state *state)
{
  if (arguments->files[1])
    argp_error(state, "name two traces, not more");
  arguments->files[arguments->files[0] != NULL] = name;
}

static void options_take(struct diff_arguments *arguments)
{
  const struct shared_options *shared = &arguments->shared;

  arguments->options.top = shared->top < TOP_MAX ? (uint32_t)shared->top : TOP_MAX;
  arguments->options.has_symbols = shared->has_symbols;
  arguments->options.is_mangled = shared->is_mangled;
  arguments->options.filter = arguments->filter.filter;
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct diff_arguments *arguments = state->input;

  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &arguments->filter;
    shared_options_give(state, children, &arguments->shared);
    return 0;
  case KEY_THREAD:
    thread_option(arguments, argument, state);
    return 0;
  case KEY_BEFORE:
    arguments->options.before = (uint32_t)filter_option_number("--before", argument, DIFF_SHOWN_MAX, state);
    return 0;
  case KEY_AFTER:
    arguments->options.after = (uint32_t)filter_option_number("--after", argument, DIFF_SHOWN_MAX, state);
    return 0;
  case KEY_RESYNC:
    arguments->options.is_resync = true;
    return 0;
  case KEY_LIMIT:
    option_renamed("--limit", "--differences");
    /* fall through */
  case KEY_DIFFERENCES:
    arguments->options.limit = filter_option_number("--differences", argument, UINT64_MAX, state);
    return 0;
  case KEY_STRICT:
    arguments->options.is_strict = true;
    return 0;
  case KEY_BY:
    arguments->options.has_times = by_option(argument, state);
    return 0;
  case KEY_NO_COUNTS:
    arguments->options.has_counts = false;
    return 0;
  case ARGP_KEY_ARG:
    file_add(arguments, argument, state);
    return 0;
  case ARGP_KEY_END:
    options_take(arguments);
    if (!arguments->files[1])
      argp_error(state, "name two traces");
    if (arguments->options.has_times && !arguments->options.has_counts)
      argp_error(state, "--by time and --no-counts exclude each other");
    if (analysis_filter_needs_names(&arguments->filter.filter) && !arguments->options.has_symbols)
      argp_error(state, "--no-symbols excludes options that name functions or modules");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

const struct argp diff_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "A B",
  .doc =
    "Compare two recorded runs: show the first branch where they differ, thread by thread, with the branches before and after it, and the functions whose exact counts changed most. The load addresses of the programs do not matter.\vExit status: 0 if the runs are the same, 1 if they differ, 2 for trouble: a usage error, a trace that cannot be read, or a comparison that missing branches prevent.",
  .children = children,
};

int cmd_diff(int argc, char **argv)
{
  struct diff_arguments arguments = {
    .options = {.streams = {LB_TRACE_ALL, LB_TRACE_ALL}, .before = 8, .after = 8, .limit = 10, .has_counts = true},
  };
  int status;

  shared_options_init(&arguments.shared);
  arguments.shared.top = 10;
  arguments.shared.top_default = "10";
  filter_options_init(&arguments.filter);
  argp_parse(&diff_argp, argc, argv, 0, NULL, &arguments);
  status = diff_run(&arguments);
  filter_options_done(&arguments.filter);
  return status;
}
