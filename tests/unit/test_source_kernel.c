/* SPDX-License-Identifier: Apache-2.0
 *
 * The real kernel, with an event that every machine has.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "source_rig.h"

/* A dummy event: the same rings, and MMAP2, COMM, FORK and EXIT records as of the hardware's events. */
static void test_real_kernel(void **state)
{
  const struct source_options options = {0};
  const struct source_kernel *kernel = source_kernel_real();
  char *const arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                             (char *)(uintptr_t) "/bin/true; :", NULL};
  struct perf_session session = {.kernel = kernel, .kind = SOURCES};
  struct source_problem problem;
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  int process, status, r;

  (void)state;
  assert_int_equal(tasks_new(&sink, NULL, NULL, &session.tasks), 0);
  assert_int_equal(kernel->launch(kernel->data, "/bin/sh", arguments, environ, &process), 0);
  r = perf_session_open(&session, process, &options, &problem);
  if (r == -EACCES || r == -EPERM || r == -ENOSYS || r == -ENOENT) {
    kernel->drop(kernel->data, process);
    perf_session_close(&session);
    tasks_free(session.tasks);
    print_message("perf_event_open is not permitted here: %s\n", problem.text);
    skip();
  }
  assert_int_equal(r, 0);
  assert_int_equal(kernel->go(kernel->data, process), 0);
  while (waitpid(process, &status, WNOHANG) == 0)
    assert_int_equal(perf_session_step(&session, 20, false), 0);
  assert_int_equal(perf_session_step(&session, 0, true), 0);
  assert_int_equal(WEXITSTATUS(status), 0);
  /* The shell, its copy for the child, and what that executes: three address spaces. */
  assert_non_null(strstr(log.text, "module 0 "));
  assert_non_null(strstr(log.text, "module 1 "));
  assert_non_null(strstr(log.text, "module 2 "));
  assert_non_null(strstr(log.text, "/true\n"));
  assert_non_null(strstr(log.text, "sh\n"));
  assert_non_null(strstr(log.text, "[vdso]\n"));
  assert_null(strstr(log.text, "gap"));
  perf_session_close(&session);
  tasks_free(session.tasks);
}

/* The same as a source, which is asked how processes die: a shell that starts another program, handles a signal, and is
 * killed by the next. */
static void test_real_death(void **state)
{
  const struct source_options options = {.kind = SOURCES, .wants_deaths = true};
  char *const arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                             (char *)(uintptr_t) "/bin/true & wait; trap : USR1; kill -USR1 $$; kill -SEGV $$", NULL};
  struct source_problem problem;
  struct source_death death;
  struct log log = {0};
  struct source_sink sink = log_sink(&log);
  struct source *source;
  unsigned deaths = 0;
  pid_t child;
  int r;

  (void)state;
  child = fork(); /* all children of this process are waited for */
  if (child == 0) {
    r = source_start(source_kernel_real(), &options, "/bin/sh", arguments, environ, &sink, &source, &problem);
    if (r < 0)
      _exit(77);
    while (!source_state(source)->is_over)
      source_step(source, 20);
    while (source_death_next(source, &death))
      deaths +=
        death.signal == SIGSEGV && death.process == source_state(source)->process && death.code == 0 && death.rip;
    r = source_state(source)->status;
    source_free(source);
    _exit(deaths == 1 && WIFSIGNALED(r) && WTERMSIG(r) == SIGSEGV ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &r, 0), child);
  if (WIFEXITED(r) && WEXITSTATUS(r) == 77)
    skip();
  assert_true(WIFEXITED(r));
  assert_int_equal(WEXITSTATUS(r), 0);
}

PART(cmocka_unit_test(test_real_kernel), cmocka_unit_test(test_real_death));
