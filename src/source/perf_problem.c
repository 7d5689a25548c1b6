/* SPDX-License-Identifier: Apache-2.0
 *
 * The errors of perf_event_open(2) and mmap(2) in words. hardware_probe finds most problems in advance; the others show
 * when a source is started.
 */
#include "source/perf_problem.h"

#include <errno.h>
#include <stdio.h>

#include "lastbranch/error.h"

#define ADVICE_LOCK "as root: sysctl kernel.perf_event_mlock_kb=8192, or raise 'ulimit -l', or run with CAP_IPC_LOCK"
#define ADVICE_FILES "raise 'ulimit -n': there is one event for each processor"
#define ADVICE_BUSY "end the program that uses it (perf, a debugger, the NMI watchdog), and try again"
#define ADVICE_SOFTWARE "--source software records everything, without hardware"

static const char *what_is_wrong(enum perf_stage stage, int error, const char **ret_advice)
{
  *ret_advice = ADVICE_SOFTWARE;
  if (stage == PERF_PROBLEM_RING || stage == PERF_PROBLEM_AUX) {
    if (error == -EPERM) {
      *ret_advice = ADVICE_LOCK;
      return "the limit on locked memory does not leave room for its buffers";
    }
    if (error == -EOPNOTSUPP)
      return "the kernel has no trace memory for it";
  }
  switch (error) {
  case -EMFILE:
  case -ENFILE:
    *ret_advice = ADVICE_FILES;
    return "too many files are open";
  case -EBUSY:
    *ret_advice = ADVICE_BUSY;
    return "it is in use";
  case -EACCES:
  case -EPERM:
    *ret_advice = "as root: sysctl kernel.perf_event_paranoid=1, or run with CAP_PERFMON";
    return "the kernel does not permit it";
  case -ENOSYS:
    return "there is no perf_event_open here: the kernel lacks it, or a seccomp filter hides it";
  case -ENOENT:
  case -ENODEV:
    return "the kernel has no such device";
  case -EINVAL:
  case -EOPNOTSUPP:
    return "the kernel's driver for this processor does not offer it";
  case -ENOSPC:
    *ret_advice = ADVICE_BUSY;
    return "all counters are in use";
  default:
    return lb_strerror(error);
  }
}

int perf_problem(struct source_problem *ret_problem, enum source_kind kind, enum perf_stage stage, int error)
{
  const char *advice, *text = what_is_wrong(stage, error, &advice);

  snprintf(ret_problem->text, sizeof(ret_problem->text), "%s cannot be recorded: %s",
           kind < SOURCES ? source_title(kind) : "the program", text);
  ret_problem->advice = advice;
  return error;
}
