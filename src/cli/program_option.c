/* SPDX-License-Identifier: Apache-2.0
 *
 * The options of commands that run a program.
 */
#include "cli/program_option.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

/* A list of numbers for -p or -t. */
static void numbers_parse(int key, char *argument, struct attach_list *list, struct argp_state *state)
{
  const char *what = key == 'p' ? "process" : "thread";
  char *rest = argument;

  for (const char *word; (word = strsep(&rest, ","));) {
    uint64_t number = 0;

    if (number_parse(word, &number) < 0 || number < 1 || number > INT32_MAX)
      argp_error(state, "-%c wants the number of a %s, or several with commas, not '%s'", key, what, word);
    int r = (key == 'p' ? attach_list_add : attach_list_add_thread)(list, (int)number);
    if (r < 0)
      argp_failure(state, CLI_FAILURE, 0, "no memory");
    if (r == 0)
      argp_error(state, "%s %d is named twice", what, (int)number);
  }
}

error_t attach_option_parse(int key, char *argument, struct attach_list *list, struct argp_state *state)
{
  switch (key) {
  case 'p':
  case 't':
    numbers_parse(key, argument, list, state);
    return 0;
  case KEY_ATTACH_CHILDREN:
    list->has_descendants = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* With -t, each process must have one of the threads. */
static void processes_check(const struct attach_list *list, struct argp_state *state)
{
  for (size_t i = 0; i < list->count; i++) {
    bool has_thread = false;

    for (size_t j = 0; j < list->thread_count; j++)
      has_thread |= list->threads[j] == list->processes[i] || process_of_thread(list->threads[j]) == list->processes[i];
    if (!has_thread)
      argp_error(state, "process %d has none of the threads that -t names", list->processes[i]);
  }
}

void attach_option_end(struct attach_list *list, bool is_alone, struct argp_state *state)
{
  if (attach_list_complete(list) < 0)
    argp_failure(state, CLI_FAILURE, 0, "no memory");
  if (list->has_descendants && !list->count)
    argp_error(state, "--children is for processes that are named with -p");
  if (list->has_descendants && list->thread_count)
    argp_error(state, "-t records single threads: --children does not go with it");
  if (list->has_descendants && is_alone)
    argp_error(state, "--children and --no-follow contradict each other");
  if (list->thread_count)
    processes_check(list, state);
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
