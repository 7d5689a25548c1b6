/* SPDX-License-Identifier: Apache-2.0
 *
 * The trial of PTRACE_SINGLEBLOCK, for system.c.
 */
#ifndef HARDWARE_BLOCKSTEP_H
#define HARDWARE_BLOCKSTEP_H

#include "hardware/hardware.h"

/* As block_step of struct hardware_system. -ENOSYS when this is no x86. */
int blockstep_try(struct hardware_steps *ret_steps);

#endif
