/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads of stress that start processes, and the two of which one sends the other signals with values.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

static void status_check(pid_t child, int wanted)
{
  int status;
  pid_t ended = waitpid(child, &status, 0);

  if (ended != child)
    failed("waitpid gives %d, errno %d", ended, errno);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != wanted)
    failed("a child has status 0x%x", status);
}

static _Noreturn void child_run(unsigned wanted)
{
  own_check();
  _exit(hash(1, 2000) == wanted ? CHILD_STATUS : 1);
}

void fork_once(unsigned number)
{
  unsigned wanted = hash(1, 2000);
  pid_t child = fork();

  (void)number;
  if (child < 0)
    failed("fork: errno %d", errno);
  if (child == 0)
    child_run(wanted);
  status_check(child, CHILD_STATUS);
  sleep_for(10000);
}

void execute_once(unsigned number)
{
  pid_t child = vfork();

  (void)number;
  if (child < 0)
    failed("vfork: errno %d", errno);
  if (child == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  status_check(child, 0);
  sleep_for(20000);
}

/* ---- signals with values ---- */

static pthread_t receiver;
static volatile bool is_ready;
static volatile unsigned received;

static void blocked_check(int signal)
{
  sigset_t mask;

  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  if (!sigismember(&mask, signal))
    failed("a handler does not block its own signal");
}

static void on_value(int signal, siginfo_t *info, void *context)
{
  stack_t stack;
  int saved = errno;

  (void)context;
  sigaltstack(NULL, &stack);
  if (!(stack.ss_flags & SS_ONSTACK))
    failed("a handler runs beside its alternate stack");
  blocked_check(signal);
  if (info->si_code != SI_QUEUE || info->si_pid != getpid())
    failed("signal %d has code %d, process %d", signal, info->si_code, info->si_pid);
  if ((unsigned)info->si_value.sival_int != received)
    failed("signal %d has value %d, not %u", signal, info->si_value.sival_int, received);
  received++;
  errno = saved;
}

void signal_prepare(void)
{
  const struct sigaction action = {.sa_sigaction = on_value, .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};

  sigaction(SIGNAL_VALUE, &action, NULL);
}

void receive_begin(unsigned number)
{
  sigset_t set;

  (void)number;
  sigemptyset(&set);
  sigaddset(&set, SIGNAL_VALUE);
  mask_open(&set);
  receiver = pthread_self();
  is_ready = true;
}

void receive_once(unsigned number)
{
  static unsigned wanted;
  unsigned result = hash(number + 9, 10000);

  if (wanted && result != wanted)
    failed("hash between signals");
  wanted = result;
}

/* Sends two and waits until both have come. */
void send_once(unsigned number)
{
  static unsigned sent;

  (void)number;
  while (!is_ready)
    sched_yield();
  for (unsigned i = 0; i < 2; i++) {
    int error = pthread_sigqueue(receiver, SIGNAL_VALUE, (union sigval){.sival_int = (int)sent});

    if (error)
      failed("pthread_sigqueue: %d", error);
    sent++;
  }
  while (received < sent && !is_over())
    sched_yield();
  sleep_for(2000);
}
