/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr while its program runs: waits for the program's end, reports deaths meanwhile, and ends the program after a
 * timeout. relay.c forwards signals.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"
#include "session/relay.h"
#include "session/run.h"

#define LOOK_SECONDS 0.5 /* between two checks for dead children */
#define GRACE_SECONDS 2.0

/* ---- time ---- */

/* The program's time, if it has a limit. */
struct clock {
  double deadline; /* 0: none */
  bool is_asked;   /* SIGTERM was sent: the next signal is SIGKILL */
};

static void clock_look(struct clock *clock, struct run_session *session)
{
  if (!clock->deadline || clock_seconds() < clock->deadline)
    return;
  session->is_timed_out = true;
  kill(session->process.pid, clock->is_asked ? SIGKILL : SIGTERM);
  clock->deadline = clock->is_asked ? 0 : clock_seconds() + GRACE_SECONDS;
  clock->is_asked = true;
}

static struct timespec wait_time(const struct clock *clock)
{
  double seconds = LOOK_SECONDS, left = clock->deadline ? clock->deadline - clock_seconds() : seconds;

  if (left < seconds)
    seconds = left > 0 ? left : 0;
  return (struct timespec){.tv_sec = 0, .tv_nsec = (long)(seconds * 1e9)};
}

/* ---- the watch ---- */

int run_watch(struct run_session *session)
{
  struct clock clock = {.deadline =
                          session->arguments->timeout > 0 ? clock_seconds() + session->arguments->timeout : 0};
  int status;

  relay_to(session->process.pid, session->source != NULL);
  for (;;) {
    relay_follow();
    int pid = session->source ? run_source_wait(session, &status) : waitpid(session->process.pid, &status, WNOHANG);

    if (pid > 0) {
      relay_end();
      return status;
    }
    if (pid < 0 && errno != EINTR)
      return -errno;
    if (relay_own_came())
      run_report_alive(session);
    clock_look(&clock, session);
    struct timespec time = wait_time(&clock);
    if (session->source || relay_wait(&time)) /* a source has waited already */
      run_report_deaths(session);
  }
}
