/* SPDX-License-Identifier: Apache-2.0
 *
 * The msr device of one logical processor as struct hardware_registers, and explanations of its errors.
 */
#ifndef HARDWARE_DEVICE_H
#define HARDWARE_DEVICE_H

#include "hardware/registers.h"

struct hardware_finding;
struct hardware_live;
struct hardware_host;
struct hardware_system;

struct hardware_device {
  const struct hardware_system *system;
  int fd;
  unsigned number; /* of the processor */
  struct hardware_registers registers;
};

/* Opens the device for reading and writing, or only for reading if no more is allowed: writes then fail with -EACCES.
 * `system` must stay valid, and the device must not be copied. Returns 0, or -errno of opening. */
int hardware_device_open(const struct hardware_system *system, unsigned number, struct hardware_device *ret_device);
void hardware_device_close(struct hardware_device *device);

/* Explains why the device of processor `number` cannot be opened, by the error of opening it, and what to do. */
struct hardware_finding hardware_device_explain(const struct hardware_system *system, unsigned number, int error);

/* Explains why a function of live.h failed, by its trouble. */
struct hardware_finding hardware_live_explain(const struct hardware_system *system, const struct hardware_host *host,
                                              const struct hardware_live *live);

/* Explains why hardware_row_find found no row, by its error. */
struct hardware_finding hardware_row_explain(const struct hardware_host *host, int error);

/* Is a perf event that uses LBR or PT open, on this or another processor? The kernel then refuses to open intel_bts, if
 * it has it. Also returns false if this cannot be determined. */
int hardware_event_is_open(const struct hardware_system *system);

#endif
