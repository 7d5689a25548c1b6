/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals as the kernel has them: actions, stacks, and the frame that it puts on a stack. runtime.h includes this
 * header.
 */
#ifndef PROCESS_RUNTIME_SIGNAL_FRAME_H
#define PROCESS_RUNTIME_SIGNAL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum { SIGNALS = 65, SIGNALS_KEPT = 6, SIGNAL_VECTORS_MOST = 16384 };

struct signal_action {
  uint64_t handler, flags, restorer, mask;
};

/* The actions that the application has set. Shared by the threads of a process; a child of vfork has its own. */
struct signal_table {
  struct signal_action actions[SIGNALS];
};

/* The kernel's stack_t, siginfo_t and struct ucontext. */
struct signal_stack {
  uint64_t start;
  uint32_t flags;
  uint32_t unused;
  uint64_t size;
};

struct signal_info {
  int32_t number, error, code, unused;
  uint64_t address; /* or something else, depending on the signal */
  uint64_t rest[13];
};

struct signal_context {
  uint64_t flags, link;
  struct signal_stack stack;
  uint64_t general[16]; /* R8 to R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP */
  uint64_t rip, rflags, segments, error, trap, old_mask, cr2;
  uint64_t vectors; /* address of what XSAVE saved, 0: nothing */
  uint64_t reserved[8];
  uint64_t mask;
};

_Static_assert(sizeof(struct signal_info) == 128 && sizeof(struct signal_context) == 304, "");

/* A signal that waits until the application is at a place where it can be delivered. Meanwhile, the kernel blocks all
 * other signals except those that an instruction can cause. */
struct signal_pending {
  uint32_t number; /* 0: none */
  bool is_fault;   /* caused by an instruction of the application: it cannot be blocked or ignored */
  bool is_trap;    /* a trap: it arrives after the instruction at state->rip */
  struct signal_info info;
  struct signal_context context; /* from the newest frame of the kernel, */
  uint32_t vector_size;          /* and the vector registers: the application's, until a handler or rt_sigreturn */
  uint8_t vectors[SIGNAL_VECTORS_MOST] __attribute__((aligned(64)));
};

#endif
