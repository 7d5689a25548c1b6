/* SPDX-License-Identifier: Apache-2.0
 *
 * The recording unit of a real logical processor: what it is, whether it records, what its LBR stack holds, switching
 * it on and off. Works on struct hardware_registers, so that a recorder can stand in for silicon. Recording stops while
 * the stack is read; hardware_live_end, or the guard of registers.h, undoes every change. No value that is read is
 * trusted: not the TOS of the stack, its depth or its addresses.
 */
#ifndef HARDWARE_LIVE_H
#define HARDWARE_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "hardware/registers.h"
#include "lastbranch/recorder.h"

struct hardware_host;

/* The row of the catalogue, updated with what this particular processor says about itself: CPUID.1CH and 80000022H,
 * later PERF_CAPABILITIES. The pointers lead into it: it must not be copied. */
struct hardware_row {
  struct lb_cpu cpu;
  struct lb_lbr_class lbr;
  char title[80];
};

/* `cpu` as the catalogue has it. */
void hardware_row_of(const struct lb_cpu *cpu, struct hardware_row *ret_row);

/* Makes the row of this host. A CPU that the catalogue lacks has a row, too, if CPUID announces architectural LBR or
 * AMD's version 2, which describe themselves. Returns 0; LB_E_NO_CPU if there is no row; LB_E_NO_UNIT for a CPU without
 * branch records; -ENODEV if the CPU has them and CPUID hides them. */
int hardware_row_find(const struct hardware_host *host, struct hardware_row *ret_row);

/* The operation that failed, if any. */
struct hardware_trouble {
  int error;
  uint32_t msr; /* 0: none */
  bool is_write;
};

struct hardware_live {
  struct hardware_row *row;
  struct hardware_undo undo;
  struct hardware_trouble trouble; /* of the last function that failed */
  bool is_ours;                    /* recording may be stopped: the program that switched it on consents */
  /* Not NULL: hardware_live_read calls this, with `data`, to wait before it stops recording, and stops recording right
   * after it. For a caller that runs on the same processor: its own branches come between the code that ran there
   * meanwhile and the stop. */
  void (*wait)(void *data);
  void *data;
};

/* `row` and `registers` must stay valid. The caller begins the guard: hardware_guard_begin(&live->undo, ...). */
void hardware_live_begin(struct hardware_live *live, struct hardware_row *row,
                         const struct hardware_registers *registers);

/* Undoes the changes that are not kept. Returns 0, or the error of a register that could not be restored. */
int hardware_live_end(struct hardware_live *live);

/* Is recording on? Returns 0 or 1, or -errno. */
int hardware_live_is_on(struct hardware_live *live);

/* Number of performance counters that are counting or programmed, for example by perf or the kernel's watchdog. */
unsigned hardware_live_counters(struct hardware_live *live);

/* Facts about a reading. */
struct hardware_reading {
  bool is_torn;     /* recording continued while the stack was read */
  bool has_tos;     /* the CPU has a TOS */
  uint64_t tos;     /* value of TOS */
  bool tos_is_odd;  /* TOS has bits set that no CPU of this kind has */
  uint64_t missing; /* 1 << enum lb_register: registers that cannot be read here; the stack itself can */
};

/* Reads all records and registers into `recorder`, which it initialises with the CPU of `row`. Recording is stopped
 * meanwhile and resumed afterwards, unless `keeps_running`. Returns 0; -EBUSY: recording is on and may not be stopped;
 * -ERANGE: its depth is invalid; -errno of a register. After an error, the recorder is unchanged. The registers are as
 * before in any case; if they cannot be restored, that error is returned. */
int hardware_live_read(struct hardware_live *live, bool keeps_running, struct lb_recorder *ret_recorder,
                       struct hardware_reading *ret_reading);

/* The branches to record, as a value of the filter register. On a CPU that has none it must be 0. */
struct hardware_filter {
  uint64_t value; /* of MSR_LBR_SELECT or, of architectural LBR, of IA32_LBR_CTL without LBREN */
};

/* Switches recording on. Returns 0; -EOPNOTSUPP: the bit does not stay set; -errno of a register. After an error,
 * nothing has changed. */
int hardware_live_arm(struct hardware_live *live, const struct hardware_filter *filter);

/* Switches recording off; this is not undone. Returns 0 or -errno of a register. */
int hardware_live_disarm(struct hardware_live *live);

/* Takes over changes that another run made and did not undo: hardware_live_end will undo them. They may only be of
 * registers that this file changes. Returns 0, or -EINVAL. */
int hardware_live_adopt(struct hardware_live *live, const struct hardware_change *changes, unsigned count);

/* Are those registers still as that run left them? Returns 1 or 0, or -errno. */
int hardware_live_is_as_left(struct hardware_live *live, const struct hardware_change *changes, unsigned count);

#endif
