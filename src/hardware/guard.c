/* SPDX-License-Identifier: Apache-2.0
 *
 * Restores the registers when a signal ends the program. The handler blocks every other signal, runs on a stack of its
 * own and only reads and writes registers, by pread and pwrite; then the signal has its usual effect. SIGKILL cannot be
 * handled.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hardware/registers.h"

static const struct {
  int number;
  bool is_request; /* a request of the user to end */
} signals[] = {
  {SIGINT, true},   {SIGTERM, true},  {SIGHUP, true},     {SIGQUIT, false}, {SIGPIPE, false},
  {SIGALRM, false}, {SIGUSR1, false}, {SIGUSR2, false},   {SIGXCPU, false}, {SIGXFSZ, false},
  {SIGSEGV, false}, {SIGBUS, false},  {SIGFPE, false},    {SIGILL, false},  {SIGABRT, false},
  {SIGTRAP, false}, {SIGSYS, false},  {SIGVTALRM, false}, {SIGPROF, false},
};

#define SIGNALS (sizeof(signals) / sizeof(*signals))

static struct hardware_undo *volatile guarded;
static volatile sig_atomic_t guard_exits;
static struct sigaction guard_before[SIGNALS];
static stack_t stack_before;
static char guard_stack[64 * 1024];

static bool is_request(int number)
{
  for (size_t i = 0; i < SIGNALS; i++)
    if (signals[i].number == number)
      return signals[i].is_request;
  return false;
}

static void guard_handle(int number)
{
  struct hardware_undo *undo = guarded;

  if (undo)
    hardware_undo_to(undo, 0);
  if (guard_exits && is_request(number))
    _exit(0);
  signal(number, SIG_DFL);
  raise(number); /* delivered when the handler returns, which unblocks it */
}

void hardware_guard_begin(struct hardware_undo *undo, int exits)
{
  const stack_t stack = {.ss_sp = guard_stack, .ss_size = sizeof(guard_stack)};
  struct sigaction action = {.sa_handler = guard_handle, .sa_flags = SA_ONSTACK};

  guarded = undo;
  guard_exits = exits;
  sigaltstack(&stack, &stack_before);
  sigfillset(&action.sa_mask);
  for (size_t i = 0; i < SIGNALS; i++) {
    sigaction(signals[i].number, NULL, &guard_before[i]);
    if (guard_before[i].sa_handler != SIG_IGN)
      sigaction(signals[i].number, &action, NULL);
  }
}

void hardware_guard_end(void)
{
  for (size_t i = 0; i < SIGNALS; i++)
    sigaction(signals[i].number, &guard_before[i], NULL);
  guarded = NULL;
  sigaltstack(&stack_before, NULL);
}
