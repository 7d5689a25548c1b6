/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that run a program.
 */
#include "cli/program_option.h"

error_t program_option_parse(int key, char *argument, const struct program_options *options, struct argp_state *state)
{
  switch (key) {
  case KEY_PROGRAM_NO_FOLLOW:
    *options->is_alone = true;
    return 0;
  case KEY_PROGRAM_NO_CACHE:
    *options->is_uncached = true;
    return 0;
  case KEY_PROGRAM_NO_ASLR:
    *options->aslr = ASLR_OFF;
    return 0;
  case KEY_PROGRAM_ASLR:
    *options->aslr = ASLR_ON;
    return 0;
  case KEY_PROGRAM_SOURCE:
    *options->source = source_option(argument, state);
    return 0;
  case ARGP_KEY_ARG:
    *options->program = &state->argv[state->next - 1]; /* all following arguments are the program's */
    state->next = state->argc;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}
