/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr decode: a register value (decode_register.c), or a DS, BTS or PEBS buffer from a file (decode_area.c).
 */
#include <argp.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/decode.h"

enum { KEY_32 = 0x100, KEY_64 };

static const struct argp_option options[] = {
  {"cpu", 'c', "NAME", 0, "of this CPU (otherwise this machine's if it has the register, else skylake)", 0},
  {"json", 'j', NULL, 0, "print JSON", 0},
  {NULL, 0, NULL, 0, "For ds, bts and pebs:", 0},
  {"64", KEY_64, NULL, 0, "the 64-bit layout", 0},
  {"32", KEY_32, NULL, 0, "the 32-bit layout", 0},
  {"offset", 'o', "N", 0, "begin at byte N of the file", 0},
  {"count", 'n', "N", 0, "show at most N records", 0},
  {0},
};

static void number_option(const char *name, const char *argument, struct argp_state *state, uint64_t *ret_value)
{
  if (number_parse(argument, ret_value) < 0 || argument[0] == '-')
    argp_error(state, "--%s wants a number, not '%s'", name, argument);
}

/* What fits together, once all is read. */
static void arguments_check(const struct decode_arguments *arguments, struct argp_state *state)
{
  bool is_area;

  if (!arguments->value)
    argp_error(state, "a register and its value are wanted, or ds, bts or pebs and a file");
  is_area = decode_is_area(arguments->what);
  if (!is_area && (arguments->wants_32 || arguments->wants_64 || arguments->has_offset || arguments->has_count))
    argp_error(state, "--32, --64, --offset and --count are for ds, bts and pebs");
  if (arguments->wants_32 && arguments->wants_64)
    argp_error(state, "either --32 or --64");
  if (arguments->has_count && strcmp(arguments->what, "ds") == 0)
    argp_error(state, "--count is for bts and pebs");
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  struct decode_arguments *arguments = state->input;

  switch (key) {
  case 'c':
    arguments->cpu = argument;
    break;
  case 'j':
    arguments->wants_json = true;
    break;
  case KEY_32:
    arguments->wants_32 = true;
    break;
  case KEY_64:
    arguments->wants_64 = true;
    break;
  case 'o':
    arguments->has_offset = true;
    number_option("offset", argument, state, &arguments->offset);
    break;
  case 'n':
    arguments->has_count = true;
    number_option("count", argument, state, &arguments->count);
    break;
  case ARGP_KEY_ARG:
    if (state->arg_num == 0)
      arguments->what = argument;
    else if (state->arg_num == 1)
      arguments->value = argument;
    else
      argp_error(state, "'%s' is one word too many", argument);
    break;
  case ARGP_KEY_END:
    arguments_check(arguments, state);
    break;
  default:
    return ARGP_ERR_UNKNOWN;
  }
  return 0;
}

static const struct argp decode_argp = {
  .options = options,
  .parser = option_parse,
  .args_doc = "REGISTER VALUE\nds FILE\nbts FILE\npebs FILE",
  .doc =
    "Take a register value apart, or a debug-store management area, BTS buffer or PEBS buffer in a file. REGISTER is "
    "a name in the manual's spelling, with or without IA32_ or MSR_, or an address (0x1d9).",
};

int cmd_decode(int argc, char **argv)
{
  struct decode_arguments arguments = {0};

  argp_parse(&decode_argp, argc, argv, 0, NULL, &arguments);
  return decode_is_area(arguments.what) ? decode_area(&arguments) : decode_register(&arguments);
}
