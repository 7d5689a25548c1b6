/* SPDX-License-Identifier: Apache-2.0
 *
 * Tests of a CPU for the conditions in msr.def and msr_model.def.
 */
#ifndef CPU_MSR_CONDITION_H
#define CPU_MSR_CONDITION_H

#include "cpu/system.h"

#define HAS(cpu, name) system_has(cpu, FEATURE_##name)
#define SINCE(cpu, row) system_is_since(cpu, GENERATION_##row)

static inline bool is_p4(const struct cpu *cpu)
{
  return cpu->model->pmu->kind == LB_PMU_P4;
}

static inline bool is_since_core(const struct cpu *cpu)
{
  return SINCE(cpu, YONAH) || SINCE(cpu, BONNELL_EARLY);
}

static inline bool is_since_nehalem(const struct cpu *cpu)
{
  return SINCE(cpu, NEHALEM) || SINCE(cpu, SILVERMONT);
}

#endif
