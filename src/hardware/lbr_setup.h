/* SPDX-License-Identifier: Apache-2.0
 *
 * A recorder of a processor that is switched on as an operating system would switch it on, to be given the branches of
 * a program: for `lbr run --cpu` and `lbr replay`.
 */
#ifndef HARDWARE_LBR_SETUP_H
#define HARDWARE_LBR_SETUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/recorder.h"

struct lbr_setup {
  const struct lb_cpu *cpu;
  const char *filter;  /* fields of its filter register, separated by commas, or its value; NULL: all is recorded */
  bool has_call_stack; /* call-stack mode; not with a filter */
  bool has_kernel;     /* branches of CPL 0, too, where that must be asked for */
};

enum lbr_rings { LBR_RINGS_ALL, LBR_RINGS_USER, LBR_RINGS_KERNEL };

/* The value of its filter register, without the switch that architectural LBR has there, for a processor that is not
 * ours: `has_kernel` does not count, `rings` does, unless the filter names rings itself. 0 on a CPU without filters.
 * Complains, also if it cannot tell the rings apart. Returns 0 or negative. */
int lbr_setup_filter(const struct lbr_setup *setup, enum lbr_rings rings, uint64_t *ret_value);

/* Makes a recorder whose LBR stack is on. Complains. Returns 0 or negative; the recorder is freed with free(). */
int lbr_setup_new(const struct lbr_setup *setup, struct lb_recorder **ret_recorder);

/* A BTS buffer in memory: of `size` records, circular. */
struct lbr_bts {
  uint64_t size;
  unsigned char *bytes; /* of the buffer */
  size_t record_size;
  unsigned char area[0x100]; /* the DS management area */
};

/* Makes a recorder that stores branches in the buffer, which must stay where it is. Complains. Returns 0 or negative;
 * lbr_bts_done in either case. */
int lbr_setup_bts(const struct lbr_setup *setup, struct lbr_bts *bts, struct lb_recorder **ret_recorder);
void lbr_bts_done(struct lbr_bts *bts);

/* Brings the records into their order, the oldest first. Returns how many there are. */
size_t lbr_bts_sort(const struct lb_recorder *recorder, struct lbr_bts *bts);

#endif
