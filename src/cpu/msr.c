/* SPDX-License-Identifier: Apache-2.0
 *
 * RDMSR, WRMSR and other instructions that read such registers: RDTSC, RDTSCP, RDPID, RDPMC. Addresses are offered to
 * the recorder first, then to the local APIC, then looked up here. An unknown address is #GP(0). SDM vol. 2 under these
 * names, vol. 4.
 */
#include "cpu/control.h"
#include "cpu/instruction.h"
#include "cpu/key.h"
#include "cpu/msr_condition.h"
#include "cpu/run.h"
#include "cpu/xsave.h"

enum {
  MSR_TSC = 0x10,
  MSR_APIC_BASE = 0x1B,
  MSR_TSC_ADJUST = 0x3B,
  MSR_MISC_ENABLE = 0x1A0,
  MSR_PERF_METRICS = 0x329,
  MSR_TSC_DEADLINE = 0x6E0,
  MSR_PKRS = 0x6E1,
  MSR_X2APIC = 0x800,
  MSR_X2APIC_LAST = 0x8FF,
  MSR_XSS = 0xDA0,
};
#define MSR_EFER 0xC0000080u
#define MSR_FS_BASE 0xC0000100u
#define MSR_GS_BASE 0xC0000101u

#define APIC_BASE_EXTD (1u << 10)

/* Values in msr.def. */
#define PATCH_LEVEL (UINT64_C(0x0F0000F0) << 32)
#define PATCH_LEVEL_AMD UINT64_C(0x0F0000F0)
#define PLATFORM_INFO (SYSTEM_TSC_PER_SECOND / 100000000 << 8)

enum write_rule { RULE_ANY, RULE_CANONICAL, RULE_LOW, RULE_UPPER_FAULTS };
enum { WRITE_IGNORED, WRITE_FAULTS };

static uint64_t *kept_register(struct cpu *cpu, uint32_t msr, enum write_rule *ret_rule)
{
#define MSR_KEPT(address, field, rule, condition, name)                                                                \
  if (msr == (address) && (condition)) {                                                                               \
    *ret_rule = RULE_##rule;                                                                                           \
    return &cpu->field;                                                                                                \
  }
#define MSR_FIXED(first, last, value, write, condition, name)
#include "cpu/msr.def"
#undef MSR_KEPT
#undef MSR_FIXED
  return NULL;
}

static bool fixed_register(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value, unsigned *ret_write)
{
#define MSR_KEPT(address, field, rule, condition, name)
#define MSR_FIXED(first, last, value, write, condition, name)                                                          \
  if (msr - (first) <= (last) - (first) && (condition)) {                                                              \
    *ret_value = value;                                                                                                \
    *ret_write = WRITE_##write;                                                                                        \
    return true;                                                                                                       \
  }
#include "cpu/msr.def"
#undef MSR_KEPT
#undef MSR_FIXED
  return false;
}

/* ---- registers with side effects ---- */

static bool has_efer(const struct cpu *cpu)
{
  return system_has(cpu, FEATURE_LM) || system_has(cpu, FEATURE_NX) || system_has(cpu, FEATURE_SYSCALL);
}

/* LMA is read-only, and a value written to it is ignored. LME may not change while paging is on. */
static bool efer_write(struct cpu *cpu, uint64_t value)
{
  uint64_t kept = (system_has(cpu, FEATURE_SYSCALL) ? EFER_SCE : 0u) | (system_has(cpu, FEATURE_LM) ? EFER_LME : 0u) |
                  (system_has(cpu, FEATURE_NX) ? EFER_NXE : 0u);
  uint64_t changed = (value ^ cpu->efer) & kept;

  if (value & ~(kept | (system_has(cpu, FEATURE_LM) ? EFER_LMA : 0u)))
    return false;
  if ((changed & EFER_LME) && (cpu->cr0 & CR0_PG))
    return false;
  cpu->efer = (value & kept) | (cpu->efer & EFER_LMA);
  if (changed & EFER_NXE) {
    access_flush(cpu, true);
    lb_recorder_flush(&cpu->recorder);
  }
  return true;
}

