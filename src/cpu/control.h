/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the files of the system group share: control.c, privileged.c, idle.c, debug.c, msr.c, cpuid.c,
 * smm.c, reset.c, port.c.
 */
#ifndef CPU_CONTROL_H
#define CPU_CONTROL_H

#include "cpu/fault.h"
#include "cpu/insn.h"
#include "cpu/system.h"

/* Raises #GP(0) unless CPL is 0. Real mode has CPL 0, virtual-8086 mode 3. */
static inline void control_check_privilege(struct cpu *cpu)
{
  if (cpu->cpl)
    fault_gp(cpu, 0);
}

/* Raises #GP(0) for SGDT, SIDT, SLDT, SMSW and STR above CPL 0 if CR4.UMIP is set. SDM vol. 3, 2.5. */
static inline void control_check_umip(struct cpu *cpu)
{
  if (cpu->cpl && (cpu->cr4 & CR4_UMIP))
    fault_gp(cpu, 0);
}

/* 48-bit linear addresses, sign-extended. */
static inline bool control_is_canonical(uint64_t address)
{
  return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

/* Sets EFER.LMA, and the recorder's view of it. */
void system_set_long_mode(struct cpu *cpu, bool is_active);

/* Bits of XCR0 and of CR4 that this CPU has. */
uint64_t system_xcr0_bits(const struct cpu *cpu);
uint32_t system_cr4_bits(const struct cpu *cpu);

/* Sets only FS.base or GS.base, as the MSRs and WRFSBASE do. */
static inline void control_set_base(struct cpu *cpu, unsigned segment, uint64_t base)
{
  cpu->segment[segment].base = base;
  cpu->segment[segment].linear_base = base;
}

/* The time-stamp counter. */
static inline uint64_t control_tsc(const struct cpu *cpu)
{
  return cpu_cycles(cpu) + cpu->tsc_offset;
}

/* msr_model.c: registers that can be read and written but have no effect. Return false if this CPU has none at that
 * address, or if it cannot be written. */
bool msr_model_read(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value);
bool msr_model_write(struct cpu *cpu, uint32_t msr, uint64_t value);
void msr_model_reset(struct cpu *cpu);

/* MISC_ENABLE as software sees it, whichever part holds it. */
uint64_t msr_misc_enable(const struct cpu *cpu);
enum {
  MISC_ENABLE_FAST_STRINGS = 1u << 0,
  MISC_ENABLE_MONITOR = 1u << 18,
  MISC_ENABLE_LIMIT_CPUID = 1u << 22,
};
#define MISC_ENABLE_XD_DISABLE (UINT64_C(1) << 34)

/* msr_memory.c: PAT and the memory-type range registers. */
bool msr_memory_owns(const struct cpu *cpu, uint32_t msr);
bool msr_memory_read(const struct cpu *cpu, uint32_t msr, uint64_t *ret_value);
bool msr_memory_write(struct cpu *cpu, uint32_t msr, uint64_t value); /* false: #GP(0) */

#endif
