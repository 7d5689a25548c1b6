/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of commands, made from command.def. A command gets its own part of the command line: argv[0] is "lbr NAME",
 * so that argp's usage texts are right. It returns the exit status.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include <argp.h>
#include <stddef.h>

typedef int command_function(int argc, char **argv);

#define LB_COMMAND(name, summary)                                                                                      \
  command_function cmd_##name;                                                                                         \
  extern const struct argp name##_argp;
#include "cli/command.def"
#undef LB_COMMAND

struct command {
  const char *name;
  const char *summary;
  const struct argp *argp; /* its command line */
  command_function *run;
};

/* Commands 0, 1, ...; NULL past the end. */
const struct command *command_at(size_t index);

/* The command with this name, NULL if there is none. */
const struct command *command_find(const char *name);

/* Runs a command on its part of the command line, where argv[0] is the word that named it. Returns the exit status. */
int command_run(const struct command *command, int argc, char **argv);

/* Prints to stderr that there is no such command, and a suggestion. */
void command_complain(const char *name);

#endif