/* A write to either register moves the other by the same amount. SDM vol. 3, 17.15.3. */
static void tsc_move(struct cpu *cpu, uint64_t distance)
{
  cpu->tsc_offset += distance;
  cpu->tsc_adjust += distance;
}

/* P6, Pentium M and the Pentium 4 below model 3 take 32 bits and clear the rest: SDM vol. 3, 17.15. */
static void tsc_write(struct cpu *cpu, uint64_t value)
{
  if (system_is_intel(cpu) && !system_is_since(cpu, GENERATION_PRESCOTT) &&
      !system_is_since(cpu, GENERATION_BONNELL_EARLY))
    value = (uint32_t)value;
  tsc_move(cpu, value - control_tsc(cpu));
}

static bool is_apic(const struct cpu *cpu, uint32_t msr)
{
  if (msr >= MSR_X2APIC && msr <= MSR_X2APIC_LAST)
    return system_has(cpu, FEATURE_X2APIC);
  return (msr == MSR_APIC_BASE && system_has(cpu, FEATURE_APIC)) ||
         (msr == MSR_TSC_DEADLINE && system_has(cpu, FEATURE_TSC_DEADLINE));
}

/* The board's clock counts from power-on. The guest's deadline is in ticks of a counter that it may have moved. A
 * deadline that has passed becomes 1. */
static uint64_t deadline_to_board(const struct cpu *cpu, uint64_t deadline)
{
  uint64_t now = control_tsc(cpu);

  return deadline == 0 ? 0 : deadline <= now ? 1 : cpu_cycles(cpu) + (deadline - now);
}

static bool apic_read(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
  if (cpu->bus.apic_read(cpu->bus.data, msr, ret_value) < 0)
    return false;
  if (msr == MSR_TSC_DEADLINE && *ret_value)
    *ret_value += cpu->tsc_offset;
  return true;
}

static bool apic_write(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  if (msr == MSR_TSC_DEADLINE)
    value = deadline_to_board(cpu, value);
  if (msr == MSR_APIC_BASE &&
      ((value >> SYSTEM_PHYSICAL_BITS) || ((value & APIC_BASE_EXTD) && !system_has(cpu, FEATURE_X2APIC))))
    return false;
  return cpu->bus.apic_write(cpu->bus.data, msr, value) >= 0;
}

uint64_t msr_misc_enable(const struct cpu *cpu)
{
  uint64_t value;
  bool is_recorders = lb_recorder_rdmsr(&cpu->recorder, MSR_MISC_ENABLE, &value) == LB_MSR_OK;

  return is_recorders ? value : cpu->misc_enable;
}

/* ---- RDMSR ---- */

static bool own_read(struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
  enum write_rule rule;
  unsigned write;
  const uint64_t *place = kept_register(cpu, msr, &rule);

  if (place) {
    *ret_value = *place;
    return true;
  }
  if (msr_memory_owns(cpu, msr))
    return msr_memory_read(cpu, msr, ret_value);
  switch (msr) {
  case MSR_TSC:
    *ret_value = control_tsc(cpu);
    return true;
  case MSR_TSC_ADJUST:
    *ret_value = cpu->tsc_adjust;
    return system_has(cpu, FEATURE_TSC_ADJUST);
  case MSR_EFER:
    *ret_value = cpu->efer;
    return has_efer(cpu);
  case MSR_FS_BASE:
  case MSR_GS_BASE:
    *ret_value = cpu->segment[msr == MSR_FS_BASE ? FS : GS].base;
    return system_has(cpu, FEATURE_LM);
  case MSR_XSS:
    *ret_value = cpu->xss;
    return system_has(cpu, FEATURE_XSAVES);
  case MSR_PKRS:
    *ret_value = cpu->pkrs;
    return system_has(cpu, FEATURE_PKS);
  default:
    return fixed_register(cpu, msr, ret_value, &write) || msr_model_read(cpu, msr, ret_value);
  }
}

