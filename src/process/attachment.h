/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that lbr has attached to: what attached.c, attach.c and detach.c share.
 */
#ifndef PROCESS_ATTACHMENT_H
#define PROCESS_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "process/tracee.h"

struct process;

struct attachment {
  uint64_t process_entry, thread_entry, start_entry, call_entry,
    leave_entry; /* addresses of the runtime: struct attach_entries */
  uint64_t breakpoint, call_back;
  const int *threads; /* those that are recorded; without any: all */
  size_t thread_count;
  tracee_wait_function *wait; /* called while a thread cannot be stopped */
  void *data;
  double stopped; /* seconds that the process stood still, the last time */
};

/* The addresses are those of an image of the runtime at this address. */
void attachment_place(struct attachment *attachment, uint64_t image);

/* Attaches to one process. Returns 0, or -errno after a message. */
int attachment_begin(struct attachment *attachment, struct process *process, int pid, int runtime_fd, int shared_fd);

/* Leaves one process. Returns 0; -ESRCH: it is gone, or has executed a program that is not recorded; -EAGAIN: it is
 * just about to execute one; -errno. */
int attachment_end(struct attachment *attachment, const struct process *process, int pid);

/* attach_thread.c; does a thread use rseq(2)? And what the runtime must know of it. */
struct attach_thread;
bool attach_has_rseq(const struct tracee *tracee);
void attach_thread_fill(const struct tracees *tracees, const struct attachment *attachment, const struct tracee *tracee,
                        struct attach_thread *thread);

/* attach.c; finds an instruction for tracee_call. Returns 0 or -errno. */
struct target_maps;
int attach_find_syscall(struct tracees *tracees, const struct target_maps *maps); /* the vDSO has one, and every libc */

#endif
