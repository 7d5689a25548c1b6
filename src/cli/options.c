/* SPDX-License-Identifier: Apache-2.0
 *
 * Options that several commands have.
 */
#include "cli/options.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/fit_stdout.h"
#include "cli/redirect.h"
#include "lastbranch/trace.h"

#define GROUP (-2) /* argp prints this group after the command's own options, and before --help */

enum {
  KEY_COLOR = 0x2000,
  KEY_TOP,
  KEY_LIMIT,
  KEY_THREAD,
  KEY_NO_SYMBOLS,
  KEY_NO_DEMANGLE,
  KEY_LONG_NAMES,
};

void shared_options_init(struct shared_options *options)
{
  *options =
    (struct shared_options){.top = UINT64_MAX, .tail = UINT64_MAX, .stream = LB_TRACE_ALL, .has_symbols = true};
}

/* ---- values ---- */

uint64_t option_number(const char *name, const char *argument, uint64_t least, uint64_t most, struct argp_state *state)
{
  uint64_t value = 0;

  if (*argument == '-' || number_parse(argument, &value) < 0 || value < least || value > most)
    argp_error(state, "%s wants a number from %llu to %llu, not '%s'", name, (unsigned long long)least,
               (unsigned long long)most, argument);
  return value;
}

uint64_t option_rows(const char *name, const char *argument, struct argp_state *state)
{
  uint64_t value = UINT64_MAX;

  if (strcmp(argument, "all") != 0 && (*argument == '-' || number_parse(argument, &value) < 0))
    argp_error(state, "%s wants a number from 0 to %llu, or 'all', not '%s'", name, (unsigned long long)UINT64_MAX,
               argument);
  return value;
}

/* Returns false if the word is invalid. */
static bool size_parse(const char *word, uint64_t *ret_size)
{
  static const char units[] = "KMGT";
  size_t length = strlen(word);
  char digits[24];
  const char *unit = length ? strchr(units, word[length - 1]) : NULL;
  unsigned shift = unit && *unit ? 10 * (unsigned)(unit - units + 1) : 0;
  uint64_t value;

  if (shift)
    length--;
  if (!length || length >= sizeof(digits) || *word == '-')
    return false;
  memcpy(digits, word, length);
  digits[length] = 0;
  if (number_parse(digits, &value) < 0 || value > UINT64_MAX >> shift)
    return false;
  *ret_size = value << shift;
  return true;
}

/* "256K", "1G": the largest unit that divides it. */
static const char *size_word(uint64_t size, char buffer[24])
{
  static const char units[] = "\0KMGT";
  unsigned unit = 0;

  for (; size && size % 1024 == 0 && unit < 4; unit++)
    size /= 1024;
  snprintf(buffer, 24, "%llu%.1s", (unsigned long long)size, unit ? units + unit : "");
  return buffer;
}

uint64_t option_size(const char *name, const char *argument, uint64_t least, uint64_t most, struct argp_state *state)
{
  char low[24], high[24];
  uint64_t size = 0;

  if (size_parse(argument, &size) && size >= least && size <= most)
    return size;
  if (most == INT64_MAX)
    argp_error(state, "%s wants a size of at least %s bytes, with a suffix K, M, G or T such as 64M, not '%s'", name,
               size_word(least, low), argument);
  else
    argp_error(state, "%s wants a size from %s to %s, with a suffix K, M, G or T such as 64M, not '%s'", name,
               size_word(least, low), size_word(most, high), argument);
  return size;
}

double option_seconds(const char *name, const char *argument, struct argp_state *state)
{
  static const struct {
    const char *suffix;
    double seconds;
  } units[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"m", 60}, {"h", 3600}};
  char *end;
  double value = strtod(argument, &end);

  for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
    if (end != argument && isfinite(value) && value > 0 && value < 1e9 && !strcmp(end, units[i].suffix))
      return value * units[i].seconds;
  argp_error(state, "%s wants a time, such as 10s, 500ms or 5m, not '%s'", name, argument);
  return 0;
}

static uint64_t option_moment(const char *word, struct argp_state *state)
{
  return *word && strcmp(word, "0") != 0 ? (uint64_t)(1e9 * option_seconds("--time", word, state)) : 0;
}

