/* SPDX-License-Identifier: Apache-2.0
 *
 * Breakpoints, watchpoints and caught exceptions of a debugger outside the guest: the part of cpu.h's points that the
 * rest of the folder calls. If there are none, there is no overhead: blocks are built and memory is accessed as usual.
 */
#ifndef CPU_POINT_H
#define CPU_POINT_H

#include "cpu/insn.h"

/* Whether there is a code point at this linear address. */
bool point_is_at(const struct cpu *cpu, uint64_t linear);

/* The handler that replaces the instruction at a code point: the run ends before it. */
insn_handler point_run;

/* Reports that data was read or written; called while dr_access has DR_ACCESS_POINTS. */
void point_access(struct cpu *cpu, uint64_t linear, unsigned size, unsigned access);

/* Called when an exception is about to be delivered whose instruction or trap happens again when the processor
 * continues. Returns true if the run ends instead. */
bool point_catches(struct cpu *cpu, unsigned vector);

/* The same for cpu->fault, after RIP was set back to its instruction. */
bool point_catches_fault(struct cpu *cpu);

/* Called after a fault was delivered. If it could not be caught before (an interrupt that is lost, a task switch that
 * is done), the run ends now. */
void point_delivered(struct cpu *cpu, bool was_restartable);

/* Whether the instruction at cpu->rip would raise cpu->fault again. */
bool point_is_restartable(const struct cpu *cpu);

/* Called after each instruction or event: ends a single step. */
static inline void point_step(struct cpu *cpu)
{
  if (__builtin_expect(cpu->is_stepping, 0) && !cpu->hit.kind)
    cpu->hit.kind = CPU_HIT_STEP;
}

#endif
