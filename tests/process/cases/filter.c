/* SPDX-License-Identifier: Apache-2.0
 *
 * Programs that forbid themselves system calls by seccomp(2): the recorder's own calls must not be what kills them.
 * Where filters are not permitted, that is said.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "case.h"

enum { CALLS_MAX = 32 };

/* A filter that allows these and does `action` with the rest. Returns 0, or 1 after saying why not. */
static int filter_set(const int *calls, unsigned count, unsigned action)
{
  struct sock_filter code[CALLS_MAX * 2 + 2];
  unsigned length = 0;
  code[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned i = 0; i < count; i++) {
    code[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i], 0, 1);
    code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
  struct sock_fprog program = {.len = (unsigned short)length, .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
    say("skip: no filters here\n");
    return 1;
  }
  return 0;
}

static unsigned volatile sink;

/* Code that was not executed before, in several functions of the library. */
static void compute(void)
{
  char text[64];
  snprintf(text, sizeof(text), "%d %x %s %.3f", 42, 0xBEEF, "computed", 1.5);
  sink += (unsigned)strlen(text) + (unsigned)strtol("123", NULL, 10) + (unsigned)abs(-5);
  say("%s\n", text);
}

/* read, write, exit and rt_sigreturn, nothing else. */
static int strict(void)
{
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) {
    say("skip: no strict mode here\n");
    return 0;
  }
  compute();
  for (;;)
    syscall(SYS_exit, 12);
}

static int strict_violated(void)
{
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT)) {
    say("skip: no strict mode here\n");
    return 0;
  }
  say("before\n");
  syscall(SYS_getpid);
  say("behind\n");
  return 0;
}

static int list(void)
{
  static const int calls[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn};
  if (!filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_KILL_PROCESS))
    compute();
  _exit(13);
}

static int list_violated(void)
{
  static const int calls[] = {SYS_read, SYS_write, SYS_exit_group};
  if (filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_KILL_PROCESS))
    return 0;
  say("before\n");
  syscall(SYS_getppid);
  say("behind\n");
  return 0;
}

static int refused(void)
{
  static const int calls[] = {SYS_read, SYS_write, SYS_exit_group};
  if (filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_ERRNO | 77))
    return 0;
  errno = 0;
  long result = syscall(SYS_getppid);
  say("%ld errno %d\n", result, errno);
  result = syscall(SYS_mmap, 0, 4096, 3, 0x22, -1, 0);
  say("%ld errno %d\n", result, errno);
  compute();
  _exit(14);
}

static void on_call(int signal, siginfo_t *info, void *context)
{
  greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
  say("signal %d code %d call %d, behind it: %d\n", signal, info->si_code, info->si_syscall,
      (greg_t)info->si_call_addr == registers[REG_RIP]);
  registers[REG_RAX] = 4711;
}

/* The call is answered by the program itself. */
static int trapped(void)
{
  static const int calls[] = {SYS_read, SYS_write, SYS_exit_group, SYS_rt_sigreturn};
  struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO};
  sigaction(SIGSYS, &action, NULL);
  if (filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_TRAP))
    return 0;
  long result = syscall(SYS_getppid);
  say("%ld\n", result);
  result = syscall(12345);
  say("%ld\n", result);
  _exit(15);
}

static void *thread_run(void *argument)
{
  compute();
  return argument;
}

/* A list as programs have it: memory, threads and signals are allowed. */
static int usual(void)
{
  static const int calls[] = {SYS_read,
                              SYS_write,
                              SYS_exit,
                              SYS_exit_group,
                              SYS_rt_sigreturn,
                              SYS_mmap,
                              SYS_munmap,
                              SYS_mprotect,
                              SYS_brk,
                              SYS_futex,
                              SYS_clone,
                              SYS_clone3,
                              SYS_set_robust_list,
                              SYS_rseq,
                              SYS_rt_sigprocmask,
                              SYS_rt_sigaction,
                              SYS_madvise,
                              SYS_fstat,
                              SYS_gettid,
                              SYS_getpid,
                              SYS_tgkill};
  pthread_t thread;
  if (filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_KILL_PROCESS))
    return 0;
  for (int i = 0; i < 3; i++) {
    pthread_create(&thread, NULL, thread_run, NULL);
    pthread_join(thread, NULL);
  }
  free(malloc(1 << 20));
  return 0;
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
  (void)signal, (void)info;
  ((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
  say("repaired\n");
}

static int fault(void)
{
  static const int calls[] = {SYS_write, SYS_exit_group, SYS_rt_sigreturn};
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
  sigaction(SIGILL, &action, NULL);
  if (filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_KILL_PROCESS))
    return 0;
  __asm__ volatile("ud2");
  __asm__ volatile("ud2");
  _exit(16);
}

/* A child that may not do much, as sandboxes have it; its parent may. */
static int child(void)
{
  static const int calls[] = {SYS_write, SYS_exit_group};
  int status = 0;
  pid_t made = fork();
  if (!made) {
    if (!filter_set(calls, ARRAY_LENGTH(calls), SECCOMP_RET_KILL_PROCESS))
      compute();
    _exit(17);
  }
  waitpid(made, &status, 0);
  say("%d %d\n", WIFEXITED(status), WEXITSTATUS(status));
  return 0;
}

static int across_exec(void)
{
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_uname, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {.len = ARRAY_LENGTH(code), .filter = code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)) {
    say("skip: no filters here\n");
    return 0;
  }
  execlp("uname", "uname", NULL);
  return 1;
}

static const struct test_case cases[] = {
  {"strict", strict},   {"strict-violated", strict_violated},
  {"list", list},       {"list-violated", list_violated},
  {"refused", refused}, {"trapped", trapped},
  {"usual", usual},     {"fault", fault},
  {"child", child},     {"across-exec", across_exec},
};

int main(int argc, char **argv)
{
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
