/* SPDX-License-Identifier: Apache-2.0
 *
 * The way of a thread through its code, as hardware tells it: jumps in user mode, and where it goes into the kernel and
 * comes back. Makes of it what the software source records: a system call is a branch to the instruction behind it, a
 * signal is one to its handler. Where hardware leaves system calls out, the code between two branches shows them.
 */
#ifndef SOURCE_FLOW_H
#define SOURCE_FLOW_H

#include "source/world.h"

/* The thread enters the kernel at `from`: by a system call there, a fault or an interrupt. */
void flow_leave(struct world_thread *thread, uint64_t from);

/* The same, where it need not be said how it comes to `from`, nor that it came back from the kernel before. */
int flow_turn(struct world *world, struct world_thread *thread, uint64_t from);

/* It is back in user mode at `to`. */
int flow_enter(struct world *world, struct world_thread *thread, uint64_t to);

/* It goes on in straight code up to `to`, which it has not executed: system calls on the way become branches. Returns
 * 1; 0: the code does not lead there straight; or negative. Where the code is not known, it is believed. */
int flow_straight(struct world *world, struct world_thread *thread, uint64_t to);

/* It jumps in user mode. `flags` are those of a branch. */
int flow_jump(struct world *world, struct world_thread *thread, uint64_t from, uint64_t to, unsigned flags);

/* A branch of this kind that is certain: nothing is looked for between. */
int flow_branch(struct world *world, struct world_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                unsigned flags);

/* It has ended: by the system call that it is in, if it is in one. */
int flow_end(struct world *world, struct world_thread *thread);

/* Nobody knows where it is: branches were lost. Puts a gap into the trace. */
int flow_lose(struct world *world, struct world_thread *thread, uint64_t count);

/* Addresses from here on are the kernel's. */
static inline bool flow_is_kernel(uint64_t address)
{
  return address >> 63;
}

#endif
