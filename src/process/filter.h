/* SPDX-License-Identifier: Apache-2.0
 *
 * The seccomp(2) filters of a process that lbr is to attach to. lbr suspends them while it attaches and leaves; in
 * between, the runtime makes system calls of its own, which the filters must allow. The filters are BPF programs: lbr
 * reads them and runs them on these calls. Linux: Documentation/userspace-api/seccomp_filter.rst.
 */
#ifndef PROCESS_FILTER_H
#define PROCESS_FILTER_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Runs one filter on a system call. Returns the filter's answer, SECCOMP_RET_..., with its data. A program that the
 * kernel would not have accepted gets SECCOMP_RET_KILL_PROCESS. */
uint32_t filter_run(const struct sock_filter *program, size_t count, const struct seccomp_data *data);

/* The filters of a thread, one after the other. */
enum { FILTER_MOST = 256 };

struct filter_list {
  struct sock_filter *code;
  size_t size; /* instructions of all of them */
  uint32_t sizes[FILTER_MOST], count;
};

/* What the filters of a process mean for the runtime. The caller fills in the first two. */
struct filter_verdict {
  bool has_rseq;         /* threads use rseq(2) */
  bool has_wrgsbase;     /* the runtime sets GS without a system call */
  bool has_filter;       /* of a thread at least */
  bool forbids_code;     /* memory that is writable and executable cannot be mapped */
  const char *forbidden; /* the name of a system call that the runtime needs and that they forbid; NULL: none */
  struct filter_list last;
};

/* Reads the filters of a stopped thread under ptrace(2), runs them on the calls that the runtime makes, and adds what
 * they answer to `verdict`. Returns 0; -EACCES: lbr may not read filters; -errno. */
int filter_check(int thread, struct filter_verdict *verdict);

void filter_verdict_done(struct filter_verdict *verdict);

#endif
