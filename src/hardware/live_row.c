/* SPDX-License-Identifier: Apache-2.0
 *
 * The row of the catalogue for a real processor, corrected by CPUID: a hypervisor may offer fewer entries than the
 * silicon has, and processors that are not in the catalogue yet describe themselves.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hardware/hardware.h"
#include "lastbranch/error.h"

void hardware_row_of(const struct lb_cpu *cpu, struct hardware_row *ret_row)
{
  memset(ret_row, 0, sizeof(*ret_row));
  ret_row->cpu = *cpu;
  if (!cpu->lbr)
    return;
  ret_row->lbr = *cpu->lbr;
  ret_row->cpu.lbr = &ret_row->lbr;
}

/* The newest row with a feature, for a CPU of which only the feature is known. */
static const struct lb_cpu *row_with(unsigned vendor, enum lb_feature feature)
{
  const struct lb_cpu *cpu, *last = NULL;

  for (size_t i = 0; (cpu = lb_cpu_at(i)); i++)
    if (cpu->vendor == vendor && lb_cpu_has(cpu, feature))
      last = cpu;
  return last;
}

static const struct lb_cpu *row_like(const struct hardware_host *host)
{
  if (host->cpuid[HARDWARE_CPUID_ARCH_LBR])
    return row_with(LB_VENDOR_INTEL, LB_FEATURE_ARCH_LBR);
  if (host->cpuid[HARDWARE_CPUID_AMD_LBR_V2])
    return row_with(LB_VENDOR_AMD, LB_FEATURE_LBR_V2);
  return NULL;
}

/* CPUID.1CH in the catalogue's three words. */
static void row_set_arch(const struct hardware_host *host, struct hardware_row *row)
{
  const uint32_t *cpuid = host->cpuid;

  row->cpu.leaf_1c[0] =
    cpuid[HARDWARE_CPUID_LBR_DEPTHS] | cpuid[HARDWARE_CPUID_LBR_DEEP_C] << 30 | cpuid[HARDWARE_CPUID_LBR_LIP] << 31;
  row->cpu.leaf_1c[1] = cpuid[HARDWARE_CPUID_LBR_FILTERS];
  row->cpu.leaf_1c[2] = cpuid[HARDWARE_CPUID_LBR_FLAGS] | cpuid[HARDWARE_CPUID_LBR_EVENTS] << 16;
}

/* The stack's registers have fixed addresses; CPUID tells their number. */
static void row_set_v2(const struct hardware_host *host, struct hardware_row *row)
{
  uint32_t depth = host->cpuid[HARDWARE_CPUID_AMD_LBR_DEPTH];

  if (depth <= LB_DEPTH_MAX)
    row->lbr.depth = (uint8_t)depth;
}

/* Whether CPUID here reports what the row's CPU reports. */
static bool is_announced(const struct hardware_host *host, const struct lb_cpu *cpu)
{
  if (lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR))
    return host->cpuid[HARDWARE_CPUID_ARCH_LBR];
  if (lb_cpu_has(cpu, LB_FEATURE_LBR_V2))
    return host->cpuid[HARDWARE_CPUID_AMD_LBR_V2];
  return !lb_cpu_has(cpu, LB_FEATURE_BRS) || host->cpuid[HARDWARE_CPUID_BRS];
}

int hardware_row_find(const struct hardware_host *host, struct hardware_row *ret_row)
{
  const struct lb_cpu *cpu = host->cpu ? host->cpu : row_like(host);

  if (!cpu)
    return LB_E_NO_CPU;
  if (!cpu->lbr)
    return LB_E_NO_UNIT;
  if (!is_announced(host, cpu))
    return -ENODEV;
  hardware_row_of(cpu, ret_row);
  if (!host->cpu) {
    snprintf(ret_row->title, sizeof(ret_row->title), "%s %02X_%02X, not in the catalogue, read like %s",
             lb_vendor_name(cpu->vendor), host->family, host->model, cpu->name);
    ret_row->cpu.title = ret_row->title;
  }
  if (lb_cpu_has(cpu, LB_FEATURE_ARCH_LBR))
    row_set_arch(host, ret_row);
  if (lb_cpu_has(cpu, LB_FEATURE_LBR_V2))
    row_set_v2(host, ret_row);
  return lb_cpu_depth(&ret_row->cpu) ? 0 : -ENODEV;
}
