/* SPDX-License-Identifier: Apache-2.0
 *
 * One stopped thread of the program that the oracle steps: its registers, the instruction it is about to execute, and
 * how to let it go on by one instruction without its noticing. Stops: ptrace(2). See oracle.c.
 */
#ifndef TRACEE_H
#define TRACEE_H

#include <sys/types.h>
#include <sys/user.h>

#include "isa/isa.h"

#define EFLAGS_TF 0x100u

/* An instruction in the memory of a thread. */
struct step {
  uint64_t address;
  int length; /* negative: no bytes there, or none that Zydis knows */
  int kind;   /* enum lb_branch_kind, or -1 */
  struct isa_instruction code;
};

struct tracee {
  pid_t id;
  unsigned number;     /* in order of creation, from 1; 0: its creator has not told yet */
  unsigned creator;    /* a number */
  const char *manner;  /* "fork", "vfork" or "clone" */
  bool has_stopped;    /* at least once: a new thread begins with a SIGSTOP that nobody sent */
  bool is_in_call;     /* between the two stops of a system call */
  bool is_sigreturn;   /* and the call is rt_sigreturn */
  bool is_interrupted; /* its call ended with ERESTART...: a handler comes, or the kernel does the call again */
  bool owns_trap_flag; /* the program set TF itself; what the registers say is not to be trusted, see tracee_resume */
  bool blocks_trap;    /* SIGTRAP is in its mask, but we took it out */
  bool is_mask_stale;  /* the mask may have changed since we looked */
  struct user_regs_struct registers;
  struct step next; /* at registers.rip */
  struct tracee *link;
};

/* Reads the registers and the instruction at RIP. Returns 0 or -errno. */
int tracee_look(struct tracee *tracee);

/* The instruction at `address`. */
void tracee_decode(const struct tracee *tracee, uint64_t address, struct step *ret_step);

/* Reads or writes bytes of its memory; all of them or -1. */
int tracee_read(const struct tracee *tracee, uint64_t address, void *bytes, size_t size);
int tracee_write(const struct tracee *tracee, uint64_t address, const void *bytes, size_t size);

/* Lets it go on, with a signal unless that is 0, to the next stop: after one instruction, at the first of a handler, or
 * before and after a system call. */
int tracee_resume(struct tracee *tracee, int signal);

bool step_is_call(const struct step *step);       /* SYSCALL, INT 0x80 */
bool step_is_breakpoint(const struct step *step); /* INT3, INT1 */
bool step_loads_ss(const struct step *step);      /* the trap of this step comes one instruction later */
bool step_stores_flags(const struct step *step);  /* PUSHF */
bool step_loads_flags(const struct step *step);   /* POPF, IRET */
bool step_is_taken(const struct step *step, const struct user_regs_struct *registers); /* of a conditional branch */
uint64_t step_target(const struct step *step);                                         /* of a relative branch */

#endif
