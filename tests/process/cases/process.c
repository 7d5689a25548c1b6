/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes: fork, vfork, posix_spawn, the forms of exec and how they fail, and what a program sees of its children.
 * Runs its own file again with an argument that starts with a dash.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"

extern char **environ;
static char self[4096];
static char script[] = "/tmp/case-XXXXXX";

static int say_end(pid_t child)
{
  int status = 0;
  if (waitpid(child, &status, 0) != child)
    say("not my child\n");
  else if (WIFEXITED(status))
    say("exit %d\n", WEXITSTATUS(status));
  else
    say("signal %d%s\n", WTERMSIG(status), WCOREDUMP(status) ? " core" : "");
  return 0;
}

static int forked(void)
{
  int value = 1;
  int *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t child = fork();
  if (!child) {
    value = 2;
    *shared = 3;
    say("child: value %d, parent %d\n", value, getppid() != 1);
    _exit(4);
  }
  say_end(child);
  say("parent: value %d shared %d\n", value, *shared);
  return 0;
}

/* The kernel looks at the lower half of RAX only: fork, and execve in the child. */
static int wide_numbers(void)
{
  const long upper = 0x5A5A5A5AL << 32;
  char *arguments[] = {"echo", "by a wide number", NULL}, *none[] = {NULL};
  long child = syscall(upper | SYS_fork);
  if (!child) {
    syscall(upper | SYS_execve, "/bin/echo", arguments, none);
    _exit(1);
  }
  return say_end((pid_t)child);
}

static int many_forks(void)
{
  int total = 0;
  for (int i = 0; i < 50; i++)
    if (!fork())
      _exit(i);
  for (int i = 0, status; i < 50; i++)
    if (wait(&status) > 0)
      total += WEXITSTATUS(status);
  int result = wait(NULL);
  say("%d, then %d errno %d\n", total, result, errno);
  return 0;
}

static int deep_forks(void)
{
  for (int i = 0; i < 10; i++) {
    pid_t child = fork();
    if (child) {
      int status = 0;
      waitpid(child, &status, 0);
      say("%d ends with %d\n", i, WEXITSTATUS(status) + 1);
      _exit(WEXITSTATUS(status) + 1);
    }
  }
  _exit(0);
}

static int vforked(void)
{
  volatile int value = 1;
  pid_t child = vfork();
  if (!child) {
    value = 2;
    _exit(6);
  }
  say_end(child);
  say("value %d\n", value);
  child = vfork();
  if (!child) {
    execl(self, self, "-say", "from vfork", NULL);
    _exit(1);
  }
  say_end(child);
  child = vfork();
  if (!child) {
    execl("/nowhere", "nowhere", NULL);
    value = errno;
    _exit(7);
  }
  say_end(child);
  say("errno %d\n", value);
  return 0;
}

static int spawned(void)
{
  pid_t child = 0;
  char *arguments[] = {"echo", "from posix_spawnp", NULL};
  char *mine[] = {self, "-status", "77", NULL};
  posix_spawn_file_actions_t actions;
  int result = posix_spawnp(&child, "echo", NULL, NULL, arguments, environ);
  say_end(child);
  say("%d\n", result);
  result = posix_spawn(&child, self, NULL, NULL, mine, environ);
  say_end(child);
  say("%d\n", result);
  say("no such file: %d\n", posix_spawn(&child, "/no/such/file", NULL, NULL, arguments, environ));
  say("not executable: %d\n", posix_spawn(&child, "/etc/passwd", NULL, NULL, arguments, environ));
  say("a folder: %d\n", posix_spawn(&child, "/tmp", NULL, NULL, arguments, environ));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addclose(&actions, 1);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  say("%d\n", posix_spawnp(&child, "echo", &actions, NULL, arguments, environ));
  return say_end(child);
}

static int by_shell(void)
{
  char line[64];
  say("%d\n", WEXITSTATUS(system("exit 3")));
  say("%d\n", WTERMSIG(system("kill -TERM $$")));
  FILE *pipe = popen("echo one; echo two | cat; exit 9", "r");
  while (fgets(line, sizeof(line), pipe))
    say("got %s", line);
  say("%d\n", WEXITSTATUS(pclose(pipe)));
  return 0;
}

