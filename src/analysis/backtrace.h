/* SPDX-License-Identifier: Apache-2.0
 *
 * The call stack of a thread, reconstructed from its branches alone: it is right even if the stack's memory is
 * destroyed. calls.c follows the calls; the frames are the calls that are still open at the end.
 */
#ifndef ANALYSIS_BACKTRACE_H
#define ANALYSIS_BACKTRACE_H

#include "analysis/death.h"
#include "analysis/names.h"

#define ANALYSIS_FRAME_HERE (-1)

struct analysis_frame {
  uint64_t address; /* where the thread is, or the branch by which it left this function */
  uint32_t mark;    /* for the places */
  int kind;         /* enum lb_branch_kind of that branch; ANALYSIS_FRAME_HERE: there is none, the thread is there */
};

struct analysis_backtrace {
  struct analysis_frame *frames; /* the innermost first */
  size_t count, capacity;
  bool is_complete; /* false: older frames are not in the record */
};

/* Makes the call stack of a thread at its end. The stack is empty if `places` is NULL or has no pieces, or if the
 * thread has no branches. `files` as for analysis_names_new. Returns 0 or -ENOMEM. */
int analysis_backtrace_make(const struct analysis_death *death, const struct analysis_places *places,
                            const struct analysis_thread *thread, const struct analysis_files *files,
                            struct analysis_backtrace *ret_backtrace);
void analysis_backtrace_done(struct analysis_backtrace *backtrace);

#endif
