/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests whether PTRACE_SINGLEBLOCK really steps from branch to branch. The kernel accepts the request if it believes
 * that DEBUGCTL.BTF exists. If the bit has no effect, as under many hypervisors, only EFLAGS.TF works and the tracee
 * stops after every instruction (Intel SDM vol. 3 (June 2016) 17.4.3). The test counts the stops of a child in a loop
 * of known length. The child kills itself after a second, so that no wait here lasts longer.
 */
#include "hardware/blockstep.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
#define IP_PLACE offsetof(struct user_regs_struct, rip)
#elif defined(__i386__)
#define IP_PLACE offsetof(struct user_regs_struct, eip)
#endif

#ifdef IP_PLACE

enum {
  TRIAL_ROUNDS = 8,
  TRIAL_ROUND_LENGTH = 6, /* instructions */
  TRIAL_STOPS_MAX = 200,
};

/* Between its two breakpoints: one MOV, then eight rounds of four NOPs, DEC and JNZ, which is taken seven times. */
void hardware_trial(void) __attribute__((visibility("hidden")));
extern const char hardware_trial_begin[] __attribute__((visibility("hidden")));
extern const char hardware_trial_end[] __attribute__((visibility("hidden")));

__asm__(".pushsection .text\n"
        ".globl hardware_trial, hardware_trial_begin, hardware_trial_end\n"
        ".hidden hardware_trial, hardware_trial_begin, hardware_trial_end\n"
        ".type hardware_trial, @function\n"
        "hardware_trial:\n"
        "  int3\n"
        "hardware_trial_begin:\n"
        "  movl $8, %ecx\n"
        "1:\n"
        "  nop\n"
        "  nop\n"
        "  nop\n"
        "  nop\n"
        "  decl %ecx\n"
        "  jnz 1b\n"
        "  int3\n"
        "hardware_trial_end:\n"
        "  ret\n"
        ".size hardware_trial, . - hardware_trial\n"
        ".popsection\n");

/* The exit status passes the errno of a refused PTRACE_TRACEME to the parent. */
static void child_run(void)
{
  sigset_t alarm_only;

  signal(SIGALRM, SIG_DFL);
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
  alarm(1);
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
    _exit(errno);
  hardware_trial();
  _exit(0);
}

/* Waits for the next stop. Returns 0 with the instruction pointer, or -errno if the child is gone or stopped for
 * another reason than a trap. Sets `*is_gone` if there is nothing left to kill. */
static int child_wait(pid_t child, bool *is_gone, uintptr_t *ret_ip)
{
  int status;
  long ip;

  while (waitpid(child, &status, __WALL) < 0)
    if (errno != EINTR) {
      *is_gone = errno == ECHILD;
      return -errno;
    }
  if (WIFEXITED(status) || WIFSIGNALED(status)) {
    *is_gone = true;
    return WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : -EPERM;
  }
  if (WSTOPSIG(status) != SIGTRAP)
    return WSTOPSIG(status) == SIGALRM ? -ETIMEDOUT : -EPROTO;
  errno = 0;
  ip = ptrace(PTRACE_PEEKUSER, child, (void *)IP_PLACE, NULL);
  if (errno)
    return -errno;
  *ret_ip = (uintptr_t)ip;
  return 0;
}

/* From the first breakpoint to the second. Returns the number of stops between them, or -errno. */
static int child_step(pid_t child, bool *is_gone)
{
  uintptr_t ip = 0;
  int stops;
  int r;

  r = child_wait(child, is_gone, &ip);
  if (r < 0)
    return r;
  if (ip != (uintptr_t)hardware_trial_begin)
    return -EPROTO;
  for (stops = 0; stops < TRIAL_STOPS_MAX; stops++) {
    if (ptrace(PTRACE_SINGLEBLOCK, child, NULL, NULL) < 0)
      return -errno;
    r = child_wait(child, is_gone, &ip);
    if (r < 0)
      return r;
    if (ip == (uintptr_t)hardware_trial_end)
      return stops;
  }
  return -ELOOP;
}

static void child_kill(pid_t child)
{
  kill(child, SIGKILL);
  while (waitpid(child, NULL, __WALL) < 0 && errno == EINTR)
    ;
}

int blockstep_try(struct hardware_steps *ret_steps)
{
  bool is_gone = false;
  pid_t child;
  int r;

  child = fork();
  if (child < 0)
    return -errno;
  if (child == 0)
    child_run();
  r = child_step(child, &is_gone);
  if (!is_gone)
    child_kill(child);
  if (r < 0)
    return r;
  *ret_steps = (struct hardware_steps){
    .stops = (unsigned)r,
    .branches = TRIAL_ROUNDS - 1,
    .instructions = 1 + TRIAL_ROUNDS * TRIAL_ROUND_LENGTH,
  };
  return 0;
}

#else

int blockstep_try(struct hardware_steps *ret_steps)
{
  (void)ret_steps;
  return -ENOSYS;
}

#endif