void option_time_span(char *argument, uint64_t *from, uint64_t *to, struct argp_state *state)
{
  char *comma = strchr(argument, ',');

  if (!comma || !argument[1]) {
    argp_error(state, "--time wants two times, as in 1.5s,2s, not '%s'", argument);
    return;
  }
  *comma = '\0';
  *from = option_moment(argument, state);
  *to = option_moment(comma + 1, state);
  if (comma[1] && *from >= *to)
    argp_error(state, "--time: the second time is not after the first");
}

void option_between(const char *argument, uint64_t *first, uint64_t *last, struct argp_state *state)
{
  const char *dots = strstr(argument, "..");
  char digits[32] = "";

  if (!dots || (size_t)(dots - argument) >= sizeof(digits) || (dots == argument && !dots[2])) {
    argp_error(state, "--between wants two numbers of branches, as in 1000..2000, not '%s'", argument);
    return;
  }
  memcpy(digits, argument, (size_t)(dots - argument));
  if (*digits)
    *first = option_number("--between", digits, 0, UINT64_MAX - 1, state);
  if (dots[2])
    *last = option_number("--between", dots + 2, 0, UINT64_MAX - 1, state);
  if (*first > *last)
    argp_error(state, "--between: the first number is greater than the last");
}

enum report_format option_format(const char *argument, struct argp_state *state)
{
  int format = report_format_find(argument);

  if (format < 0)
    argp_error(state, "no format '%s'; the formats are table, windbg, windbg-old, json", argument);
  return (enum report_format)format;
}

void option_renamed(const char *old, const char *name)
{
  if (!cli_is_quiet())
    cli_error("%s is now called %s; the next version will drop the old name", old, name);
}

static void color_option(const char *argument, struct argp_state *state)
{
  static const char *const words[] = {
    [CLI_COLOR_AUTO] = "auto", [CLI_COLOR_ALWAYS] = "always", [CLI_COLOR_NEVER] = "never"};

  for (unsigned i = 0; i < sizeof(words) / sizeof(*words); i++)
    if (!strcmp(argument ? argument : "always", words[i])) {
      cli_set_color((enum cli_color)i);
      return;
    }
  argp_error(state, "--color wants auto, always or never, not '%s'", argument);
}

/* ---- the groups ---- */

/* A number, or a part of a name. */
static void thread_take(struct shared_options *options, const char *argument, struct argp_state *state)
{
  options->thread_name = NULL;
  options->stream = LB_TRACE_ALL;
  if (!*argument || *argument == '-' || isdigit((unsigned char)*argument))
    options->stream = (uint32_t)option_number("--thread", argument, 0, LB_TRACE_STREAMS_MAX - 1, state);
  else
    options->thread_name = argument;
}

