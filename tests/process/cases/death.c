/* SPDX-License-Identifier: Apache-2.0
 *
 * The ends of a program: exit statuses (`death exit N`), signals that it sends itself (`death signal N`), and faults.
 */
#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "case.h"

static int by_abort(void)
{
  abort();
}

static int by_assert(void)
{
  volatile int one = 1;
  assert(one == 2);
  return 0;
}

static void on_exit_say(void)
{
  say("at exit\n");
}

static int by_exit(void)
{
  atexit(on_exit_say);
  exit(3);
}

static int by_quick_exit(void)
{
  atexit(on_exit_say);
  _exit(4);
}

static int by_null(void)
{
  *(volatile int *volatile)NULL = 1;
  return 0;
}

static int by_jump_to_null(void)
{
  ((void (*volatile)(void))NULL)();
  return 0;
}

static int by_jump_to_data(void)
{
  static char data[16] = {(char)0xC3};
  ((void (*volatile)(void))(uintptr_t)data)();
  return 0;
}

static int by_return_to_nowhere(void)
{
  __asm__ volatile("pushq $0x1234; ret");
  return 0;
}

static int by_illegal(void)
{
  __asm__ volatile("ud2");
  return 0;
}

static int by_breakpoint(void)
{
  __asm__ volatile("int3");
  return 0;
}

static int by_division(void)
{
  __asm__ volatile("xor %%edx, %%edx; xor %%ecx, %%ecx; mov $1, %%eax; div %%ecx" ::: "eax", "ecx", "edx");
  return 0;
}

static int by_privilege(void)
{
  __asm__ volatile("cli");
  return 0;
}

#pragma GCC diagnostic ignored "-Winfinite-recursion" /* it ends with the stack */
static unsigned recurse(unsigned depth)
{
  volatile char room[1000];
  room[depth % sizeof(room)] = 1;
  return recurse(depth + 1) + (unsigned)room[0];
}

static int by_recursion(void)
{
  setrlimit(RLIMIT_STACK, &(struct rlimit){1 << 20, 1 << 20});
  return (int)recurse(0);
}

static void on_fault(int signal)
{
  say("handler of %d\n", signal);
  *(volatile int *volatile)NULL = 1; /* its signal is blocked now */
}

static int in_handler(void)
{
  signal(SIGSEGV, on_fault);
  return by_null();
}

/* A handler whose stack is none. */
static int bad_stack(void)
{
  stack_t stack = {.ss_sp = (void *)4096, .ss_size = 65536};
  struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
  return 0;
}

/* A signal that is blocked or ignored cannot be, when an instruction causes it. */
static int ignored(void)
{
  signal(SIGSEGV, SIG_IGN);
  return by_null();
}

/* Once more with the default action, as programs do that report a crash. */
static void on_again(int signal)
{
  say("reported %d\n", signal);
  struct sigaction action = {.sa_handler = SIG_DFL};
  sigaction(signal, &action, NULL);
}

static int reported(void)
{
  signal(SIGSEGV, on_again);
  return by_null();
}

static int by_raise(void)
{
  signal(SIGABRT, on_again);
  abort();
}

static int stack_smashed(void)
{
  execlp("sh", "sh", "-c", "kill -SEGV $$", NULL);
  return 1;
}

static int group(void)
{
  setpgid(0, 0);
  kill(0, SIGTERM);
  for (;;)
    pause();
  return 0;
}

/* By rt_sigreturn with a frame that makes no sense. */
static int bad_return(void)
{
  __asm__ volatile("mov $15, %%eax; mov $4096, %%esp; syscall" ::: "rax", "rcx", "r11", "memory");
  return 0;
}

static const struct test_case cases[] = {
  {"abort", by_abort},
  {"assert", by_assert},
  {"exit-handlers", by_exit},
  {"no-handlers", by_quick_exit},
  {"null", by_null},
  {"jump-to-null", by_jump_to_null},
  {"jump-to-data", by_jump_to_data},
  {"return-to-nowhere", by_return_to_nowhere},
  {"illegal", by_illegal},
  {"breakpoint", by_breakpoint},
  {"division", by_division},
  {"privilege", by_privilege},
  {"recursion", by_recursion},
  {"in-handler", in_handler},
  {"bad-stack", bad_stack},
  {"ignored", ignored},
  {"reported", reported},
  {"abort-handled", by_raise},
  {"child-shell", stack_smashed},
  {"group", group},
  {"bad-return", bad_return},
};

int main(int argc, char **argv)
{
  if (argc == 3 && !strcmp(argv[1], "exit"))
    return atoi(argv[2]);
  if (argc == 3 && !strcmp(argv[1], "signal")) {
    syscall(SYS_kill, getpid(), atoi(argv[2]));
    say("still here\n");
    return 0;
  }
  return case_main(cases, ARRAY_LENGTH(cases), argc, argv);
}
