/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of generations. See generation.h.
 */
#include "cpu/generation.h"

#include "cpudb/cpudb.h"

static const struct generation rows[GENERATIONS] = {
#define CPU_GENERATION(row, line_, family_, model_, stepping_, leaves_, extended_, evidence)                           \
  [GENERATION_##row] = {.line = LINE_##line_,                                                                          \
                        .family = family_,                                                                             \
                        .model = model_,                                                                               \
                        .stepping = stepping_,                                                                         \
                        .leaves = leaves_,                                                                             \
                        .extended = extended_},
#include "cpu/generation.def"
#undef CPU_GENERATION
};

static const uint8_t rows_of_cpus[] = {
#define CPU_GENERATION(row, ...) [CPUDB_##row] = GENERATION_##row,
#include "cpu/generation.def"
#undef CPU_GENERATION
};

_Static_assert((unsigned)GENERATIONS == (unsigned)CPUDB_CPUS,
               "every CPU of cpudb/cpu.def and cpu_amd.def has one row in cpu/generation.def");

enum generation_row generation_find(const struct lb_cpu *model)
{
  return (enum generation_row)rows_of_cpus[cpudb_row(model)];
}

const struct generation *generation_at(enum generation_row row)
{
  return &rows[row];
}

bool generation_is_since(enum generation_row row, enum generation_row first)
{
  return rows[row].line == rows[first].line && row >= first;
}

/* SDM vol. 2, CPUID, figure 3-6: the part of a family above 15 is in 27:20, the upper model bits are in 19:16. */
uint32_t generation_signature(const struct generation *g)
{
  uint32_t family = g->family < 0xF ? g->family : 0xF;
  uint32_t more = g->family < 0xF ? 0 : g->family - 0xFu;

  return more << 20 | (g->model >> 4 & 0xFu) << 16 | family << 8 | (g->model & 0xFu) << 4 | g->stepping;
}
