/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that signal.c, signal_deliver.c and signal_call.c share. The flow: the kernel calls signal_arrived,
 * which brings the thread to a place where the application's registers are known and are in its state; from there
 * start.S calls signal_deliver on the runtime's stack, which runs the handler in the cache, or ends the process.
 */
#ifndef PROCESS_RUNTIME_SIGNAL_H
#define PROCESS_RUNTIME_SIGNAL_H

#include <linux/signal.h>

/* Hidden, so that addresses of functions are compared without a GOT, which no loader would fill in. */
#pragma GCC visibility push(hidden)
#include "process/runtime/runtime.h"

#define SIGNAL_BIT(number) (1ull << ((number)-1))

/* Signals that an instruction can cause. They are never blocked or ignored in the kernel: a fault whose signal is
 * blocked kills the process, and the runtime needs them itself. If the application blocks one and it is sent, the
 * thread keeps it. */
#define SIGNALS_FAULT                                                                                                  \
  (SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) | SIGNAL_BIT(SIGSEGV) |          \
   SIGNAL_BIT(SIGSYS))

#define SIGNALS_NEVER (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP)) /* blocked */

enum { HANDLER_DEFAULT, HANDLER_IGNORE };

/* si_code */
enum { CODE_USER = 0, CODE_KERNEL = 0x80, CODE_ACCESS = 2, CODE_TRACE = 2, CODE_SECCOMP = 1 };

/* The signal for a thread that must leave an old part of the cache, or, from lbr, the cache itself. */
enum { SIGNAL_NUDGE = SIGSYS, CODE_NUDGE = -0x4C4252, CODE_LEAVE = ATTACH_CODE_LEAVE };

enum { FLAG_TF = 1 << 8, FLAG_DF = 1 << 10, FLAG_RF = 1 << 16, FLAGS_OURS = 0x202 };

/* The effect of SIG_DFL. */
enum signal_default { DEFAULT_END, DEFAULT_IGNORE, DEFAULT_STOP };

static inline enum signal_default signal_default(unsigned number)
{
  if (number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH)
    return DEFAULT_IGNORE;
  return number >= SIGSTOP && number <= SIGTTOU ? DEFAULT_STOP : DEFAULT_END;
}

/* ---- signal.c ---- */

/* Convert between the register order of the kernel's frame and that of the encoding. */
void context_put_registers(struct signal_context *context, const uint64_t registers[16]);
void context_get_registers(const struct signal_context *context, uint64_t registers[16]);

/* ---- signal_resume.S ---- */

void context_restore(struct signal_context *context, uint64_t pending);
extern uint8_t context_restore_start[], context_restore_call[], context_restore_abort[];

/* ---- signal_call.c ---- */

/* Blocks all signals, as long as nothing can fault. */
void signal_hold_all(void);

/* The same without SIGTRAP. */
void signal_hold_most(void);

/* Is there a signal to deliver? */
bool signal_is_ready(const struct thread *thread);

/* The signals that the kernel should block now: while one is pending, all others. */
uint64_t signal_real_mask(const struct thread *thread);

/* Sets the application's mask, and the kernel's accordingly; kept signals that are now unblocked are sent again. */
void signal_set_mask(struct thread *thread, uint64_t mask);

/* Sends the signal to this thread, or, if that is how it came, to the process. Returns false if the kernel refuses. */
bool signal_send(unsigned number, const struct signal_info *info);
bool signal_send_thread(unsigned number, const struct signal_info *info);

/* Installs the kernel's action that corresponds to the application's. */
void signal_install(unsigned number, const struct signal_action *action);

/* Index of one of SIGNALS_FAULT in thread->kept. */
unsigned signal_kept_index(unsigned number);

/* ---- signal_deliver.c ---- */

/* Is the address on the alternate stack, so that a further signal stays on it? */
bool stack_is_used(const struct signal_stack *stack, uint64_t address);

/* Returns a context in which the runtime continues at one of its own addresses, with vector registers as at the start
 * of a program. */
struct signal_context context_at(void (*address)(void), uint64_t mask);

/* Makes the kernel restore the context, with the thread's own signal stack. */
_Noreturn void context_resume(const struct thread *thread, struct signal_context *context);

/* The same, unless a signal has arrived before. In that case it returns, and the signal is pending. */
void context_try_resume(const struct thread *thread, struct signal_context *context);

/* Copies to the application's memory, even where the runtime protects its code. Returns false if it faults. */
bool signal_write(struct thread *thread, uint64_t to, const void *from, size_t size);

#pragma GCC visibility pop
#endif
