/* SPDX-License-Identifier: Apache-2.0
 *
 * again N PROGRAM [ARGUMENT]...: runs a program N times, one run after the other, and ends as the last run ended. Under
 * `lbr record`, all runs but the first begin with translations that an earlier one has left.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int argc, char **argv)
{
  int count = argc > 2 ? atoi(argv[1]) : 0, status = 0;
  pid_t child;

  if (count < 1) {
    fprintf(stderr, "usage: again N PROGRAM [ARGUMENT]...\n");
    return 125;
  }
  for (int i = 0; i < count; i++)
    if (posix_spawn(&child, argv[2], NULL, NULL, argv + 2, environ) != 0 || waitpid(child, &status, 0) != child) {
      perror(argv[2]);
      return 125;
    }
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  return WEXITSTATUS(status);
}
