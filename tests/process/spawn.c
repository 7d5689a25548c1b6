/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes by libc: fork, vfork with exec, posix_spawn, and exec that fails. The program they execute is this one,
 * with an argument.
 */
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define SELF "/proc/self/exe"

static int child_status(pid_t child)
{
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
    return -1;
  return WEXITSTATUS(status);
}

static int by_fork(void)
{
  pid_t child = fork();
  if (child == 0)
    exit(3); /* through atexit and stdio */
  return child_status(child);
}

static int by_vfork(void)
{
  pid_t child = vfork();
  if (child == 0) {
    execl("/nowhere/at/all", "nothing", (char *)NULL);
    execl(SELF, SELF, "4", (char *)NULL);
    _exit(127);
  }
  return child_status(child);
}

static int by_spawn(void)
{
  char *arguments[] = {SELF, "5", NULL};
  pid_t child;
  if (posix_spawn(&child, SELF, NULL, NULL, arguments, NULL))
    return -1;
  return child_status(child);
}

int main(int argc, char **argv)
{
  if (argc > 1)
    return atoi(argv[1]);
  return !(by_fork() == 3 && by_vfork() == 4 && by_spawn() == 5);
}
