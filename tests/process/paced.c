/* SPDX-License-Identifier: Apache-2.0
 *
 * paced NAP TIMES: naps of NAP milliseconds (the third: 20 times as long), spins, and a recursion with a nap at its
 * bottom, TIMES times each; then a thread that naps. It tells how long all that took by CLOCK_MONOTONIC: lines
 * "nap BEFORE AFTER ASKED" and "nest BEFORE AFTER ASKED" (nanoseconds), "spin BEFORE AFTER INSIDE", where INSIDE is the
 * time in the middle of the call, "thread BEFORE AFTER". A system call before and after each of them makes sure that a
 * trace has exact times there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

enum { DEPTH = 10, SPIN = 3000000 };

static unsigned long long nap_time;

static unsigned long long now(void)
{
  struct timespec time;

  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

/* The instruction is in the function that calls this, and so is its time. */
static inline __attribute__((always_inline)) long kernel(long number, const void *one, void *other)
{
  long result;

  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(one), "S"(other) : "rcx", "r11", "memory");
  return result;
}

static inline __attribute__((always_inline)) void mark(void)
{
  kernel(SYS_getppid, NULL, NULL);
}

static void nap(unsigned long long duration)
{
  struct timespec time = {(time_t)(duration / 1000000000), (long)(duration % 1000000000)};

  while (kernel(SYS_nanosleep, &time, &time))
    ;
}

static unsigned long long spin(void)
{
  unsigned long long start, end;

  mark();
  start = now();
  while ((end = now()) < start + SPIN)
    ;
  mark();
  return end - start;
}

static volatile unsigned depth_wanted = DEPTH, depth_reached;

/* The assignment after the call keeps compilers from making a loop of it. */
static void nest(unsigned depth)
{
  if (depth == 1)
    nap(nap_time);
  else
    nest(depth - 1);
  depth_reached = depth;
}

static void naps(unsigned times)
{
  for (unsigned i = 0; i < times; i++) {
    unsigned long long asked = i == 2 ? 20 * nap_time : nap_time, before = now(), after;

    mark();
    nap(asked);
    mark();
    after = now();
    printf("nap %llu %llu %llu\n", before, after, asked);
  }
}

static void spins(unsigned times)
{
  for (unsigned i = 0; i < times; i++) {
    unsigned long long before = now(), inside, after;

    mark();
    inside = spin();
    mark();
    after = now();
    printf("spin %llu %llu %llu\n", before, after, inside);
  }
}

static void nests(unsigned times)
{
  for (unsigned i = 0; i < times; i++) {
    unsigned long long before = now(), after;

    mark();
    nest(depth_wanted);
    mark();
    after = now();
    printf("nest %llu %llu %llu\n", before, after, nap_time);
  }
}

static void *thread(void *data)
{
  (void)data;
  nap(nap_time);
  return NULL;
}

int main(int argc, char **argv)
{
  unsigned times = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
  unsigned long long before, after;
  pthread_t other;

  nap_time = argc > 1 ? 1000000ull * (unsigned)atoi(argv[1]) : 1000000;
  naps(times);
  spins(times);
  nests(times);
  before = now();
  if (pthread_create(&other, NULL, thread, NULL) || pthread_join(other, NULL))
    return 1;
  after = now();
  printf("thread %llu %llu %llu\n", before, after, nap_time);
  return 0;
}
