/* SPDX-License-Identifier: Apache-2.0
 *
 * CPUID of a CPU of the catalogue, limited to branch recording. Leaves 1, 7, 0AH: Intel SDM vol. 2; 1CH: architectural
 * LBR; 80000008H, 80000022H: AMD APM vol. 3, appendix E.
 */
#include "cpudb/cpudb.h"

enum { EAX, EBX, ECX, EDX };

/* Marks bits of a register as belonging to branch recording, and sets those of them that are 1. */
static void own(struct lb_cpuid *cpuid, unsigned reg, uint32_t bits, uint32_t value)
{
  cpuid->mask[reg] |= bits;
  cpuid->value[reg] |= value & bits;
}

static void own_bit(struct lb_cpuid *cpuid, unsigned reg, unsigned bit, bool is_set)
{
  own(cpuid, reg, UINT32_C(1) << bit, is_set ? UINT32_MAX : 0);
}

static void leaf_1(const struct lb_cpu *cpu, struct lb_cpuid *cpuid)
{
  own_bit(cpuid, ECX, 2, cpu->ds->is_64);
  own_bit(cpuid, ECX, 4, cpu->ds->has_cpl);
  own_bit(cpuid, ECX, 15, lb_cpu_has(cpu, LB_FEATURE_PDCM));
  own_bit(cpuid, EDX, 21, cpu->ds->has_bts);
}

static void leaf_7(const struct lb_cpu *cpu, struct lb_cpuid *cpuid)
{
  own_bit(cpuid, EBX, 11, lb_cpu_has(cpu, LB_FEATURE_TSX));
  own_bit(cpuid, ECX, 24, lb_cpu_has(cpu, LB_FEATURE_BUS_LOCK_DETECT));
  own_bit(cpuid, EDX, 19, lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR));
}

/* Subleaf 1, EAX[8]: leaf 23H exists. */
static void leaf_7_1(const struct lb_cpu *cpu, struct lb_cpuid *cpuid)
{
  own_bit(cpuid, EAX, 8, cpu->pmu->has_leaf_23);
}

static uint32_t ones(unsigned count)
{
  return (UINT32_C(1) << count) - 1;
}

/* The whole leaf belongs to recording; it is zero without architectural performance monitoring. */
static void leaf_a(const struct lb_cpu *cpu, struct lb_cpuid *cpuid)
{
  const struct lb_pmu *pmu = cpu->pmu;
  bool is_arch = pmu->kind == LB_PMU_ARCH;
  unsigned counters = pmu->leaf_counters ? pmu->leaf_counters : pmu->counters;
  unsigned fixed_counters = pmu->leaf_fixed ? pmu->leaf_fixed : pmu->fixed;
  uint32_t shape = pmu->version | counters << 8 | (uint32_t)pmu->width << 16 | (uint32_t)pmu->events << 24;
  uint32_t fixed = fixed_counters | (uint32_t)pmu->fixed_width << 5;

  if (lb_cpu_has(cpu, LB_FEATURE_NO_ANY_THREAD))
    fixed |= UINT32_C(1) << 15;
  own(cpuid, EAX, UINT32_MAX, is_arch ? shape : 0);
  own(cpuid, EBX, UINT32_MAX, is_arch ? pmu->absent : 0);
  /* Version 5 lists the fixed counters one by one. */
  own(cpuid, ECX, UINT32_MAX, is_arch && pmu->version >= 5 ? ones(fixed_counters) : 0);
  own(cpuid, EDX, UINT32_MAX, is_arch ? fixed : 0);
}

static void leaf_1c(const struct lb_cpu *cpu, struct lb_cpuid *cpuid)
{
  for (unsigned reg = EAX; reg <= ECX; reg++)
    own(cpuid, reg, UINT32_MAX, cpu->leaf_1c[reg]);
  own(cpuid, EDX, UINT32_MAX, 0);
}

/* Linux perf_event.h, union cpuid35_eax and cpuid35_ebx. Subleaf 0: which subleaves there are, UMASK2 and EQ; 1: the
 * counters; 3: the architectural events. */
static void leaf_23(const struct lb_cpu *cpu, uint32_t subleaf, struct lb_cpuid *cpuid)
{
  const struct lb_pmu *pmu = cpu->pmu;
  uint32_t eax = 0, ebx = 0;

  if (pmu->has_leaf_23 && subleaf == 0) {
    eax = 1u << 0 | 1u << 1 | 1u << 3;
    ebx = (uint32_t)((pmu->evtsel >> 40 & 1) | (pmu->evtsel >> 36 & 1) << 1);
  } else if (pmu->has_leaf_23 && subleaf == 1) {
    eax = ones(pmu->counters);
    ebx = ones(pmu->fixed) & ~(uint32_t)pmu->fixed_absent;
  } else if (pmu->has_leaf_23 && subleaf == 3) {
    eax = ones(pmu->events) & ~pmu->absent;
  }
  own(cpuid, EAX, UINT32_MAX, eax);
  own(cpuid, EBX, UINT32_MAX, ebx);
  own(cpuid, ECX, UINT32_MAX, 0);
  own(cpuid, EDX, UINT32_MAX, 0);
}

static void leaf_80000022(const struct lb_cpu *cpu, struct lb_cpuid *cpuid)
{
  bool is_v2 = lb_cpu_has(cpu, LB_FEATURE_LBR_V2);

  own_bit(cpuid, EAX, 0, cpu->pmu->kind == LB_PMU_AMD_V2);
  own_bit(cpuid, EAX, 1, is_v2);
  own_bit(cpuid, EAX, 2, is_v2 && lb_cpu_debugctl(cpu, LB_DEBUGCTL_FREEZE_LBRS_ON_PMI));
  own(cpuid, EBX, 0x00F, cpu->pmu->kind == LB_PMU_AMD_V2 ? cpu->pmu->counters : 0);
  own(cpuid, EBX, 0x3F0, is_v2 ? lb_cpu_depth(cpu) << 4 : 0);
}

struct lb_cpuid lb_cpu_cpuid(const struct lb_cpu *cpu, uint32_t leaf, uint32_t subleaf)
{
  struct lb_cpuid cpuid = {0};

  switch (leaf) {
  case 0x1:
    leaf_1(cpu, &cpuid);
    break;
  case 0x7:
    if (subleaf == 0)
      leaf_7(cpu, &cpuid);
    else if (subleaf == 1)
      leaf_7_1(cpu, &cpuid);
    break;
  case 0xA:
    leaf_a(cpu, &cpuid);
    break;
  case 0x1C:
    if (subleaf == 0)
      leaf_1c(cpu, &cpuid);
    break;
  case 0x23:
    leaf_23(cpu, subleaf, &cpuid);
    break;
  case 0x80000008:
    own_bit(&cpuid, EBX, 31, lb_cpu_has(cpu, LB_FEATURE_BRS));
    break;
  case 0x80000022:
    leaf_80000022(cpu, &cpuid);
    break;
  default:
    break;
  }
  return cpuid;
}
