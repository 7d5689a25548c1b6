/* SPDX-License-Identifier: Apache-2.0
 *
 * longjmp: out of a few calls, several times; out of a signal handler, which then never returns to the kernel; and
 * contexts that take turns on stacks of their own.
 */
#include <setjmp.h>
#include <signal.h>
#include <ucontext.h>

static jmp_buf plain;
static sigjmp_buf saved;
static ucontext_t first, second;
static volatile int turns;

static void descend(int depth)
{
  if (depth == 0)
    longjmp(plain, 1);
  if (depth > 0)
    descend(depth - 1);
  turns = 1000; /* never: keeps the call from being a tail call */
}

static void on_signal(int signal)
{
  siglongjmp(saved, signal);
}

static void take_turns(void)
{
  for (int i = 0; i < 3; i++) {
    turns++;
    swapcontext(&second, &first);
  }
}

int main(void)
{
  static char stack[16384];
  volatile int count = 0;
  if (setjmp(plain) < 3 && count < 3) {
    count++;
    descend(count);
  }
  signal(SIGUSR1, on_signal);
  for (volatile int i = 0; i < 2; i++)
    if (sigsetjmp(saved, 1) == 0)
      raise(SIGUSR1);
  getcontext(&second);
  second.uc_stack.ss_sp = stack;
  second.uc_stack.ss_size = sizeof(stack);
  second.uc_link = &first;
  makecontext(&second, take_turns, 0);
  for (int i = 0; i < 4; i++)
    swapcontext(&first, &second);
  return !(count == 3 && turns == 3);
}
