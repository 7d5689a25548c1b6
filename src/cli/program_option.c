/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that run a program.
 */
#include "cli/program_option.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

void attach_option(char *argument, struct attach_list *list, struct argp_state *state)
{
  char *rest = argument;

  for (const char *word; (word = strsep(&rest, ","));) {
    uint64_t number = 0;

    if (number_parse(word, &number) < 0 || number < 1 || number > INT32_MAX)
      argp_error(state, "-p wants the numbers of processes, not '%s'", word);
    for (size_t i = 0; i < list->count; i++)
      if (list->processes[i] == (int)number)
        argp_error(state, "process %d is named twice", (int)number);
    int *grown = realloc(list->processes, (list->count + 1) * sizeof(*grown));
    if (!grown)
      argp_failure(state, CLI_FAILURE, 0, "no memory");
    list->processes = grown;
    list->processes[list->count++] = (int)number;
  }
}

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
