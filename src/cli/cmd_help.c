/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr help: the list of commands, or one command's manual: its man page if one is installed and the output is a
 * terminal, otherwise the text of its --help.
 */
#include <argp.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/options.h"

/* LB_MANDIR, where this build installs its man pages, comes from the build. Distributions compress them. */
static const char *const page_formats[] = {LB_MANDIR "/man1/lbr-%s.1", LB_MANDIR "/man1/lbr-%s.1.gz"};

/* As argp prints it: one line for each form of the command. */
static void usage_print(const struct command *command)
{
  const char *way = command->argp->args_doc ? command->argp->args_doc : "";

  for (size_t length;; way += length + 1) {
    length = strcspn(way, "\n");
    printf("  lbr %s [OPTION...]%s%.*s\n", command->name, length ? " " : "", (int)length, way);
    if (!way[length])
      break;
  }
}

static void commands_print(void)
{
  const struct command *command;

  printf(
    "Usage: lbr COMMAND [ARGUMENT...]\n\nRecords the branches of programs, and models the branch-recording hardware of x86 processors.\n\n");
  for (size_t i = 0; (command = command_at(i)); i++) {
    usage_print(command);
    printf("      %s\n", command->summary);
  }
  printf(
    "\n'lbr help COMMAND' shows the manual of a command, 'lbr COMMAND --help' its options, 'lbr --version' the version.\n");
}

/* Executes man(1); returns if that fails. */
static void page_show(const char *name)
{
  char path[sizeof(LB_MANDIR) + 64];

  for (size_t i = 0; i < sizeof(page_formats) / sizeof(page_formats[0]); i++) {
    snprintf(path, sizeof(path), page_formats[i], name);
    if (access(path, R_OK) == 0)
      execlp("man", "man", "-l", path, (char *)NULL);
  }
}

static error_t option_parse(int key, char *argument, struct argp_state *state)
{
  const char **ret_name = state->input;

  if (key != ARGP_KEY_ARG)
    return ARGP_ERR_UNKNOWN;
  if (*ret_name)
    argp_error(state, "name one command");
  *ret_name = argument;
  return 0;
}

const struct argp help_argp = {
  .parser = option_parse,
  .args_doc = "[COMMAND]",
  .doc = "List the commands, or show the manual of one.",
  .children = shared_only_common,
};

int cmd_help(int argc, char **argv)
{
  char option[] = "--help";
  char *arguments[] = {NULL, option, NULL};
  const struct command *command;
  const char *name = NULL;

  argp_parse(&help_argp, argc, argv, 0, NULL, &name);
  if (!name) {
    commands_print();
    return CLI_OK;
  }
  command = command_find(name);
  if (!command) {
    command_complain(name);
    return CLI_USAGE;
  }
  if (isatty(STDOUT_FILENO))
    page_show(command->name);
  return command_run(command, 2, arguments);
}