static error_t shared_parse(int key, char *argument, struct argp_state *state)
{
  struct shared_options *options = state->input;

  switch (key) {
  case 'o':
    options->output = argument;
    return 0;
  case 'j':
    options->is_json = true;
    return 0;
  case KEY_TOP:
    options->top = option_rows("--top", argument, state);
    return 0;
  case 'n':
    options->tail = option_number("--tail", argument, 0, UINT64_MAX - 1, state);
    return 0;
  case KEY_LIMIT:
    options->limit = option_size("--limit", argument, 1, INT64_MAX, state);
    return 0;
  case KEY_THREAD:
    thread_take(options, argument, state);
    return 0;
  case KEY_NO_SYMBOLS:
    options->has_symbols = false;
    return 0;
  case KEY_NO_DEMANGLE:
    options->is_mangled = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* Redirects standard output once the rest of the command line is valid. */
static error_t output_parse(int key, char *argument, struct argp_state *state)
{
  const struct shared_options *options = state->input;

  if (key != ARGP_KEY_SUCCESS)
    return shared_parse(key, argument, state);
  if (options->output && !options->output_default && redirect_stdout(options->output) < 0)
    exit(CLI_FAILURE);
  return 0;
}

/* Lines are fitted to the terminal, unless the user wants full names. */
static error_t names_parse(int key, char *argument, struct argp_state *state)
{
  const struct shared_options *options = state->input;
  bool is_file = options && options->output && strcmp(options->output, "-") != 0;

  (void)argument;
  if (key == KEY_LONG_NAMES)
    cli_set_long_names();
  else if (key != ARGP_KEY_SUCCESS)
    return ARGP_ERR_UNKNOWN;
  else
    cli_set_whole_rows();
  if (key == ARGP_KEY_SUCCESS && cli_name_columns() && !options->is_json && !is_file)
    fit_stdout(options->is_cut_off ? FIT_END : FIT_NAMES);
  return 0;
}

/* Has no input: these options apply to the whole program. */
static error_t common_parse(int key, char *argument, struct argp_state *state)
{
  switch (key) {
  case 'h':
    argp_state_help(state, stdout, ARGP_HELP_STD_HELP);
    return 0;
  case 'q':
    cli_set_quiet();
    return 0;
  case KEY_COLOR:
    color_option(argument, state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* Adds the command's default to the help of an option. */
static char *shared_help(int key, const char *text, void *input)
{
  const struct shared_options *options = input;
  const char *word = NULL;
  char *help;

  if (!options)
    return (char *)text;
  if (key == KEY_TOP)
    word = options->top_default ? options->top_default : "all";
  else if (key == 'n')
    word = options->tail_default ? options->tail_default : "all";
  else if (key == KEY_LIMIT)
    word = options->limit_default ? options->limit_default : "none";
  else if (key == 'o')
    word = options->output_default;
  if (!word || !text || asprintf(&help, "%s (default: %s)", text, word) < 0)
    return (char *)text;
  return help;
}

#define SHARED_ARGP(name, parse)                                                                                       \
  const struct argp shared_##name = {.options = name##_options, .parser = (parse), .help_filter = shared_help}

static const struct argp_option common_options[] = {
  {NULL, 0, NULL, 0, "Common options:", GROUP},
  {NULL, 'h', NULL, OPTION_HIDDEN, NULL, GROUP},
  {"color", KEY_COLOR, "WHEN", OPTION_ARG_OPTIONAL, "Colour the output: auto (default: on a terminal), always or never",
   GROUP},
  {"quiet", 'q', NULL, 0, "Print no progress and no notes, only warnings and errors", GROUP},
  {0},
};

static const struct argp_option json_options[] = {{"json", 'j', NULL, 0, "Print JSON", GROUP}, {0}};

static const struct argp_option output_options[] = {
  {"output", 'o', "FILE", 0, "Write to FILE; - is standard output", GROUP}, {0}};

static const struct argp_option top_options[] = {
  {"top", KEY_TOP, "N", 0, "Show N rows; 'all' shows all of them", GROUP}, {0}};

static const struct argp_option tail_options[] = {
  {"tail", 'n', "N", 0, "Show the last N branches of each thread", GROUP}, {0}};

static const struct argp_option limit_options[] = {
  {"limit", KEY_LIMIT, "SIZE", 0,
   "Limit the size of the file: bytes, or with a suffix K, M, G or T (powers of 1024), such as 64M", GROUP},
  {0},
};

static const struct argp_option thread_options[] = {
  {"thread", KEY_THREAD, "THREAD", 0,
   "Show one thread only: a number that 'lbr stat' lists, or part of its name or of the command line of its process",
   GROUP},
  {0}};

static const struct argp_option symbols_options[] = {
  {"no-symbols", KEY_NO_SYMBOLS, NULL, 0, "Do not open the files that the trace names: show no names of functions",
   GROUP},
  {0}};

static const struct argp_option demangle_options[] = {
  {"no-demangle", KEY_NO_DEMANGLE, NULL, 0, "Show C++ names mangled, as the files have them", GROUP}, {0}};

static const struct argp_option names_options[] = {
  {"long-names", KEY_LONG_NAMES, NULL, 0, "Show names in full, not shortened to the width of the terminal", GROUP},
  {0}};

const struct argp shared_common = {.options = common_options, .parser = common_parse};
SHARED_ARGP(json, shared_parse);
SHARED_ARGP(output, output_parse);
SHARED_ARGP(top, shared_parse);
SHARED_ARGP(tail, shared_parse);
SHARED_ARGP(limit, shared_parse);
SHARED_ARGP(thread, shared_parse);
SHARED_ARGP(symbols, shared_parse);
SHARED_ARGP(demangle, shared_parse);
SHARED_ARGP(names, names_parse);

const struct argp_child shared_only_common[] = {SHARED_COMMON, {0}};

void shared_options_give(struct argp_state *state, const struct argp_child *children, struct shared_options *options)
{
  for (size_t i = 0; children[i].argp; i++)
    if (children[i].argp->help_filter == shared_help)
      state->child_inputs[i] = options;
}
