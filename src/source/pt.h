/* SPDX-License-Identifier: Apache-2.0
 *
 * Intel Processor Trace as the kernel's intel_pt delivers it, decoded with libipt if the build has it (pt.c), else not
 * at all (pt_none.c).
 *
 * The AUX data of a processor comes in chunks, one for each time that a thread runs there. Tracing is of user mode
 * only, so a chunk ends where a thread entered the kernel. A chunk need not begin with a PSB packet, and its addresses
 * are compressed against those of the previous chunk, whichever thread that belongs to. Therefore each processor has a
 * state.
 */
#ifndef SOURCE_PT_H
#define SOURCE_PT_H

#include "source/tasks.h"

/* State that continues from chunk to chunk of a processor. All zero at first, and after something was lost. */
struct pt_state {
  bool is_known; /* the addresses below are */
  uint64_t last_ip;
  uint8_t mode; /* payload of the last MODE.Exec packet; 0: none yet */
};

/* The processor that recorded it, according to CPUID; its errata depend on it. */
struct pt_model {
  bool is_intel;
  unsigned family, model, stepping;
};

/* Decodes the chunk of a thread. Invalid packets become a gap. Returns 0; -ENOSYS without libipt; or as tasks_branch.
 */
int pt_decode(struct tasks *tasks, struct task_thread *thread, const struct pt_model *model, struct pt_state *state,
              const uint8_t *bytes, size_t size);

#endif
