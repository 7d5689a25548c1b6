/* SPDX-License-Identifier: Apache-2.0
 *
 * timed HOW TIMES: sleeps and spins, and tells when, by CLOCK_MONOTONIC: lines "sleep BEFORE AFTER", "spin BEFORE
 * AFTER". HOW: plain; no-tsc, after RDTSC was forbidden; strict, in seccomp's strict mode at the end; child, again in a
 * child of fork that then executes this program; signals, with a timer, then "signals COUNT"; threads, in four threads,
 * then "calls COUNT" for calls of getppid in all of them; wait: sleeps once before it begins.
 */
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NAP = 3000000, SPIN = 2000000, THREADS = 4 };

static volatile sig_atomic_t signals;
static unsigned times;
static int is_without_tsc; /* the library's clock_gettime uses it */

static unsigned long long now(void)
{
  struct timespec time;

  if (is_without_tsc)
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  else
    clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

static void sleep_some(void)
{
  struct timespec time = {0, NAP};

  while (nanosleep(&time, &time))
    ;
}

static void spin_some(unsigned long long until)
{
  while (now() < until)
    ;
}

static void work(void)
{
  for (unsigned i = 0; i < times; i++) {
    unsigned long long before = now(), between, after;

    sleep_some();
    between = now();
    spin_some(between + SPIN);
    after = now();
    printf("sleep %llu %llu\nspin %llu %llu\n", before, between, between, after);
  }
  fflush(stdout);
}

static void tick(int number)
{
  (void)number;
  signals++;
}

static void *thread(void *data)
{
  (void)data;
  for (unsigned i = 0; i < times * 1000; i++)
    syscall(SYS_getppid);
  return NULL;
}

static void threads_run(void)
{
  pthread_t all[THREADS];

  for (unsigned i = 0; i < THREADS; i++)
    pthread_create(&all[i], NULL, thread, NULL);
  for (unsigned i = 0; i < THREADS; i++)
    pthread_join(all[i], NULL);
  printf("calls %u\n", THREADS * times * 1000);
}

static void signals_run(void)
{
  struct itimerval timer = {{0, 500}, {0, 500}};

  signal(SIGALRM, tick);
  setitimer(ITIMER_REAL, &timer, NULL);
  work();
  setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL);
  printf("signals %d\n", (int)signals);
}

int main(int argc, char **argv)
{
  const char *how = argc > 2 ? argv[1] : "";

  times = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  is_without_tsc = !strcmp(how, "no-tsc");
  if (is_without_tsc && prctl(PR_SET_TSC, PR_TSC_SIGSEGV))
    return 1;
  if (!strcmp(how, "wait"))
    sleep(1);
  if (!strcmp(how, "child") && !fork())
    execl(argv[0], argv[0], "plain", argv[2], NULL);
  if (!strcmp(how, "threads"))
    threads_run();
  else if (!strcmp(how, "signals"))
    signals_run();
  else
    work();
  while (wait(NULL) > 0)
    ;
  fflush(stdout);
  if (!strcmp(how, "strict")) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    for (unsigned i = 0; i < 100; i++)
      write(1, "end\n", 4);
    syscall(SYS_exit, 0);
  }
  return 0;
}
