/* SPDX-License-Identifier: Apache-2.0
 *
 * durations TIMES: calls nap, which sleeps, and spin, which uses the processor, in turn, and tells of each call by
 * CLOCK_MONOTONIC how long it took at least and at most, in nanoseconds: lines "nap LEAST MOST ASKED" and "spin LEAST
 * MOST ASKED". Between the two points where the program reads its clock there is a system call before each call and
 * after it, so that the recorder knows the time there: its duration is between the two, however the thread is
 * scheduled. Each nap is twice as long as the one before; spinning is for SPIN of the thread's CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ALONE __attribute__((noinline, noclone, noipa))

enum { NAP = 2000000, SPIN = 3000000, TIMES_MAX = 8 };

struct span {
  unsigned long long least, most;
};

static unsigned long long clock_of(clockid_t clock)
{
  struct timespec time;

  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

static void sleep_for(unsigned long long duration)
{
  struct timespec time = {0, (long)duration};

  while (nanosleep(&time, &time))
    ;
}

/* A log that fills up would stop the thread: few branches, and much time. */
static void rest(void)
{
  __asm__ volatile(".rept 500\npause\n.endr");
}

ALONE static void nap(unsigned long long duration, struct span *span)
{
  unsigned long long before;

  syscall(SYS_getppid);
  before = clock_of(CLOCK_MONOTONIC);
  sleep_for(duration);
  span->least = clock_of(CLOCK_MONOTONIC) - before;
  syscall(SYS_getppid);
}

ALONE static void spin(unsigned long long duration, struct span *span)
{
  unsigned long long before, used;

  syscall(SYS_getppid);
  before = clock_of(CLOCK_MONOTONIC);
  used = clock_of(CLOCK_THREAD_CPUTIME_ID);
  while (clock_of(CLOCK_THREAD_CPUTIME_ID) - used < duration)
    rest();
  span->least = clock_of(CLOCK_MONOTONIC) - before;
  syscall(SYS_getppid);
}

static void measure(void (*function)(unsigned long long, struct span *), unsigned long long duration, struct span *span)
{
  unsigned long long before = clock_of(CLOCK_MONOTONIC);

  syscall(SYS_getppid);
  function(duration, span);
  syscall(SYS_getppid);
  span->most = clock_of(CLOCK_MONOTONIC) - before;
}

ALONE static void work(unsigned times, struct span (*spans)[2])
{
  for (unsigned i = 0; i < times; i++) {
    measure(spin, SPIN, &spans[i][1]);
    measure(nap, NAP << i, &spans[i][0]);
  }
}

int main(int argc, char **argv)
{
  unsigned times = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  struct span spans[TIMES_MAX][2] = {0};

  times = times < TIMES_MAX ? times : TIMES_MAX;
  sleep_for(NAP); /* the recorder reads the CPU time after it */
  work(times, spans);
  for (unsigned i = 0; i < times; i++)
    printf("spin %llu %llu %d\nnap %llu %llu %d\n", spans[i][1].least, spans[i][1].most, SPIN, spans[i][0].least,
           spans[i][0].most, NAP << i);
  return 0;
}
