/* SPDX-License-Identifier: Apache-2.0
 *
 * Intel's branch trace store as the kernel's intel_bts hands it out: an array of 64-bit BTS records.
 */
#ifndef SOURCE_BTS_H
#define SOURCE_BTS_H

#include "source/world.h"

#define BTS_RECORD_SIZE 24u

/* Takes the records of a thread out of a piece of AUX data that begins with one: jumps into flow.h. A rest that is no
 * whole record is lost. Returns 0, or as world_branch. */
int bts_decode(struct world *world, struct world_thread *thread, const uint8_t *bytes, size_t size);

#endif
