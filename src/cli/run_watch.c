/* SPDX-License-Identifier: Apache-2.0
 *
 * lbr while its program runs. What the terminal sends comes to both: we leave it to the program. What is sent to us
 * alone to end us is passed on. Signals are caught before the program is started, since a caught signal is the default
 * again after execve, and blocked only after it, since a blocked one stays blocked.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/run_session.h"

#define LOOK_SECONDS 0.5 /* how often dead children are looked for */
#define GRACE_SECONDS 2.0

static const int caught[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

enum { CAUGHT = sizeof(caught) / sizeof(*caught), SIGNALS = 65 };

static struct sigaction before[SIGNALS];
static sigset_t before_mask;
static bool is_caught[SIGNALS], has_mask;
static volatile sig_atomic_t has_come[SIGNALS];

static void signal_note(int signal)
{
  has_come[signal] = 1;
}

/* One that is ignored stays so, for the program too. */
static void signal_catch(int signal)
{
  struct sigaction action = {.sa_handler = signal_note, .sa_flags = SA_RESTART};

  if (is_caught[signal] || sigaction(signal, NULL, &before[signal]) < 0 || before[signal].sa_handler == SIG_IGN)
    return;
  is_caught[signal] = sigaction(signal, &action, NULL) == 0;
}

void run_signals_catch(const struct run_arguments *arguments)
{
  for (unsigned i = 0; i < CAUGHT; i++)
    signal_catch(caught[i]);
  if (arguments->signal)
    signal_catch(arguments->signal);
}

void run_signals_restore(void)
{
  for (int signal = 1; signal < SIGNALS; signal++)
    if (is_caught[signal])
      sigaction(signal, &before[signal], NULL);
  if (has_mask)
    sigprocmask(SIG_SETMASK, &before_mask, NULL);
}

/* ---- time ---- */

/* The program's time, if it has a limit. */
struct clock {
  double deadline; /* 0: none */
  bool is_asked;   /* to end: the next is SIGKILL */
};

static void clock_look(struct clock *clock, int pid)
{
  if (!clock->deadline || cli_seconds() < clock->deadline)
    return;
  kill(pid, clock->is_asked ? SIGKILL : SIGTERM);
  clock->deadline = clock->is_asked ? 0 : cli_seconds() + GRACE_SECONDS;
  clock->is_asked = true;
}

static struct timespec wait_time(const struct clock *clock)
{
  double seconds = LOOK_SECONDS, left = clock->deadline ? clock->deadline - cli_seconds() : seconds;

  if (left < seconds)
    seconds = left > 0 ? left : 0;
  return (struct timespec){.tv_sec = 0, .tv_nsec = (long)(seconds * 1e9)};
}

/* ---- signals ---- */

static void signal_act(struct run_session *session, int signal)
{
  if (signal == session->arguments->signal)
    run_report_alive(session);
  else if (signal == SIGTERM || signal == SIGHUP)
    kill(session->process.pid, signal);
}

/* Those that came before they were blocked. */
static void signals_act(struct run_session *session)
{
  for (int signal = 1; signal < SIGNALS; signal++)
    if (has_come[signal]) {
      has_come[signal] = 0;
      signal_act(session, signal);
    }
}

/* Also, from now on, a report that nobody reads is no reason to die. */
static void signals_block(sigset_t *set)
{
  const struct sigaction ignore = {.sa_handler = SIG_IGN};

  is_caught[SIGPIPE] = sigaction(SIGPIPE, &ignore, &before[SIGPIPE]) == 0;
  sigemptyset(set);
  for (int signal = 1; signal < SIGNALS; signal++)
    if (is_caught[signal] && signal != SIGPIPE)
      sigaddset(set, signal);
  sigaddset(set, SIGCHLD);
  has_mask = sigprocmask(SIG_BLOCK, set, &before_mask) == 0;
}

int run_watch(struct run_session *session)
{
  struct clock clock = {.deadline = session->arguments->timeout > 0 ? cli_seconds() + session->arguments->timeout : 0};
  sigset_t set;
  int status;

  signals_block(&set);
  for (;;) {
    int pid = session->source ? run_source_wait(session, &status) : waitpid(session->process.pid, &status, WNOHANG);

    if (pid > 0)
      return status;
    if (pid < 0 && errno != EINTR)
      return -errno;
    signals_act(session);
    clock_look(&clock, session->process.pid);
    struct timespec time = session->source ? (struct timespec){0, 0} : wait_time(&clock); /* it has waited */
    int signal = sigtimedwait(&set, NULL, &time);
    if (signal > 0)
      signal_act(session, signal);
    else
      run_report_deaths(session);
  }
}
