/* SPDX-License-Identifier: Apache-2.0
 *
 * Control registers: MOV to and from CR0, CR2, CR3, CR4, CR8, and LMSW, SMSW, CLTS. All state that depends on them
 * (cached translations, modes, the recorder's view of memory) is updated here. SDM vol. 2 "MOV - Move to/from Control
 * Registers", vol. 3 2.5, 4.10.4.1 and 9.8.5.
 */
#include "cpu/control.h"
#include "cpu/fault.h"
#include "cpu/instruction.h"
#include "cpu/paging.h"
#include "cpu/segment.h"
#include "cpu/system.h"

#define CR0_KEPT (CR0_PE | CR0_MP | CR0_EM | CR0_TS | CR0_NE | CR0_WP | CR0_AM | CR0_NW | CR0_CD | CR0_PG)

static bool uses_pdptes(uint32_t cr0, uint32_t cr4, uint64_t efer)
{
  return (cr0 & CR0_PG) && (cr4 & CR4_PAE) && !(efer & EFER_LME);
}

static void forget_translations(struct cpu *cpu, bool with_global)
{
  access_flush(cpu, with_global);
  lb_recorder_flush(&cpu->recorder);
}

void system_set_long_mode(struct cpu *cpu, bool is_active)
{
  bool was_active = cpu->efer & EFER_LMA;

  cpu->efer = is_active ? cpu->efer | EFER_LMA : cpu->efer & ~(uint64_t)EFER_LMA;
  if (was_active != is_active)
    lb_recorder_long_mode(&cpu->recorder, is_active);
}

/* ---- CR0 ---- */

/* Setting PG with LME activates IA-32e mode: PAE must be 1, CS not 64-bit and TR no 16-bit TSS. SDM vol. 3, 9.8.5.3. */
static void check_activation(struct cpu *cpu)
{
  unsigned tss = cpu->segment[TR].access & (SEGMENT_P | SEGMENT_S | 0xD);

  if (!(cpu->cr4 & CR4_PAE) || (cpu->segment[CS].access & SEGMENT_L) || tss == (SEGMENT_P | 1))
    fault_gp(cpu, 0);
}

static void check_cr0(struct cpu *cpu, uint32_t value)
{
  if ((value & CR0_PG) && !(value & CR0_PE))
    fault_gp(cpu, 0);
  if ((value & CR0_NW) && !(value & CR0_CD))
    fault_gp(cpu, 0);
  if (!(value & CR0_PG) && (cpu->cr0 & CR0_PG) && (insn_is_64(cpu) || (cpu->cr4 & CR4_PCIDE)))
    fault_gp(cpu, 0);
  if ((value & CR0_PG) && !(cpu->cr0 & CR0_PG) && (cpu->efer & EFER_LME))
    check_activation(cpu);
}

void system_set_cr0(struct cpu *cpu, uint64_t wanted)
{
  uint32_t value = ((uint32_t)wanted & CR0_KEPT) | CR0_ET; /* other bits of 31:0 are ignored */
  uint32_t changed = value ^ cpu->cr0;

  if (wanted >> 32)
    fault_gp(cpu, 0);
  check_cr0(cpu, value);
  if ((changed & (CR0_PG | CR0_CD | CR0_NW)) && uses_pdptes(value, cpu->cr4, cpu->efer) &&
      !paging_load_pdptes(cpu, cpu->cr3))
    fault_gp(cpu, 0);
  cpu->cr0 = value;
  system_set_long_mode(cpu, (value & CR0_PG) && (cpu->efer & EFER_LME));
  if (changed & (CR0_PG | CR0_PE | CR0_WP | CR0_AM)) {
    forget_translations(cpu, true);
    segment_update(cpu);
  }
}

/* ---- CR3 ---- */

/* Bit 63 with PCIDs: translations of the new context may be kept. Ours are always flushed, which is allowed: SDM vol.
 * 3, 4.10.4.1. */
#define CR3_KEEP (UINT64_C(1) << 63)

void system_set_cr3(struct cpu *cpu, uint64_t value)
{
  if (cpu->cr4 & CR4_PCIDE)
    value &= ~CR3_KEEP;
  if ((cpu->efer & EFER_LMA) && value >> SYSTEM_PHYSICAL_BITS)
    fault_gp(cpu, 0);
  if (uses_pdptes(cpu->cr0, cpu->cr4, cpu->efer) && !paging_load_pdptes(cpu, value))
    fault_gp(cpu, 0);
  cpu->cr3 = value;
  forget_translations(cpu, false);
}

/* ---- CR4 ---- */

