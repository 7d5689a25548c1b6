/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults: the only way to leave an instruction unfinished. The run loop delivers the exception (interrupt.c).
 */
#ifndef CPU_FAULT_H
#define CPU_FAULT_H

#include "cpu/cpu.h"

enum cpu_exception {
  EXCEPTION_DE = 0,
  EXCEPTION_DB = 1,
  EXCEPTION_NMI = 2,
  EXCEPTION_BP = 3,
  EXCEPTION_OF = 4,
  EXCEPTION_BR = 5,
  EXCEPTION_UD = 6,
  EXCEPTION_NM = 7,
  EXCEPTION_DF = 8,
  EXCEPTION_TS = 10,
  EXCEPTION_NP = 11,
  EXCEPTION_SS = 12,
  EXCEPTION_GP = 13,
  EXCEPTION_PF = 14,
  EXCEPTION_MF = 16,
  EXCEPTION_AC = 17,
  EXCEPTION_MC = 18,
  EXCEPTION_XM = 19,
};

/* Raises a fault of the current instruction. `error` is pushed for vectors that have an error code. The caller sets CR2
 * before a #PF, and puts the DR6 bits of a #DB that is a fault into cpu->debug_due. */
_Noreturn void fault_raise(struct cpu *cpu, enum cpu_exception vector, uint32_t error);

_Noreturn static inline void fault_gp(struct cpu *cpu, uint32_t error)
{
  fault_raise(cpu, EXCEPTION_GP, error);
}

_Noreturn static inline void fault_ud(struct cpu *cpu)
{
  fault_raise(cpu, EXCEPTION_UD, 0);
}

/* Called when an instruction is about to do something that the run loop must handle right after it, such as writing to
 * a device. Unless the instruction is the last of its block, it restarts as a block of its own. Nothing may be
 * committed yet. */
void fault_unless_alone(struct cpu *cpu);

/* Ends the run at an instruction that the CPU has but this interpreter lacks. */
_Noreturn void fault_unimplemented(struct cpu *cpu, const char *what);

#endif
