/* SPDX-License-Identifier: Apache-2.0
 *
 * `lbr run -p`: attaches to processes and keeps their last branches, until they die or lbr is told to leave them.
 */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "session/program.h"
#include "session/relay.h"
#include "session/run.h"

#define LOOK_SECONDS 0.1

int run_attach(struct run_session *session)
{
  const struct run_arguments *arguments = session->arguments;
  const struct process_options options = {.is_alone = arguments->is_alone, .part_size = run_part_size(arguments->kept)};
  double deadline = arguments->timeout > 0 ? clock_seconds() + arguments->timeout : 0;
  bool is_over = false;

  if (attach_open(&options, &arguments->attached, &session->process) < 0)
    return PROGRAM_FAILURE;
  while (!is_over && !relay_count() && !arguments->is_snapshot) { /* a signal that came before ends it, too */
    const struct timespec time = {.tv_nsec = (long)(LOOK_SECONDS * 1e9)};

    if (relay_own_came())
      run_report_alive(session);
    relay_follow(); /* the stops of attaching look like changes of a child */
    relay_wait(&time);
    run_report_deaths(session);
    is_over = attach_is_over(&arguments->attached);
    if ((deadline && clock_seconds() >= deadline) || process_error(&session->process, NULL, NULL, NULL))
      break;
  }
  if (arguments->is_snapshot) {
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    run_report_alive(session);
  }
  int left = attach_close(&session->process, NULL);
  if (is_over)
    run_report_deaths(session);
  process_done(&session->process);
  relay_restore();
  return left < 0 || session->is_broken ? PROGRAM_FAILURE : 0;
}
