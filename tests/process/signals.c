/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals as programs use them: a page fault that the handler repairs, raise and kill, one handler inside another, an
 * alternate stack, a timer that ends sigsuspend, a signal blocked while its handler runs.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile char *volatile page;
static volatile sig_atomic_t order[8];
static volatile sig_atomic_t count;

static void note(int what)
{
  order[count++] = what;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
  (void)context;
  if (info->si_addr != page)
    _exit(2);
  mprotect((void *)page, 4096, PROT_READ | PROT_WRITE);
  note(signal);
}

static void on_outer(int signal)
{
  note(signal);
  raise(SIGUSR2); /* nested, on the other stack */
  raise(signal);  /* blocked until this handler returns */
}

static void on_again(int signal)
{
  note(-signal);
}

static void on_inner(int signal)
{
  note(signal);
  struct sigaction action = {.sa_handler = on_again};
  sigaction(SIGUSR1, &action, NULL);
}

static void on_alarm(int signal)
{
  note(signal);
}

static void handlers_set(void)
{
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  sigaltstack(&stack, NULL);
  struct sigaction fault = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  struct sigaction outer = {.sa_handler = on_outer};
  struct sigaction inner = {.sa_handler = on_inner, .sa_flags = SA_ONSTACK};
  struct sigaction alarms = {.sa_handler = on_alarm, .sa_flags = SA_RESETHAND};
  sigaction(SIGSEGV, &fault, NULL);
  sigaction(SIGUSR1, &outer, NULL);
  sigaction(SIGUSR2, &inner, NULL);
  sigaction(SIGALRM, &alarms, NULL);
}

int main(void)
{
  static const int expected[] = {SIGSEGV, SIGUSR1, SIGUSR2, -SIGUSR1, SIGALRM};
  sigset_t alarms, none;
  handlers_set();
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *page = 1;
  kill(getpid(), SIGUSR1);
  sigemptyset(&none);
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  sigprocmask(SIG_BLOCK, &alarms, NULL);
  setitimer(ITIMER_REAL, &(struct itimerval){.it_value.tv_usec = 1000}, NULL);
  sigsuspend(&none);
  for (int i = 0; i < 5; i++)
    if (order[i] != expected[i])
      return 1;
  return count != 5;
}
