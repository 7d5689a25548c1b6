/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr run: runs a program and, when it dies, shows the last branches that it took. The program keeps its terminal, its
 * environment, its exit status and its core dump.
 */
#include <signal.h>
#include <stdlib.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/run_options.h"
#include "cli/run_page.h"
#include "gdb/gdb.h"
#include "session/session.h"

int cmd_run(int argc, char **argv)
{
  struct run_arguments arguments;
  struct run_show show;
  struct run_page page;
  struct run_session *session;
  struct lb_recorder *recorder = NULL;
  int status;

  run_arguments_read(&arguments, &show, argc, argv);
  if (arguments.cpu && run_lbr_new(&arguments, &recorder) < 0)
    return CLI_USAGE;
  free(recorder); /* it was only made to check the arguments */
  if (!source_choice_settle(&arguments.source, false))
    return PROGRAM_FAILURE;
  session = calloc(1, sizeof(*session));
  if (!session) {
    cli_error("no memory");
    return PROGRAM_FAILURE;
  }
  session->arguments = &arguments;
  session->debug = arguments.is_gdb ? gdb_debug_dead : NULL;
  status = PROGRAM_FAILURE;
  if (run_page_open(&page, &show) >= 0) {
    session->reporter = run_page_reporter(&page);
    bool is_attached = arguments.attached.count;

    relay_start(is_attached && !arguments.signal ? SIGUSR2 : arguments.signal);
    status = is_attached ? run_attach(session) : run_session_run(session);
  }
  run_source_free(session->source);
  free(session);
  attach_list_done(&arguments.attached);
  return status;
}
