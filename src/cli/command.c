/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands: finding and running one, and suggestions for a mistyped one.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"

static const struct command commands[] = {
#define LB_COMMAND(name, summary) {#name, summary, &name##_argp, cmd_##name},
#include "cli/command.def"
#undef LB_COMMAND
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

const struct command *command_at(size_t index)
{
  return index < COMMANDS ? &commands[index] : NULL;
}

const struct command *command_find(const char *name)
{
  const struct command *command;

  for (size_t i = 0; (command = command_at(i)); i++)
    if (!strcmp(command->name, name))
      return command;
  return NULL;
}

int command_run(const struct command *command, int argc, char **argv)
{
  char title[32]; /* argp uses it until the command is done */
  int length = snprintf(title, sizeof(title), "lbr %s", command->name);

  assert(length > 0 && (size_t)length < sizeof(title));
  argv[0] = title;
  return command->run(argc, argv);
}

/* The nearest command: one that begins with the word, or that differs in at most a third of its letters; one letter may
 * always be wrong. */
static const struct command *command_guess(const char *name)
{
  size_t nearest = strlen(name) / 3 > 1 ? strlen(name) / 3 : 1;
  const struct command *guess = NULL, *command;

  for (size_t i = 0; (command = command_at(i)); i++) {
    bool is_beginning = *name && !strncmp(name, command->name, strlen(name));
    size_t distance = is_beginning ? 0 : word_distance(name, command->name);

    if (distance < nearest || (distance == nearest && !guess)) {
      nearest = distance;
      guess = command;
    }
  }
  return guess;
}

void command_complain(const char *name)
{
  const struct command *guess = command_guess(name);

  if (guess)
    cli_error("no command '%s'; did you mean 'lbr %s'?", name, guess->name);
  else
    cli_error("no command '%s'; 'lbr help' lists them", name);
}
