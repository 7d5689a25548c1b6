/* SPDX-License-Identifier: Apache-2.0
 *
 * The real part that represents a CPU of the catalogue, for CPUID and for the features of its generation:
 * generation.def.
 */
#ifndef CPU_GENERATION_H
#define CPU_GENERATION_H

#include "lastbranch/cpudb.h"

enum generation_row {
#define CPU_GENERATION(row, ...) GENERATION_##row,
#include "cpu/generation.def"
#undef CPU_GENERATION
  GENERATIONS,
};

enum generation_line { LINE_INTEL, LINE_ATOM, LINE_AMD, LINE_VIA };

struct generation {
  uint8_t line; /* enum generation_line */
  uint8_t family, model, stepping;
  uint32_t leaves, extended; /* highest basic and extended leaf of CPUID */
};

/* The row of a CPU of the catalogue. */
enum generation_row generation_find(const struct lb_cpu *model);
const struct generation *generation_at(enum generation_row row);

/* True for `first` and every later row of its line. */
bool generation_is_since(enum generation_row row, enum generation_row first);

/* CPUID.1:EAX. */
uint32_t generation_signature(const struct generation *generation);

#endif
