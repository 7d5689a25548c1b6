/* SPDX-License-Identifier: Apache-2.0
 *
 * Two threads that sleep and spin, and tell when, by CLOCK_MONOTONIC: lines "nap BEFORE AFTER SLEEP" around a system
 * call, "spin BEFORE AFTER" inside of the function, and "around BEFORE AFTER" around it and the two system calls next
 * to it, which give the trace exact times there. A third line of output, "signal", tells that a handler ran.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t signals;

__attribute__((noinline)) static unsigned long long now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

__attribute__((noinline)) static void nap(long nanoseconds)
{
  struct timespec time = {0, nanoseconds};
  unsigned long long before = now(), after;

  syscall(SYS_nanosleep, &time, NULL);
  after = now();
  printf("nap %llu %llu %ld\n", before, after, nanoseconds);
}

__attribute__((noinline)) static void spin(unsigned long long nanoseconds, unsigned long long spun[2])
{
  spun[0] = now();
  while ((spun[1] = now()) < spun[0] + nanoseconds)
    ;
}

static void spin_around(unsigned long long nanoseconds)
{
  unsigned long long spun[2], before = now();

  syscall(SYS_getppid);
  spin(nanoseconds, spun);
  syscall(SYS_getppid);
  printf("around %llu %llu\nspin %llu %llu\n", before, now(), spun[0], spun[1]);
}

static void tick(int number)
{
  (void)number;
  signals++;
}

static void *worker(void *data)
{
  spin_around(3000000);
  nap(20000000);
  spin_around(3000000);
  nap(25000000);
  return data;
}

int main(void)
{
  pthread_t thread;

  signal(SIGUSR1, tick);
  pthread_create(&thread, NULL, worker, NULL);
  nap(15000000);
  raise(SIGUSR1);
  spin_around(4000000);
  pthread_join(thread, NULL);
  printf("signals %d\n", (int)signals);
}
