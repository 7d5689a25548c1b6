/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that live.c and live_read.c share.
 */
#ifndef HARDWARE_LIVE_SWITCH_H
#define HARDWARE_LIVE_SWITCH_H

#include "hardware/live.h"

#define LIVE_SWITCHES_MAX 2

/* Bits that switch recording on. */
struct live_switch {
  enum lb_register id;
  uint64_t mask;
};

/* The switches of a CPU, that of its stack first. Returns how many. */
unsigned live_switches(const struct lb_cpu *cpu, struct live_switch switches[LIVE_SWITCHES_MAX]);

/* Calls `wait`, then switches off what is on, in a way that can be undone. Returns 0 or -errno: the caller undoes it
 * then. */
int live_stop(struct hardware_live *live);

/* Read a register; a failure is noted as the trouble. Return 0 or -errno. */
int live_read(struct hardware_live *live, uint32_t msr, uint64_t *ret_value);
int live_read_id(struct hardware_live *live, enum lb_register id, uint64_t *ret_value);

/* Does the CPU have it? */
bool live_has(const struct hardware_live *live, enum lb_register id);

#endif
