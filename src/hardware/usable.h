/* SPDX-License-Identifier: Apache-2.0
 *
 * The verdicts, one function for each group of facilities. Each sets findings of `host`; probe.c calls them in this
 * order, since later ones use the findings of earlier ones.
 */
#ifndef HARDWARE_USABLE_H
#define HARDWARE_USABLE_H

#include "hardware/hardware.h"

void usable_msr_device(const struct hardware_system *system, struct hardware_host *host);
void usable_lbr(struct hardware_host *host);
void usable_live(const struct hardware_system *system, struct hardware_host *host);
void usable_software(struct hardware_host *host);
void usable_bts(const struct hardware_system *system, struct hardware_host *host);
void usable_perf(const struct hardware_system *system, struct hardware_host *host);
void usable_block_step(const struct hardware_system *system, struct hardware_host *host);

/* Returns why the kernel forbids writing registers through the msr device, and what to do about it; NULL if it allows
 * that, as far as its files tell. */
const char *usable_msr_forbidden(const struct hardware_system *system, const char **ret_advice);

/* Sets one finding; for the files of this folder. */
void finding_set(struct hardware_host *host, enum hardware_facility facility, enum hardware_verdict verdict,
                 const char *advice, const char *format, ...) __attribute__((format(printf, 5, 6)));

#endif
