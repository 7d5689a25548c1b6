/* SPDX-License-Identifier: Apache-2.0
 *
 * Who the processor is, for probe.c.
 */
#ifndef HARDWARE_IDENTIFY_H
#define HARDWARE_IDENTIFY_H

#include "hardware/hardware.h"

/* Sets all of `host` that CPUID and the catalogue tell. */
void host_identify(const struct hardware_system *system, struct hardware_host *host);

#endif
