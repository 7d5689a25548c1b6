/* SPDX-License-Identifier: Apache-2.0
 *
 * The call stack of a thread, reconstructed from its branches alone: it is right even if the stack's memory is
 * destroyed. calls.c follows the calls; the frames are the calls that are still open at the end.
 */
#ifndef REPORT_BACKTRACE_H
#define REPORT_BACKTRACE_H

#include "report/report.h"

#define REPORT_FRAME_HERE (-1)

struct report_frame {
  uint64_t address; /* where the thread is, or the branch by which it left this function */
  uint32_t mark;    /* for the places */
  int kind;         /* enum lb_branch_kind of that branch; REPORT_FRAME_HERE: there is none, the thread is there */
};

struct report_backtrace {
  struct report_frame *frames; /* the innermost first */
  size_t count, capacity;
  bool is_complete; /* false: older frames are not in the record */
};

/* The stack of a thread that is at `at`. `files` as for analysis_names_new. Returns 0 or -ENOMEM. */
int report_backtrace_make(const struct report_thread *thread, uint64_t at, const struct report_places *places,
                          const struct analysis_files *files, struct report_backtrace *ret_backtrace);
void report_backtrace_done(struct report_backtrace *backtrace);

#endif
