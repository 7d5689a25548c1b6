/* SPDX-License-Identifier: Apache-2.0
 *
 * The meaning of a fatal signal, in words.
 */
#include <signal.h>
#include <string.h>

#include "report/death.h"

/* Codes that all signals share have signal 0. */
static const struct {
  int signal, code;
  const char *name, *text;
} codes[] = {
#define CODE(signal, code, text)                                                                                       \
  {                                                                                                                    \
    signal, code, #code, text                                                                                          \
  }
  CODE(SIGSEGV, SEGV_MAPERR, "which is not mapped"),
  CODE(SIGSEGV, SEGV_ACCERR, "which is mapped, but not for that"),
  CODE(SIGSEGV, SEGV_PKUERR, "which a protection key forbids"),
  CODE(SIGBUS, BUS_ADRALN, "which is not aligned"),
  CODE(SIGBUS, BUS_ADRERR, "which is mapped, but lies behind the end of its file"),
  CODE(SIGBUS, BUS_OBJERR, "whose memory has an error"),
  CODE(SIGBUS, BUS_MCEERR_AR, "whose memory has an error"),
  CODE(SIGBUS, BUS_MCEERR_AO, "whose memory has an error"),
  CODE(SIGFPE, FPE_INTDIV, "an integer was divided by zero, or the quotient was too big"),
  CODE(SIGFPE, FPE_INTOVF, "an integer overflowed"),
  CODE(SIGFPE, FPE_FLTDIV, "a floating-point number was divided by zero"),
  CODE(SIGFPE, FPE_FLTOVF, "a floating-point number overflowed"),
  CODE(SIGFPE, FPE_FLTUND, "a floating-point number underflowed"),
  CODE(SIGFPE, FPE_FLTRES, "a floating-point result is not exact"),
  CODE(SIGFPE, FPE_FLTINV, "an invalid floating-point operation"),
  CODE(SIGILL, ILL_ILLOPC, "no such instruction"),
  CODE(SIGILL, ILL_ILLOPN, "no such instruction"),
  CODE(SIGILL, ILL_PRVOPC, "an instruction for the kernel only"),
  CODE(SIGTRAP, TRAP_BRKPT, "a breakpoint"),
  CODE(SIGTRAP, TRAP_TRACE, "a single step"),
  CODE(SIGTRAP, TRAP_HWBKPT, "a hardware breakpoint"),
  CODE(SIGCHLD, CLD_EXITED, "a child has exited"),
  CODE(SIGCHLD, CLD_KILLED, "a signal has killed a child"),
  CODE(SIGCHLD, CLD_DUMPED, "a signal has killed a child, which left a core file"),
  CODE(SIGCHLD, CLD_TRAPPED, "a traced child has stopped"),
  CODE(SIGCHLD, CLD_STOPPED, "a child has stopped"),
  CODE(SIGCHLD, CLD_CONTINUED, "a child runs again"),
  CODE(SIGIO, POLL_IN, "input is available"),
  CODE(SIGIO, POLL_OUT, "output is possible"),
  CODE(SIGIO, POLL_MSG, "a message is available"),
  CODE(SIGIO, POLL_ERR, "an error of input or output"),
  CODE(SIGIO, POLL_PRI, "urgent input is available"),
  CODE(SIGIO, POLL_HUP, "the other side has hung up"),
  CODE(SIGSYS, 1, "a seccomp filter forbids the system call"),
  CODE(0, SI_USER, "sent by kill(2)"),
  CODE(0, SI_TKILL, "sent to itself, or by tgkill(2)"),
  CODE(0, SI_QUEUE, "sent by sigqueue(3)"),
  CODE(0, SI_TIMER, "sent by a timer"),
  CODE(0, SI_MESGQ, "sent by a message queue"),
  CODE(0, SI_ASYNCIO, "sent by asynchronous I/O"),
  CODE(0, SI_SIGIO, "sent by I/O"),
  CODE(0, SI_KERNEL, "sent by the kernel"),
#undef CODE
};

#define CODES (sizeof(codes) / sizeof(codes[0]))

/* Returns the row, or CODES. */
static size_t code_find(int signal, int code)
{
  size_t i = 0;

  while (i < CODES && (codes[i].code != code || (codes[i].signal && codes[i].signal != signal)))
    i++;
  return i;
}

const char *death_code_name(int signal, int code)
{
  size_t row = code_find(signal, code);

  if (row == CODES)
    return NULL;
  return codes[row].signal == SIGSYS ? "SYS_SECCOMP" : codes[row].name;
}

const char *death_signal_name(int signal)
{
  return sigabbrev_np(signal);
}

/* ---- sentences ---- */

static void put_memory(struct death_printer *printer, enum analysis_access access, const char *text)
{
  static const char *const verbs[] = {[ANALYSIS_ACCESS_UNKNOWN] = "accessed",
                                      [ANALYSIS_ACCESS_READ] = "read",
                                      [ANALYSIS_ACCESS_WRITE] = "wrote to",
                                      [ANALYSIS_ACCESS_EXECUTE] = "executed"};

  death_put(printer, ": %s 0x%llx%s%s", verbs[access], (unsigned long long)printer->death->address, text ? ", " : "",
            text ? text : "");
}

static const char *branch_word(enum lb_branch_kind kind)
{
  switch (kind) {
  case LB_BRANCH_NEAR_REL_CALL:
  case LB_BRANCH_NEAR_IND_CALL:
    return "call";
  case LB_BRANCH_NEAR_REL_JMP:
  case LB_BRANCH_NEAR_IND_JMP:
    return "jmp";
  default:
    return "ret";
  }
}

void death_put_signal(struct death_printer *printer, const struct analysis_fault *fault)
{
  const struct analysis_death *death = printer->death;
  const char *description = sigdescr_np(death->signal);
  size_t row = code_find(death->signal, death->code);
  const char *text = row < CODES ? codes[row].text : NULL;
  bool is_memory = (death->signal == SIGSEGV || death->signal == SIGBUS) && death->code > 0;

  if (description)
    death_put(printer, "%s", description);
  else
    death_put(printer, "Signal %d", death->signal);
  if (fault->has_target)
    death_put(printer, ": %s wanted to go to 0x%llx, which can be no address", branch_word(fault->kind),
              (unsigned long long)fault->target);
  else if (fault->has_address)
    death_put(printer, ": used 0x%llx, which can be no address", (unsigned long long)fault->address);
  else if (is_memory && death->code == SI_KERNEL)
    death_put(printer, ": a general protection fault");
  else if (is_memory)
    put_memory(printer, fault->access, text);
  else if (text && death->code != SI_TKILL)
    death_put(printer, ": %s", text);
}