bool system_read_msr(struct cpu *cpu, uint32_t msr, uint64_t *ret_value)
{
  enum lb_msr_answer answer = lb_recorder_rdmsr(&cpu->recorder, msr, ret_value);

  if (answer != LB_MSR_FOREIGN)
    return answer == LB_MSR_OK;
  if (is_apic(cpu, msr))
    return apic_read(cpu, msr, ret_value);
  return own_read(cpu, msr, ret_value);
}

const struct insn *control_rdmsr(struct cpu *cpu, const struct insn *insn)
{
  uint64_t value = 0;

  control_check_privilege(cpu);
  run_sync(cpu);
  if (!system_read_msr(cpu, (uint32_t)cpu->r[RCX], &value))
    fault_gp(cpu, 0);
  cpu->r[RAX] = (uint32_t)value;
  cpu->r[RDX] = value >> 32;
  return insn + 1;
}

/* ---- WRMSR ---- */

static bool kept_write(const struct cpu *cpu, uint64_t *place, uint64_t value, enum write_rule rule)
{
  if (rule == RULE_CANONICAL && system_has(cpu, FEATURE_LM) && !control_is_canonical(value))
    return false;
  if (rule == RULE_UPPER_FAULTS && value >> 32)
    return false;
  *place = rule == RULE_LOW || (rule == RULE_CANONICAL && !system_has(cpu, FEATURE_LM)) ? (uint32_t)value : value;
  return true;
}

static bool base_write(struct cpu *cpu, unsigned segment, uint64_t value)
{
  if (!system_has(cpu, FEATURE_LM) || !control_is_canonical(value))
    return false;
  control_set_base(cpu, segment, value);
  return true;
}

static bool pkrs_write(struct cpu *cpu, uint64_t value)
{
  if (!system_has(cpu, FEATURE_PKS) || value >> 32)
    return false;
  key_set_supervisor(cpu, (uint32_t)value);
  return true;
}

static bool own_write(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  enum write_rule rule;
  unsigned write;
  uint64_t constant;
  uint64_t *place = kept_register(cpu, msr, &rule);

  if (place)
    return kept_write(cpu, place, value, rule);
  if (msr_memory_owns(cpu, msr))
    return msr_memory_write(cpu, msr, value);
  switch (msr) {
  case MSR_TSC:
    tsc_write(cpu, value);
    return true;
  case MSR_TSC_ADJUST:
    if (system_has(cpu, FEATURE_TSC_ADJUST))
      tsc_move(cpu, value - cpu->tsc_adjust);
    return system_has(cpu, FEATURE_TSC_ADJUST);
  case MSR_EFER:
    return has_efer(cpu) && efer_write(cpu, value);
  case MSR_FS_BASE:
  case MSR_GS_BASE:
    return base_write(cpu, msr == MSR_FS_BASE ? FS : GS, value);
  case MSR_PKRS:
    return pkrs_write(cpu, value);
  case MSR_XSS:
    if (!system_has(cpu, FEATURE_XSAVES) || value & ~xsave_xss_bits(cpu))
      return false;
    cpu->xss = value;
    return true;
  default:
    return fixed_register(cpu, msr, &constant, &write) ? write == WRITE_IGNORED : msr_model_write(cpu, msr, value);
  }
}

bool system_write_msr(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  enum lb_msr_answer answer = lb_recorder_wrmsr(&cpu->recorder, msr, value);

  if (answer != LB_MSR_FOREIGN)
    return answer == LB_MSR_OK;
  if (is_apic(cpu, msr))
    return apic_write(cpu, msr, value);
  return own_write(cpu, msr, value);
}

