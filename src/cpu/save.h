/* SPDX-License-Identifier: Apache-2.0
 *
 * Archives each field of a processor that is state (save.c). The tests check that none was forgotten.
 */
#ifndef CPU_SAVE_H
#define CPU_SAVE_H

#include "base/base.h"
#include "cpu/cpu.h"

void predictor_archive(struct archive *archive, struct predictor *predictor);
void cache_archive(struct archive *archive, struct cache *cache);
/* All but flags, recorder, predictor and time. */
void registers_archive(struct archive *archive, struct cpu *cpu);
void clock_archive(struct archive *archive, struct cpu *cpu);

#endif
