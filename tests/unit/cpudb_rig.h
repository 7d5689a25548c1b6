/* SPDX-License-Identifier: Apache-2.0
 *
 * For the tests of the catalogue: every CPU, every register, a CPU by its name. Numbers that were measured on real
 * processors stand in the tests a second time, as literals, with their source.
 */
#ifndef TESTS_CPUDB_RIG_H
#define TESTS_CPUDB_RIG_H

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cpudb/cpudb.h"
#include "cpudb/tables.h"
#include "lastbranch/error.h"
#include "parts.h"

#define FOR_EACH_CPU(cpu) for (const struct lb_cpu *cpu = lb_cpu_at(0), *end_ = cpu + CPUDB_CPUS; cpu < end_; cpu++)
#define FOR_EACH_REGISTER(id) for (enum lb_register id = 0; id < LB_REGISTERS; id++)

static const struct lb_cpu *cpu_named(const char *name)
{
  const struct lb_cpu *cpu = NULL;

  if (lb_cpu_find(name, &cpu) != 0)
    fail_msg("no CPU is called %s", name);
  return cpu;
}

static inline void assert_evidence(const char *kind, const char *name, unsigned basis, const char *evidence)
{
  if (!lb_basis_name(basis))
    fail_msg("%s %s is neither measured nor documented nor inferred", kind, name);
  if (!evidence || strlen(evidence) < 4)
    fail_msg("%s %s has no evidence", kind, name);
}

#endif
