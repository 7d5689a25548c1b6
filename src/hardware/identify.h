/* SPDX-License-Identifier: Apache-2.0
 *
 * Identifies the processor, for probe.c.
 */
#ifndef HARDWARE_IDENTIFY_H
#define HARDWARE_IDENTIFY_H

#include "hardware/hardware.h"

/* Sets the members of `host` that CPUID and the catalogue tell. */
void host_identify(const struct hardware_system *system, struct hardware_host *host);

#endif
