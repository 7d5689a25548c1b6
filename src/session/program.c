/* SPDX-License-Identifier: Apache-2.0
 *
 * The common part of lbr run and lbr record: before the program is started, and after its end.
 */
#include "session/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "session/relay.h"

/* ---- its path ---- */

/* Returns 0, -EACCES if the file exists but is not executable, -ENOENT, or another -errno. */
static int path_check(const char *path)
{
  struct stat status;

  if (stat(path, &status) < 0)
    return -errno;
  return S_ISREG(status.st_mode) && access(path, X_OK) == 0 ? 0 : -EACCES;
}

/* Returns 0 or -errno. */
static int path_find(const char *name, char **ret_path)
{
  const char *folders = getenv("PATH"), *end;
  int found = -ENOENT;

  if (strchr(name, '/') || !*name) {
    *ret_path = strdup(name);
    return *ret_path ? 0 : -ENOMEM;
  }
  if (!folders)
    folders = "/bin:/usr/bin";
  for (;; folders = end + 1) {
    char *path;

    end = strchrnul(folders, ':');
    if (asprintf(&path, "%.*s%s%s", (int)(end - folders), folders, end > folders ? "/" : "", name) < 0)
      return -ENOMEM;
    int r = path_check(path);
    if (r == 0) {
      *ret_path = path;
      return 0;
    }
    free(path);
    if (r == -EACCES)
      found = r;
    if (!*end)
      return found;
  }
}

int program_find(const char *name, char **ret_path)
{
  switch (path_find(name, ret_path)) {
  case 0:
    return 0;
  case -ENOENT:
    message("%s: no such program", name);
    return PROGRAM_NOT_FOUND;
  case -EACCES:
    message("%s: no permission to execute it", name);
    return PROGRAM_NO_EXECUTE;
  default:
    message("no memory");
    return PROGRAM_FAILURE;
  }
}

/* ---- its start ---- */

#define PERSONALITY_QUERY 0xFFFFFFFFu /* personality(2) changes nothing then */

static int persona; /* the original value */
static bool is_persona_changed;

/* personality(2): ADDR_NO_RANDOMIZE is inherited by fork and kept by execve. It does not move existing mappings. */
int program_aslr_set(enum program_aslr aslr, enum source_kind source, const char *name)
{
  if (aslr == ASLR_ON || (aslr == ASLR_AUTO && source != SOURCE_SOFTWARE))
    return 0;
  persona = personality(PERSONALITY_QUERY);
  if (persona >= 0 && personality((unsigned long)persona | ADDR_NO_RANDOMIZE) >= 0) {
    is_persona_changed = true;
    return 0;
  }
  if (aslr == ASLR_AUTO)
    return 0;
  message("%s cannot be started without address randomisation: personality(2): %s; the seccomp filter of a container "
          "may forbid it: run it without --no-aslr, or allow personality in the filter",
          name, strerror(errno));
  return PROGRAM_FAILURE;
}

void program_aslr_restore(void)
{
  if (is_persona_changed)
    personality((unsigned long)persona);
  is_persona_changed = false;
}

static struct rlimit file_limit; /* the original value */
static bool is_raised;

static void file_limit_restore(void)
{
  if (is_raised)
    setrlimit(RLIMIT_FSIZE, &file_limit);
}

/* Without the right to raise the hard limit, the soft limit is raised as far as the hard one. */
static void file_limit_raise(void)
{
  struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY}, most;

  if (getrlimit(RLIMIT_FSIZE, &file_limit) < 0 || file_limit.rlim_cur == RLIM_INFINITY)
    return;
  most = (struct rlimit){file_limit.rlim_max, file_limit.rlim_max};
  is_raised = setrlimit(RLIMIT_FSIZE, &none) == 0 || setrlimit(RLIMIT_FSIZE, &most) == 0;
}

static void child_begin(void)
{
  file_limit_restore();
  relay_begin();
}

int program_launch(const struct process_options *options, const char *path, char *const arguments[],
                   struct process *ret_process)
{
  struct process_options own = *options;
  int r;

  own.begin = child_begin;
  file_limit_raise();
  r = process_launch(&own, path, arguments, environ, ret_process);
  file_limit_restore();
  is_raised = false;
  if (r == -EFBIG)
    message("%s cannot be started: the hard limit of file sizes (ulimit -H -f) is too small for the memory that lbr "
            "shares with it",
            arguments[0]);
  else if (r < 0)
    message("%s cannot be started: %s", arguments[0], lb_strerror(r));
  return r;
}

/* ---- its end ---- */

/* Shows errors of the program as its own, and other errors as those of lbr. */
void program_show_error(const struct process *process, const char *name, int status)
{
  int system_error;
  uint64_t address, number;
  unsigned error = process_error(process, &system_error, &address, &number);
  int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  char why[128] = "";

  if (process_is_destroyed(process)) {
    message("%s: the program overwrote the log that it shares with lbr", name);
    return;
  }
  if (!error)
    return;
  if (system_error < 0 && system_error > -4096)
    snprintf(why, sizeof(why), " (%s)", strerror(-system_error));
  if (code == PROGRAM_NO_EXECUTE || code == PROGRAM_NOT_FOUND)
    message("%s: %s%s", name, process_error_text(error), why);
  else
    message("%s: %s%s, at 0x%llx, number %llu: a limit of lbr, not of the program; please report it",
            code == PROGRAM_FAILURE ? name : "a process that it started", process_error_text(error), why,
            (unsigned long long)address, (unsigned long long)number);
}

int program_status_without_trace(int status)
{
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? PROGRAM_FAILURE : 0;
}

/* A core file of lbr would overwrite the program's. */
int program_pass_on(int status)
{
  const struct rlimit none = {0, 0};
  sigset_t set;

  if (!WIFSIGNALED(status))
    return WIFEXITED(status) ? WEXITSTATUS(status) : PROGRAM_FAILURE;
  int signal_number = WTERMSIG(status);
  fflush(NULL);
  setrlimit(RLIMIT_CORE, &none);
  signal(signal_number, SIG_DFL);
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  sigprocmask(SIG_UNBLOCK, &set, NULL);
  raise(signal_number);
  return 128 + signal_number;
}
