/* SPDX-License-Identifier: Apache-2.0
 *
 * rounds [for-ever]: a process whose functions run in known proportions. It says "ready", and does a round for each
 * byte that comes on standard input: it calls `often` 3000 times and `seldom` 1000 times, and says "done". Without
 * standard input it ends. The argument makes it do rounds without waiting, until a signal ends it.
 */
#include <stdio.h>
#include <unistd.h>

enum { OFTEN = 3, SELDOM = 1, TIMES = 1000 };

static volatile unsigned sum;

__attribute__((noinline)) static void often(unsigned value)
{
  sum += value;
}

__attribute__((noinline)) static void seldom(unsigned value)
{
  sum ^= value;
}

__attribute__((noinline)) static void round_do(void)
{
  for (unsigned i = 0; i < TIMES; i++) {
    for (unsigned j = 0; j < OFTEN; j++)
      often(j);
    for (unsigned j = 0; j < SELDOM; j++)
      seldom(j);
  }
}

static void say(const char *text, size_t size)
{
  if (write(STDOUT_FILENO, text, size) < 0)
    _exit(1);
}

int main(int argc, char **argv)
{
  char byte;

  (void)argv;
  say("ready\n", 6);
  while (argc > 1)
    round_do();
  while (read(STDIN_FILENO, &byte, 1) == 1) {
    round_do();
    say("done\n", 5);
  }
  return 0;
}
