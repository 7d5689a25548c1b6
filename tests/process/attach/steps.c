/* SPDX-License-Identifier: Apache-2.0
 *
 * steps COUNT: a program of one thread whose branches never repeat in the same order for long, so that each part of
 * their list is found at one place only. A generator of random numbers decides each of them. Cosines make it
 * slow: a branch takes some 500 nanoseconds. It says a number at the end that depends on all that it did.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static uint64_t state = 88172645463325252;
static uint64_t total;

/* Has no branches. Each cosine needs the one before, and takes some 100 cycles. */
static __attribute__((noinline)) unsigned next(void)
{
  uint64_t slow;

  state = state * 6364136223846793005 + 1442695040888963407;
  __asm__ volatile("fld1\n .rept 50\n fcos\n .endr\n fstpl %0" : "=m"(slow));
  total += slow;
  return (unsigned)(state >> 33);
}

static void conditions(unsigned value)
{
  if (value & 1)
    total += next();
  if (value & 2)
    total ^= next();
  if (value & 4)
    total *= 3;
}

static void table(unsigned value)
{
  switch (value % 8) {
  case 0:
    total += next();
    break;
  case 1:
    total -= 5;
    break;
  case 2:
    total ^= next() & 255;
    break;
  case 3:
    total = total << 1 | total >> 63;
    break;
  case 4:
    conditions(next());
    break;
  case 5:
    total *= 7;
    break;
  case 6:
    total += value;
    break;
  default:
    total = ~total;
  }
}

static void recursion(unsigned depth)
{
  conditions(next());
  if (depth)
    recursion(depth - 1);
  total += depth;
}

static void recursion_start(unsigned value)
{
  recursion(value % 16);
}

static void system_calls(unsigned value)
{
  const struct timespec time = {.tv_nsec = 1000000};

  if (value % 64 == 0)
    total += getpid() > 0;
  if (value % 4096 == 1)
    nanosleep(&time, NULL);
}

static void (*const functions[])(unsigned) = {conditions, table, recursion_start, system_calls};

int main(int argc, char **argv)
{
  long count = argc > 1 ? atol(argv[1]) : 1000;

  for (long i = 0; i < count; i++) {
    unsigned value = next();

    functions[value % 4](value >> 2);
    table(next());
  }
  printf("%llu\n", (unsigned long long)total);
  return 0;
}
