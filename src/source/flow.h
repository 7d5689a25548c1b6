/* SPDX-License-Identifier: Apache-2.0
 *
 * The control flow of a thread as hardware reports it: jumps in user mode, entries to the kernel and returns from it.
 * Converts it to the form that the software source records: a system call is a branch to the instruction after it, a
 * signal is a branch to its handler. Where hardware does not report system calls, they are found in the code between
 * two branches.
 */
#ifndef SOURCE_FLOW_H
#define SOURCE_FLOW_H

#include "source/tasks.h"

/* The thread enters the kernel at `from`: by a system call there, a fault or an interrupt. */
void flow_leave(struct task_thread *thread, uint64_t from);

/* The same, if the hardware may have reported neither the way to `from` nor an earlier return from the kernel. */
int flow_turn(struct tasks *tasks, struct task_thread *thread, uint64_t from);

/* It is back in user mode at `to`. */
int flow_enter(struct tasks *tasks, struct task_thread *thread, uint64_t to);

/* It continues in straight code up to `to`, which it has not executed. System calls on the way become branches. Returns
 * 1; 0: the code does not lead straight there; or negative. Unknown code is assumed to lead there. */
int flow_straight(struct tasks *tasks, struct task_thread *thread, uint64_t to);

/* It jumps in user mode. `flags` are those of a branch. */
int flow_jump(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned flags);

/* A branch of this kind that is certain: the code before it is not searched. */
int flow_branch(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                unsigned flags);

/* It has ended: by the system call that it is in, if it is in one. */
int flow_end(struct tasks *tasks, struct task_thread *thread);

/* Branches were lost, and the place of the thread is unknown. Puts a gap into the trace. */
int flow_lose(struct tasks *tasks, struct task_thread *thread, uint64_t count);

/* Addresses from here on are the kernel's. */
static inline bool flow_is_kernel(uint64_t address)
{
  return address >> 63;
}

#endif