const struct insn *control_wrmsr(struct cpu *cpu, const struct insn *insn)
{
  uint64_t value = (uint64_t)(uint32_t)cpu->r[RDX] << 32 | (uint32_t)cpu->r[RAX];

  control_check_privilege(cpu);
  run_sync(cpu);
  if (!system_write_msr(cpu, (uint32_t)cpu->r[RCX], value))
    fault_gp(cpu, 0);
  system_update_debug(cpu);
  return insn_leave(cpu, insn);
}

/* ---- counters and time ---- */

/* CR4.TSD and CR4.PCE apply at CPL > 0, and therefore in protected mode only. */
static void check_tsd(struct cpu *cpu)
{
  if (cpu->cpl && (cpu->cr4 & CR4_TSD))
    fault_gp(cpu, 0);
}

static void tsc_give(struct cpu *cpu)
{
  uint64_t now = control_tsc(cpu);

  cpu->r[RAX] = (uint32_t)now;
  cpu->r[RDX] = now >> 32;
}

const struct insn *control_rdtsc(struct cpu *cpu, const struct insn *insn)
{
  check_tsd(cpu);
  tsc_give(cpu);
  return insn + 1;
}

const struct insn *control_rdtscp(struct cpu *cpu, const struct insn *insn)
{
  check_tsd(cpu);
  tsc_give(cpu);
  cpu->r[RCX] = (uint32_t)cpu->tsc_aux;
  return insn + 1;
}

const struct insn *control_rdpid(struct cpu *cpu, const struct insn *insn)
{
  reg_set(cpu, insn->op[0], insn_is_64(cpu) ? 8 : 4, cpu->tsc_aux);
  return insn + 1;
}

#define RDPMC_METRICS 0x20000000u /* ECX for PERF_METRICS: Linux events/intel/core.c, INTEL_PMC_FIXED_RDPMC_METRICS */

/* Reads the counter with this number. Bit 30 of ECX means fixed counters. On the Pentium 4, bit 31 asks for the lower
 * 32 bits only, which is faster. */
static bool counter_read(const struct cpu *cpu, uint32_t number, uint64_t *ret_value)
{
  static const enum lb_register ids[] = {LB_REG_PMC, LB_REG_P4_COUNTER, LB_REG_AMD_PERF_CTR, LB_REG_K7_PERFCTR};
  bool is_half = cpu->model->pmu->kind == LB_PMU_P4 && number >> 31;
  bool is_fixed = number >> 30 & 1;
  struct lb_register_range range = {0};

  if (number == RDPMC_METRICS)
    return lb_recorder_rdmsr(&cpu->recorder, MSR_PERF_METRICS, ret_value) == LB_MSR_OK;
  for (unsigned i = 0; i < sizeof(ids) / sizeof(ids[0]) && !range.count && !is_fixed; i++)
    range = lb_cpu_register(cpu->model, ids[i]);
  if (is_fixed)
    range = lb_cpu_register(cpu->model, LB_REG_FIXED_CTR);
  number &= is_half ? 0x7FFFFFFF : ~(is_fixed ? 1u << 30 : 0u);
  if (number >= range.count)
    return false;
  if (lb_recorder_rdmsr(&cpu->recorder, range.first + number * range.stride, ret_value) != LB_MSR_OK)
    return false;
  *ret_value = is_half ? (uint32_t)*ret_value : *ret_value;
  return true;
}

const struct insn *control_rdpmc(struct cpu *cpu, const struct insn *insn)
{
  uint64_t value = 0;

  if (cpu->cpl && !(cpu->cr4 & CR4_PCE))
    fault_gp(cpu, 0);
  run_sync(cpu);
  if (!counter_read(cpu, (uint32_t)cpu->r[RCX], &value))
    fault_gp(cpu, 0);
  cpu->r[RAX] = (uint32_t)value;
  cpu->r[RDX] = value >> 32;
  return insn + 1;
}
