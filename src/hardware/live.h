/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording unit of a real logical processor: what it is, whether it records, what its LBR stack holds, switching
 * it on and off. Works on struct hardware_registers, so that a recorder can stand in for silicon. Recording stops while
 * the stack is read; whatever was changed is taken back by hardware_live_end, or by the guard of registers.h.
 *
 * Everything that is read is hostile: the stack's TOS, its depth, addresses that are none.
 */
#ifndef HARDWARE_LIVE_H
#define HARDWARE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/registers.h"
#include "lastbranch/recorder.h"

struct hardware_host;

/* The row of the catalogue with what this very processor says about itself: CPUID.1CH and 80000022H, later
 * PERF_CAPABILITIES. The pointers lead into it: it must not be copied. */
struct hardware_row {
  struct lb_cpu cpu;
  struct lb_lbr_class lbr;
  char title[80];
};

/* `cpu` as the catalogue has it. */
void hardware_row_of(const struct lb_cpu *cpu, struct hardware_row *ret_row);

/* That of this host. A CPU that the catalogue lacks has a row, too, if CPUID announces architectural LBR or AMD's
 * version 2, which describe themselves. Returns 0; LB_E_NO_CPU if there is no row; LB_E_NO_UNIT for a CPU without
 * branch records; -ENODEV if the CPU has them and CPUID hides them. */
int hardware_row_find(const struct hardware_host *host, struct hardware_row *ret_row);

/* What failed, if something did. */
struct hardware_trouble {
  int error;
  uint32_t msr; /* 0: none */
  bool is_write;
};

struct hardware_live {
  struct hardware_row *row;
  struct hardware_undo undo;
  struct hardware_trouble trouble; /* of the last function that failed */
  bool is_ours;                    /* whoever switched recording on lets us stop it */
  /* Not NULL: hardware_live_read waits by this, with `data`, before it stops recording, and then stops it at once. For
   * who runs on that processor: his own branches come between what ran there meanwhile and the stop. */
  void (*wait)(void *data);
  void *data;
};

/* `row` and `registers` must stay. Its guard is the caller's: hardware_guard_begin(&live->undo, ...). */
void hardware_live_begin(struct hardware_live *live, struct hardware_row *row,
                         const struct hardware_registers *registers);

/* Takes back what was changed and is not kept. Returns 0, or the error of a register that could not be put back. */
int hardware_live_end(struct hardware_live *live);

/* Does it record? Returns 0 or 1, or -errno. */
int hardware_live_is_on(struct hardware_live *live);

/* Performance counters that count now, or that somebody has programmed: perf, or the kernel's watchdog. */
unsigned hardware_live_counters(struct hardware_live *live);

/* What the reading was like. */
struct hardware_reading {
  bool is_torn;     /* recording went on while the stack was read */
  bool has_tos;     /* the CPU has a TOS, and */
  uint64_t tos;     /* that is what it held, */
  bool tos_is_odd;  /* with bits that no CPU of this kind has */
  uint64_t missing; /* 1 << enum lb_register: cannot be read here; the stack itself can */
};

/* Reads it all into `recorder`, which is initialised and whose CPU is then that of `row`. Recording stops meanwhile and
 * goes on behind it, unless `keeps_running`. Returns 0; -EBUSY: it records, and it is not ours to stop; -ERANGE: its
 * depth is none; -errno of a register. The recorder is untouched then, and the registers are as before in any case;
 * where they are not, that error is returned. */
int hardware_live_read(struct hardware_live *live, bool keeps_running, struct lb_recorder *ret_recorder,
                       struct hardware_reading *ret_reading);

/* What is to be recorded: a value of the filter register. On a CPU that has none it must be 0. */
struct hardware_filter {
  uint64_t value; /* of MSR_LBR_SELECT or, of architectural LBR, of IA32_LBR_CTL without LBREN */
};

/* Switches recording on. Returns 0; -EOPNOTSUPP: the bit does not stay; -errno of a register. Nothing has changed
 * then. */
int hardware_live_arm(struct hardware_live *live, const struct hardware_filter *filter);

/* Switches recording off, without a way back. Returns 0 or -errno of a register. */
int hardware_live_disarm(struct hardware_live *live);

/* Changes that were made by another run, and are not taken back yet: now hardware_live_end does so. They may only be of
 * registers that this file changes. Returns 0, or -EINVAL. */
int hardware_live_adopt(struct hardware_live *live, const struct hardware_change *changes, unsigned count);

/* Are those registers still as that run left them? Returns 1 or 0, or -errno. */
int hardware_live_is_as_left(struct hardware_live *live, const struct hardware_change *changes, unsigned count);

#endif
