/* SPDX-License-Identifier: Apache-2.0
 *
 * The catalogue for other folders. The data are in the .def files beside this header, and the contract is
 * lastbranch/cpudb.h; this header adds a few functions for use inside this program only.
 */
#ifndef CPUDB_CPUDB_H
#define CPUDB_CPUDB_H

#include <stdbool.h>
#include <stdint.h>

#include "lastbranch/cpudb.h"

/* The rows of the catalogue, in its order, for tables that have one row for each CPU. */
enum cpudb_cpu {
#define LB_CPU(row, ...) CPUDB_##row,
#include "cpudb/cpu.def"
#include "cpudb/cpu_amd.def"
#undef LB_CPU
  CPUDB_CPUS,
};

/* The row of a CPU, which must be one of the catalogue's. */
enum cpudb_cpu cpudb_row(const struct lb_cpu *cpu);

/* A query for a field of a register: by name, by a bit that it holds, or both. */
struct cpudb_field_question {
  enum lb_register id;
  const char *name; /* any case; NULL: any */
  int bit;          /* negative: any */
};

/* Returns 0, or LB_E_NO_FIELD. */
int cpudb_field_find(const struct lb_cpu *cpu, const struct cpudb_field_question *question, struct lb_field *ret_field);

/* Returns whether the CPU has the field; `data` is a struct cpudb_field_question. */
bool cpudb_has_field(const struct lb_cpu *cpu, const void *data);

/* The mask of a field at its position in the register. */
static inline uint64_t cpudb_field_mask(const struct lb_field *field)
{
  return UINT64_MAX >> (63 - (field->high - field->low)) << field->low;
}

#endif
