/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes a recorder of a processor, switched on as an operating system would do it, for the branches of a program: for
 * `lbr run --cpu` and `lbr replay`.
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
  bool has_kernel;     /* branches of CPL 0, too, on CPUs where these must be enabled */
};

enum lbr_rings { LBR_RINGS_ALL, LBR_RINGS_USER, LBR_RINGS_KERNEL };

/* The value of the filter register for a real processor, without the enable bit that architectural LBR has there.
 * `rings` applies, unless the filter names rings itself; `has_kernel` is ignored. 0 on a CPU without filters. Reports
 * errors by message(), also if the CPU cannot filter by ring. Returns 0 or negative. */
int lbr_setup_filter(const struct lbr_setup *setup, enum lbr_rings rings, uint64_t *ret_value);

/* Makes a recorder whose LBR stack is on. Reports errors by message(). Returns 0 or negative; the recorder is freed
 * with free(). */
int lbr_setup_new(const struct lbr_setup *setup, struct lb_recorder **ret_recorder);

/* A BTS buffer in memory: of `size` records, circular. */
struct lbr_bts {
  uint64_t size;
  unsigned char *bytes; /* of the buffer */
  size_t record_size;
  unsigned char area[0x100]; /* the DS management area */
};

/* Makes a recorder that stores branches in the buffer, which must stay where it is. Reports errors by message().
 * Returns 0 or negative; lbr_bts_done in either case. */
int lbr_setup_bts(const struct lbr_setup *setup, struct lbr_bts *bts, struct lb_recorder **ret_recorder);
void lbr_bts_done(struct lbr_bts *bts);

/* Sorts the records, the oldest first. Returns how many there are. */
size_t lbr_bts_sort(const struct lb_recorder *recorder, struct lbr_bts *bts);

#endif
