/* SPDX-License-Identifier: Apache-2.0
 *
 * The macros with which register.def, register_name.def and field.def query a CPU. Each expands to an expression over a
 * variable `cpu` of the function that includes the file.
 */
#ifndef CPUDB_EXPRESSION_H
#define CPUDB_EXPRESSION_H

#include "cpudb/tables.h"

/* A field of the register-layout class; 0 on a CPU without branch records. */
#define LBR(f) (cpu->lbr ? cpu->lbr->f : 0)
#define DEPTH lb_cpu_depth(cpu)
#define CLASS(row) (cpu->lbr == &cpudb_classes[CLASS_##row])
#define HAS(f) lb_cpu_has(cpu, LB_FEATURE_##f)
#define QUIRK(q) lb_cpu_quirk(cpu, LB_QUIRK_##q)

#define PMU(k) (cpu->pmu->kind == LB_PMU_##k)
#define COUNTERS (cpu->pmu->counters)
#define FIXED (cpu->pmu->fixed)
#define VERSION (cpu->pmu->version)
#define AMD_COUNTERS (PMU(AMD) || PMU(AMD_V2))

/* Bits of IA32_PERF_CAPABILITIES. */
#define FULL_WIDTH ((cpu->perf_capabilities >> 13 & 1) != 0)
#define ADAPTIVE_PEBS ((cpu->perf_capabilities >> 14 & 1) != 0)
#define METRICS ((cpu->perf_capabilities >> 15 & 1) != 0 || HAS(METRICS_UNLISTED))
#define PEBS_TO_PT ((cpu->perf_capabilities >> 16 & 1) != 0)
#define LOAD_LATENCY HAS(LOAD_LATENCY)

/* Version 6 of performance monitoring has a second address for each counter and event select. */
#define PERFMON_6 (PMU(ARCH) && VERSION >= 6)

#endif
