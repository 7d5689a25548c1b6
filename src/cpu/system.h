/* SPDX-License-Identifier: Apache-2.0
 *
 * Control registers, debug registers, MSRs, CPUID and SMM, for the run loop and other groups.
 */
#ifndef CPU_SYSTEM_H
#define CPU_SYSTEM_H

#include "cpu/generation.h"
#include "cpu/insn.h"
#include "isa/isa.h"

/* Features of the processor: numbers of bits in struct cpu_features. */
enum cpu_feature {
#define CPU_FEATURE(name, ...) FEATURE_##name,
#include "cpu/feature.def"
#undef CPU_FEATURE
  CPU_FEATURES,
};

static inline bool system_has(const struct cpu *cpu, enum cpu_feature feature)
{
  return cpu->features.words[feature / 64] >> feature % 64 & 1;
}

static inline bool system_is_intel(const struct cpu *cpu)
{
  return cpu->model->vendor == LB_VENDOR_INTEL;
}

/* Also Hygon, whose CPUs are Zen. */
static inline bool system_is_amd(const struct cpu *cpu)
{
  return cpu->model->vendor == LB_VENDOR_AMD || cpu->model->vendor == LB_VENDOR_HYGON;
}

/* True for a CPU of generation `first` and every later one of its line. */
static inline bool system_is_since(const struct cpu *cpu, enum generation_row first)
{
  return generation_is_since(generation_find(cpu->model), first);
}

/* The features that a CPU of the catalogue had and this interpreter (and the host, for vector instructions)
 * supports. */
struct cpu_features system_features(const struct lb_cpu *model);

/* Whether the CPU has this instruction; if not, it is #UD. Handlers check CR0, CR4 and XCR0 when they run. */
bool system_allows(const struct cpu *cpu, const struct isa_instruction *instruction);

/* The mnemonic as which this CPU executes an instruction: F3 BSF where others have TZCNT, NOP where they have ENDBR64.
 */
ZydisMnemonic system_mnemonic(const struct cpu *cpu, ZydisMnemonic mnemonic);

/* CPUID: EAX, EBX, ECX, EDX. */
void system_cpuid(const struct cpu *cpu, uint32_t leaf, uint32_t subleaf, uint32_t ret_registers[4]);

/* Ticks of the time-stamp counter in a second of the guest, as CPUID.15H and PLATFORM_INFO say: one cycle is 1 ns. */
#define SYSTEM_TSC_PER_SECOND UINT64_C(1000000000)

/* Width of physical addresses, as CPUID.80000008H says and paging checks. */
#define SYSTEM_PHYSICAL_BITS 40

/* Handlers of instructions that share their mnemonic with others (decode.c): MOV to and from control and debug
 * registers, and the firmware's own instruction. */
insn_handler control_mov_cr, control_mov_dr, control_service;

/* Write control registers as MOV to CR does, with all checks (#GP(0)) and flushes. */
void system_set_cr0(struct cpu *cpu, uint64_t value);
void system_set_cr3(struct cpu *cpu, uint64_t value);
void system_set_cr4(struct cpu *cpu, uint64_t value);

/* RDMSR and WRMSR at CPL 0. Return false for #GP(0). After a write, the caller calls system_update_debug. */
bool system_read_msr(struct cpu *cpu, uint32_t msr, uint64_t *ret_value);
bool system_write_msr(struct cpu *cpu, uint32_t msr, uint64_t value);

/* Called after DR7 or the recorder's registers changed. Recomputes which debug registers watch code and data, whether
 * counters run, and whether the recorder is armed (cpu->watch). */
void system_update_debug(struct cpu *cpu);

/* Return the DR6 bits of the code breakpoints at `linear`. The second function is for breakpoints that fault: it also
 * signals the BPi# pins. */
uint32_t system_code_matches(const struct cpu *cpu, uint64_t linear);
uint32_t system_code_breakpoints(struct cpu *cpu, uint64_t linear);
/* Called after a data access or I/O: sets debug_due for the breakpoints that match. */
void system_data_breakpoints(struct cpu *cpu, uint64_t linear, unsigned size, unsigned access);
void system_io_breakpoints(struct cpu *cpu, uint16_t port, unsigned size);

/* Enters SMM: SDM vol. 3 chapter 34. */
void system_enter_smm(struct cpu *cpu);

/* INIT, and power-on values of registers. */
void system_init_signal(struct cpu *cpu);

/* Whether no other processor shares its memory. */
static inline bool system_is_alone(const struct cpu *cpu)
{
  return cpu->memory->cpu_count == 1;
}

/* system_waits_masked: whether MWAIT waits and even a masked interrupt ends it. system_end_mwait ends the wait. */
bool system_waits_masked(const struct cpu *cpu);
void system_end_mwait(struct cpu *cpu);
void system_reset_registers(struct cpu *cpu, bool is_warm);

/* Checks I/O permission by CPL, IOPL and the TSS bitmap. Raises #GP(0). */
void system_check_io(struct cpu *cpu, uint16_t port, unsigned size);

#endif
