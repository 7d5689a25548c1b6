/* SPDX-License-Identifier: Apache-2.0
 *
 * spawner PROGRAM [ARGUMENT]...: says "ready"; for each line "COUNT" on standard input it runs the program so many
 * times, by fork or vfork, and says "ran OK", the number of runs that ended with 0. "loop" runs it until a byte comes.
 * "stay" starts the program, says its number, and does not wait for it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t start(char **words, int is_vfork)
{
  pid_t child = is_vfork ? vfork() : fork();

  if (child == 0) {
    execve(words[0], words, environ);
    _exit(127);
  }
  return child;
}

static int run(char **words, unsigned number)
{
  int status = -1;
  pid_t child = start(words, number & 1);

  if (child < 0 || waitpid(child, &status, 0) != child || status)
    fprintf(stderr, "spawner: run %u ended with 0x%x\n", number, (unsigned)status);
  return status == 0;
}

int main(int argc, char **argv)
{
  char line[64];

  (void)argc;
  setvbuf(stdout, NULL, _IOLBF, 0);
  setvbuf(stdin, NULL, _IONBF, 0);
  printf("ready\n");
  while (fgets(line, sizeof(line), stdin)) {
    unsigned times = (unsigned)strtoul(line, NULL, 10), fine = 0, number = 0;
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};

    if (!strcmp(line, "stay\n")) {
      printf("started %d\n", start(argv + 1, 0));
      continue;
    }
    if (!strcmp(line, "loop\n"))
      while (poll(&input, 1, 0) == 0)
        fine += (unsigned)run(argv + 1, number++);
    for (; number < times; number++)
      fine += (unsigned)run(argv + 1, number);
    printf("ran %u of %u\n", fine, number);
  }
  return 0;
}
