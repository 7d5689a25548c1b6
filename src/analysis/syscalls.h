/* SPDX-License-Identifier: Apache-2.0
 *
 * The system calls of a trace, added up by their numbers.
 */
#ifndef ANALYSIS_SYSCALLS_H
#define ANALYSIS_SYSCALLS_H

#include "analysis/trace_input.h"

/* All times are in nanoseconds. */
struct analysis_syscall_row {
  uint32_t number;
  uint64_t calls, errors;
  uint64_t time, waited; /* of all; `waited` is the part in which the thread did not run */
  uint64_t longest, longest_start;
  uint32_t longest_stream;
};

struct analysis_syscalls {
  struct analysis_syscall_row *rows; /* the one with the most time first */
  size_t count, capacity;
  struct analysis_syscall_row all;
};

/* Reads the trace, or one stream of it (LB_TRACE_ALL: all). Returns 0, also if there are no system calls; or negative
 * after a message. */
int analysis_syscalls_read(struct trace_input *input, uint32_t stream, struct analysis_syscalls *ret_syscalls);
void analysis_syscalls_done(struct analysis_syscalls *syscalls);

#endif