/* ---- exec ---- */

static void script_write(const char *text, mode_t mode)
{
  int file = mkstemp(script);
  if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text) || fchmod(file, mode))
    _exit(9);
  close(file);
}

static void execute(const char *what, char *const arguments[], char *const environment[])
{
  pid_t child = fork();
  if (!child) {
    execve(what, arguments, environment);
    say("errno %d\n", errno);
    _exit(1);
  }
  say_end(child);
}

static int scripts(void)
{
  char *arguments[] = {"ignored", "one", "two words", NULL};
  char *environment[] = {"PATH=/usr/bin:/bin", "GREETING=hello", NULL};
  script_write("#!/bin/sh\necho \"$GREETING ${0##*-} has $# arguments: $1, $2\" | sed 's/ [A-Za-z0-9]* has/ it has/'\n",
               0755);
  execute(script, arguments, environment);
  unlink(script);
  strcpy(script + strlen(script) - 6, "XXXXXX");
  script_write("echo without a line\n", 0755);
  execute(script, arguments, environment);
  pid_t child = fork();
  if (!child) {
    execlp(script, script, NULL); /* tries the shell */
    _exit(1);
  }
  say_end(child);
  unlink(script);
  strcpy(script + strlen(script) - 6, "XXXXXX");
  script_write("#!/no/such/interpreter\n", 0755);
  execute(script, arguments, environment);
  unlink(script);
  return 0;
}

static int exec_fails(void)
{
  char **volatile nowhere = (char **)8;
  char *arguments[] = {"name", NULL}, *none[] = {NULL};
  static char big[200000];
  memset(big, 'x', sizeof(big) - 1);
  char *long_arguments[] = {"name", big, NULL};
  execute("/no/such/file", arguments, none);
  execute("/etc/passwd", arguments, none);
  execute("/etc/passwd/below", arguments, none);
  execute("/tmp", arguments, none);
  execute("", arguments, none);
  execute("/bin/true", long_arguments, none);
  execute((char *)nowhere, arguments, none);
  execute("/bin/true", nowhere, none);
  execute("/bin/true", arguments, nowhere);
  script_write("\177ELF and nothing else that makes sense of a program at all, so it is none", 0755);
  execute(script, arguments, none);
  unlink(script);
  say("still here\n");
  return 0;
}

