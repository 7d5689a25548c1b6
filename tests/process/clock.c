/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls into the vdso. getcpu, time and clock_getres take one way; with an argument, clock_gettime and gettimeofday
 * too, which begin again whenever the kernel's clock ticks meanwhile: stepped slowly, they may do so many times.
 */
#include <sched.h>
#include <sys/time.h>
#include <time.h>

int main(int argc, char **argv)
{
  (void)argv;
  struct timespec now;
  struct timeval day;
  unsigned cpu, node;
  int bad = getcpu(&cpu, &node) != 0;
  bad |= time(NULL) < 1000000000;
  bad |= clock_getres(CLOCK_MONOTONIC, &now) != 0;
  if (argc > 1) {
    bad |= clock_gettime(CLOCK_MONOTONIC, &now) != 0;
    bad |= clock_gettime(CLOCK_REALTIME_COARSE, &now) != 0;
    bad |= gettimeofday(&day, NULL) != 0;
  }
  return bad;
}
