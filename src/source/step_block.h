/* SPDX-License-Identifier: Apache-2.0
 *
 * Straight code and the ways out of it. PTRACE_SINGLEBLOCK tells where a branch went, not where it came from. The
 * source of the branch is found here: among the branches between the thread's last place and the end of the straight
 * code.
 */
#ifndef SOURCE_STEP_BLOCK_H
#define SOURCE_STEP_BLOCK_H

#include "source/tasks.h"

#define STEP_EXITS_MAX 32u

struct step_exit {
  uint64_t from, to; /* `to` 0: anywhere */
  int kind;          /* enum lb_branch_kind */
  uint8_t length;
};

struct step_block {
  size_t count;
  struct step_exit exits[STEP_EXITS_MAX]; /* in the order of their addresses */
  bool
    is_ambiguous; /* two of them lead, or may lead, to the same place, or the code is not known: step by instructions */
};

/* The code from `address` on. */
void step_block_read(struct tasks *tasks, const struct task_thread *thread, uint64_t address,
                     struct step_block *ret_block);

/* The exit that was taken if the next stop is at `to`. NULL: none can have been taken. */
const struct step_exit *step_block_find(const struct step_block *block, uint64_t to);

/* Does a conditional branch (Jcc, LOOPcc, JrCXZ) with these bytes jump, with these flags and this RCX? */
bool step_is_taken(const uint8_t *bytes, size_t size, uint64_t flags, uint64_t rcx);

#endif
