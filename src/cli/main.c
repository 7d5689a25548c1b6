/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr: finds the command that the first word names and runs it. The commands are the rows of command.def. Exit status:
 * 0 success, 1 failure, 2 usage error.
 */
#include <argp.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/fetch.h"

const char *argp_program_version = "lbr " LB_VERSION;

/* Checks that the output was written: a full disk must not pass as success. Runs at exit, because argp may call exit
 * itself. */
static void stdout_check(void)
{
  int had_error = ferror(stdout);

  errno = 0; /* an earlier write error is known only by the stream's flag */
  if (fflush(stdout) == 0 && !had_error)
    return;
  if (errno)
    cli_error("cannot write the output: %s", lb_strerror(-errno));
  else
    cli_error("cannot write the output");
  _exit(CLI_FAILURE);
}

static int option_run(int argc, char **argv)
{
  const char *option = argv[0];

  if (!strcmp(option, "--help") || !strcmp(option, "-h") || !strcmp(option, "-?"))
    return command_run(command_find("help"), argc, argv);
  if (!strcmp(option, "--version") || !strcmp(option, "-V")) {
    puts(argp_program_version);
    return CLI_OK;
  }
  cli_error("no option '%s'; 'lbr help' lists the commands", option);
  return CLI_USAGE;
}

static void limit_signal(int number)
{
  (void)number;
}

/* A write beyond RLIMIT_FSIZE then fails with EFBIG, which commands report. A handler is used instead of SIG_IGN,
 * because programs that lbr executes then get the default action again. */
static void limit_catch(void)
{
  struct sigaction action;

  if (sigaction(SIGXFSZ, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
    action = (struct sigaction){.sa_handler = limit_signal, .sa_flags = SA_RESTART};
    sigaction(SIGXFSZ, &action, NULL);
  }
}

int main(int argc, char **argv)
{
  const struct command *command;

  cli_hear_messages();
  limit_catch();
  fetch_allow();
  argp_err_exit_status = CLI_USAGE;
  if (atexit(stdout_check) != 0)
    return CLI_FAILURE;
  if (argc < 2) {
    cli_error("name a command; 'lbr help' lists the commands");
    return CLI_USAGE;
  }
  if (argv[1][0] == '-')
    return option_run(argc - 1, argv + 1);
  command = command_find(argv[1]);
  if (!command) {
    command_complain(argv[1]);
    return CLI_USAGE;
  }
  return command_run(command, argc - 1, argv + 1);
}