static int exec_forms(void)
{
  char *arguments[] = {"program", "-say", "hello", NULL}, *none[] = {NULL};
  int file = open(self, O_RDONLY | O_CLOEXEC);
  int folder = open("/bin", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char *echo[] = {"echo", "execveat", NULL};
  if (!fork()) {
    fexecve(file, arguments, none);
    _exit(1);
  }
  wait(NULL);
  if (!fork()) {
    syscall(SYS_execveat, folder, "echo", echo, none, 0);
    _exit(1);
  }
  wait(NULL);
  if (!fork()) {
    syscall(SYS_execveat, file, "", arguments, none, AT_EMPTY_PATH);
    _exit(1);
  }
  wait(NULL);
  execute("/proc/self/exe", arguments, none);
  if (chdir("/bin"))
    return 1;
  execute("./echo", echo, none);
  execute(self, (char *[]){NULL}, none);
  return 0;
}

static int exec_chain(void)
{
  execl(self, self, "-chain", "20", NULL);
  return 1;
}

/* Descriptors: what is to be closed is closed, the rest is open. */
static int exec_descriptors(void)
{
  int open_one = dup2(open("/dev/null", O_RDONLY), 50);
  int closed = fcntl(0, F_DUPFD_CLOEXEC, 60);
  say("%d %d\n", open_one, closed);
  execl(self, self, "-descriptors", NULL);
  return 1;
}

/* All descriptors are closed before exec: ours must not be among those that count. */
static int close_all(void)
{
  syscall(SYS_close_range, 3, ~0u, 0);
  for (int i = 3; i < 1024; i++)
    close(i);
  execl(self, self, "-say", "all closed", NULL);
  return 1;
}

/* ---- the end ---- */

static int new_session(void)
{
  pid_t child = fork();
  if (!child) {
    setsid();
    if (!fork()) {
      say("in a new session: %d\n", getsid(0) == getppid());
      kill(0, SIGKILL);
    }
    for (;;)
      pause();
  }
  return say_end(child);
}

static int stopped(void)
{
  int status = 0, gate[2];
  char byte;
  if (pipe(gate))
    return 1;
  pid_t child = fork();
  if (!child) {
    raise(SIGSTOP);
    if (read(gate[0], &byte, 1) != 1) /* what the parent says comes first */
      _exit(3);
    say("goes on\n");
    _exit(2);
  }
  waitpid(child, &status, WUNTRACED);
  say("stopped %d by %d\n", WIFSTOPPED(status), WSTOPSIG(status));
  kill(child, SIGCONT);
  waitpid(child, &status, WCONTINUED);
  say("continued %d\n", WIFCONTINUED(status));
  if (write(gate[1], "", 1) != 1)
    return 1;
  return say_end(child);
}

static int orphan(void)
{
  int ends[2];
  char text[16] = "";
  if (pipe(ends))
    return 1;
  if (!fork()) {
    pid_t parent = getpid();
    if (!fork()) {
      while (getppid() == parent) /* until it is one */
        usleep(1000);
      _exit(write(ends[1], "orphan", 6) != 6);
    }
    _exit(0);
  }
  close(ends[1]);
  wait(NULL);
  ssize_t size = read(ends[0], text, sizeof(text) - 1);
  say("%zd %s\n", size, text);
  return 0;
}

static int parent_dies(void)
{
  int ends[2];
  char byte;
  if (pipe(ends))
    return 1;
  if (!fork()) {
    if (!fork()) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (write(ends[1], "r", 1) != 1)
        _exit(1);
      for (;;)
        pause();
    }
    _exit(read(ends[0], &byte, 1) != 1);
  }
  close(ends[1]);
  wait(NULL);
  say("its pipe is closed: %zd\n", read(ends[0], &byte, 1));
  return 0;
}

static int by_clone3(void)
{
  struct {
    unsigned long long flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, rest[3];
  } arguments = {.exit_signal = SIGCHLD};
  pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof(arguments));
  if (!child) {
    say("child of clone3\n");
    _exit(8);
  }
  say_end(child);
  say("%s\n", child > 0 ? "made" : "refused");
  return 0;
}

/* ---- what is executed in its place ---- */

static int again(int argc, char **argv)
{
  if (!strcmp(argv[1], "-say"))
    say("%s, %d arguments\n", argv[2], argc);
  if (!strcmp(argv[1], "-status"))
    return atoi(argv[2]);
  if (!strcmp(argv[1], "-descriptors"))
    say("50: %d, 60: %d\n", fcntl(50, F_GETFD), fcntl(60, F_GETFD));
  if (!strcmp(argv[1], "-chain") && atoi(argv[2])) {
    char left[16];
    snprintf(left, sizeof(left), "%d", atoi(argv[2]) - 1);
    execl(self, self, "-chain", left, NULL);
  }
  return 0;
}

static const struct test_case cases[] = {
  {"fork", forked},
  {"wide-numbers", wide_numbers},
  {"many-forks", many_forks},
  {"deep-forks", deep_forks},
  {"vfork", vforked},
  {"spawn", spawned},
  {"shell", by_shell},
  {"scripts", scripts},
  {"exec-fails", exec_fails},
  {"exec-forms", exec_forms},
  {"exec-chain", exec_chain},
  {"exec-descriptors", exec_descriptors},
  {"close-all", close_all},
  {"new-session", new_session},
  {"stopped", stopped},
  {"orphan", orphan},
  {"parent-dies", parent_dies},
  {"clone3", by_clone3},
};

int main(int argc, char **argv)
{
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
    return 98;
  if (argc > 1 && argv[1][0] == '-')
    return again(argc, argv);
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