uint32_t system_cr4_bits(const struct cpu *cpu)
{
  static const struct {
    uint32_t bits;
    uint8_t feature;
  } rows[] = {
    {CR4_VME | CR4_PVI, FEATURE_VME}, {CR4_TSD, FEATURE_TSC},           {CR4_DE, FEATURE_DE},
    {CR4_PSE, FEATURE_PSE},           {CR4_PAE, FEATURE_PAE},           {CR4_MCE, FEATURE_MCE},
    {CR4_PGE, FEATURE_PGE},           {CR4_OSFXSR, FEATURE_FXSR},       {CR4_OSXMMEXCPT, FEATURE_SSE},
    {CR4_UMIP, FEATURE_UMIP},         {CR4_FSGSBASE, FEATURE_FSGSBASE}, {CR4_OSXSAVE, FEATURE_XSAVE},
    {CR4_SMEP, FEATURE_SMEP},         {CR4_SMAP, FEATURE_SMAP},         {CR4_PCIDE, FEATURE_PCID},
    {CR4_PKE, FEATURE_PKU},           {CR4_PKS, FEATURE_PKS},
  };
  uint32_t bits = cpu->model->pmu->kind == LB_PMU_NONE ? 0 : CR4_PCE;
  for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
    if (system_has(cpu, rows[i].feature))
      bits |= rows[i].bits;
  return bits;
}

void system_set_cr4(struct cpu *cpu, uint64_t wanted)
{
  uint32_t value = (uint32_t)wanted;
  uint32_t changed = value ^ cpu->cr4;

  if (wanted & ~(uint64_t)system_cr4_bits(cpu))
    fault_gp(cpu, 0);
  if ((cpu->efer & EFER_LMA) && !(value & CR4_PAE))
    fault_gp(cpu, 0);
  if ((changed & value & CR4_PCIDE) && (!(cpu->efer & EFER_LMA) || (cpu->cr3 & 0xFFF))) /* SDM vol. 3, 4.10.1 */
    fault_gp(cpu, 0);
  if ((changed & (CR4_PAE | CR4_PGE | CR4_PSE | CR4_SMEP)) && uses_pdptes(cpu->cr0, value, cpu->efer) &&
      !paging_load_pdptes(cpu, cpu->cr3))
    fault_gp(cpu, 0);
  cpu->cr4 = value;
  if (changed & (CR4_PAE | CR4_PGE | CR4_PSE | CR4_PCIDE | CR4_SMEP | CR4_SMAP | CR4_PKE | CR4_PKS))
    forget_translations(cpu, true);
  if (changed & CR4_DE) /* it decides the meaning of R/W = 10B */
    system_update_debug(cpu);
}

/* ---- MOV ---- */

static uint64_t control_get(struct cpu *cpu, unsigned number)
{
  switch (number) {
  case 0:
    return cpu->cr0;
  case 2:
    return cpu->cr2;
  case 3:
    return cpu->cr3;
  case 4:
    return cpu->cr4;
  case 8:
    return cpu->bus.task_priority(cpu->bus.data) & 0xF;
  default:
    fault_ud(cpu);
  }
}

static void control_set(struct cpu *cpu, unsigned number, uint64_t value)
{
  switch (number) {
  case 0:
    system_set_cr0(cpu, value);
    break;
  case 2:
    cpu->cr2 = value;
    break;
  case 3:
    system_set_cr3(cpu, value);
    break;
  case 4:
    system_set_cr4(cpu, value);
    break;
  case 8:
    if (value > 15)
      fault_gp(cpu, 0);
    cpu->bus.set_task_priority(cpu->bus.data, (uint8_t)value);
    break;
  default:
    fault_ud(cpu);
  }
}

const struct insn *control_mov_cr(struct cpu *cpu, const struct insn *insn)
{
  bool is_write = insn_writes_special(insn);
  unsigned number = insn->op[is_write ? 0 : 1];
  unsigned place = insn->op[is_write ? 1 : 0];
  unsigned size = insn_is_64(cpu) ? 8 : 4;

  control_check_privilege(cpu);
  if (!is_write) {
    reg_set(cpu, place, size, control_get(cpu, number));
    return insn + 1;
  }
  control_set(cpu, number, reg_get(cpu, place, size));
  return insn_leave(cpu, insn);
}

/* ---- the machine status word ---- */

/* PE, MP, EM and TS; PE can be set but not cleared. */
const struct insn *control_lmsw(struct cpu *cpu, const struct insn *insn)
{
  control_check_privilege(cpu);
  uint32_t word = (uint32_t)(insn->form == FORM_MEM ? insn_load(cpu, insn, 2) : reg_get(cpu, insn->op[0], 2));
  uint32_t kept = cpu->cr0 & ~(uint32_t)(CR0_MP | CR0_EM | CR0_TS);
  system_set_cr0(cpu, kept | (word & (CR0_PE | CR0_MP | CR0_EM | CR0_TS)));
  return insn_leave(cpu, insn);
}

const struct insn *control_smsw(struct cpu *cpu, const struct insn *insn)
{
  control_check_umip(cpu);
  if (insn->form == FORM_MEM)
    insn_store(cpu, insn, 2, cpu->cr0);
  else
    reg_set(cpu, insn->op[0], insn->size, cpu->cr0);
  return insn + 1;
}

const struct insn *control_clts(struct cpu *cpu, const struct insn *insn)
{
  control_check_privilege(cpu);
  cpu->cr0 &= ~(uint32_t)CR0_TS;
  return insn + 1;
}
