/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr decode: a register value (decode_register.c), or a DS, BTS or PEBS buffer from a file (decode_area.c).
 */
#include <argp.h>
#include <strings.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "report/report.h"

enum { KEY_32 = 0x100, KEY_64, KEY_OFFSET, KEY_COUNT };

/* The result of parsing the command line. */
struct decode_line {
  struct decode_arguments *arguments;
  struct shared_options shared;
};

static const struct argp_option options[] = {
  {"cpu", 'c', "NAME", 0, "CPU whose register it is (default: this machine's if it has the register, else skylake)", 0},
  {NULL, 0, NULL, 0, "For ds, bts and pebs:", 0},
  {"64", KEY_64, NULL, 0, "Use the 64-bit layout", 0},
  {"32", KEY_32, NULL, 0, "Use the 32-bit layout", 0},
  {"offset", KEY_OFFSET, "N", 0, "Begin at byte N of the file", 0},
  {NULL, 'o', "N", OPTION_HIDDEN, NULL, 0}, /* everywhere else -o is --output */
  {"count", KEY_COUNT, "N", OPTION_HIDDEN, NULL, 0},
  {NULL, 'n', "N", OPTION_HIDDEN, NULL, 0},
  {0},
};

static const struct argp_child children[] = {SHARED_TOP, SHARED_JSON, SHARED_COMMON, {0}};

static enum decode_what what_find(const char *word)
{
  static const char *const areas[] = {[DECODE_DS] = "ds", [DECODE_BTS] = "bts", [DECODE_PEBS] = "pebs"};
  unsigned what = 0;

  while (what < DECODE_REGISTER && strcasecmp(word, areas[what]) != 0)
    what++;
  return (enum decode_what)what;
}

/* Checks the combination of arguments at the end. */
static void arguments_check(struct decode_arguments *arguments, struct argp_state *state)
{
  if (!arguments->value)
    argp_error(state, "name a register and its value, or ds, bts or pebs and a file");
  arguments->what = what_find(arguments->name);
  if (arguments->what == DECODE_REGISTER &&
      (arguments->wants_32 || arguments->wants_64 || arguments->has_offset || arguments->has_count))
    argp_error(state, "--32, --64, --offset and --top are for ds, bts and pebs");
  if (arguments->wants_32 && arguments->wants_64)
    argp_error(state, "either --32 or --64");
  if (arguments->has_count && arguments->what == DECODE_DS)
    argp_error(state, "--top is for bts and pebs");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct decode_line *line = state->input;
  struct decode_arguments *arguments = line->arguments;

  switch (key) {
  case ARGP_KEY_INIT:
    shared_options_give(state, children, &line->shared);
    break;
  case 'c':
    arguments->cpu = cli_option_cpu(argument);
    break;
  case KEY_32:
    arguments->wants_32 = true;
    break;
  case KEY_64:
    arguments->wants_64 = true;
    break;
  case 'o':
    option_renamed("-o", "--offset");
    /* fall through */
  case KEY_OFFSET:
    arguments->has_offset = true;
    arguments->offset = option_number("--offset", argument, 0, UINT64_MAX, state);
    break;
  case 'n':
  case KEY_COUNT:
    option_renamed(key == 'n' ? "-n" : "--count", "--top");
    line->shared.top = option_number("--count", argument, 0, UINT64_MAX - 1, state);
    break;
  case ARGP_KEY_ARG:
    if (state->arg_num == 0)
      arguments->name = argument;
    else if (state->arg_num == 1)
      arguments->value = argument;
    else
      argp_error(state, "too many arguments: '%s'", argument);
    break;
  case ARGP_KEY_END:
    arguments->wants_json = line->shared.is_json;
    arguments->has_count = line->shared.top != UINT64_MAX;
    arguments->count = line->shared.top;
    arguments_check(arguments, state);
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

const struct argp decode_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "REGISTER VALUE\nds|bts|pebs FILE",
  .doc =
    "Show the fields of a register value, or the contents of a debug-store management area, BTS buffer or PEBS buffer in a file. REGISTER is a name in the manual's spelling, with or without IA32_ or MSR_, or an address (0x1d9). Write -- before a negative VALUE. A FILE of - is standard input.",
  .children = children,
};

int cmd_decode(int argc, char **argv)
{
  struct decode_arguments arguments = {0};
  struct decode_line line = {.arguments = &arguments};
  struct report_output output;
  int r;

  shared_options_init(&line.shared);
  argp_parse(&decode_argp, argc, argv, 0, NULL, &line);
  output = cli_output();
  r = arguments.what == DECODE_REGISTER ? decode_register(&arguments, &output) : decode_area(&arguments, &output);
  if (r == LB_E_BAD_NUMBER)
    return CLI_USAGE;
  return r < 0 ? CLI_FAILURE : CLI_OK;
}
