/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr run: runs a program and, when it dies, shows the last branches that it took. The program keeps its terminal, its
 * environment, its exit status and its core dump.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/run_options.h"
#include "gdb/gdb.h"
#include "session/session.h"

/* ---- where the report goes ---- */

static int stdout_copy(void)
{
  int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);

  return fd < 0 ? -errno : fd;
}

static int report_open(struct run_session *session)
{
  const char *name = session->arguments->output;

  session->fd = STDERR_FILENO;
  if (name && !strcmp(name, "-"))
    session->fd = stdout_copy();
  else if (name)
    session->fd = new_file_create(name);
  if (session->fd < 0) {
    cli_error("%s: %s", name, lb_strerror(session->fd));
    return PROGRAM_FAILURE;
  }
  session->wants_color = cli_wants_color_on(session->fd);
  return CLI_OK;
}

/* ---- the command ---- */

int cmd_run(int argc, char **argv)
{
  struct run_arguments arguments;
  struct run_session *session;
  struct lb_recorder *recorder = NULL;
  int status;

  run_arguments_read(&arguments, argc, argv);
  if (arguments.cpu && run_lbr_new(&arguments, &recorder) < 0)
    return CLI_USAGE;
  free(recorder); /* now it is known that there will be one */
  if (!source_choice_settle(&arguments.source, false))
    return PROGRAM_FAILURE;
  session = calloc(1, sizeof(*session));
  if (!session) {
    cli_error("no memory");
    return PROGRAM_FAILURE;
  }
  session->arguments = &arguments;
  session->debug = arguments.is_gdb ? gdb_debug_dead : NULL;
  status = report_open(session);
  if (status == CLI_OK) {
    relay_start(arguments.signal);
    status = run_session_run(session);
  }
  run_source_free(session->source);
  free(session);
  return status;
}
