/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a debugger outside the guest wants it to stop: the points and exceptions of cpu.h, for the rest of the folder.
 * Without any, there is no overhead: blocks are built and memory is accessed as usual.
 */
#ifndef CPU_POINT_H
#define CPU_POINT_H

#include "cpu/insn.h"

/* A code point at this linear address? */
bool point_is_at(const struct cpu *cpu, uint64_t linear);

/* The handler that replaces the instruction at a code point: the run ends before it. */
insn_handler point_run;

/* Data was read or written; with DR_ACCESS_POINTS in dr_access. */
void point_access(struct cpu *cpu, uint64_t linear, unsigned size, unsigned access);

/* An exception is about to be delivered, and its instruction or trap happens again when the processor runs on. Returns
 * true if the run ends instead. */
bool point_catches(struct cpu *cpu, unsigned vector);

/* The same for cpu->fault, when its instruction was given back. */
bool point_catches_fault(struct cpu *cpu);

/* A fault was delivered. If it could not be caught before (an interrupt that is lost, a task switch that is done), the
 * run ends now. */
void point_delivered(struct cpu *cpu, bool was_restartable);

/* Would the instruction at cpu->rip raise cpu->fault again? */
bool point_is_restartable(const struct cpu *cpu);

/* An instruction or event is over. */
static inline void point_step(struct cpu *cpu)
{
  if (__builtin_expect(cpu->is_stepping, 0) && !cpu->hit.kind)
    cpu->hit.kind = CPU_HIT_STEP;
}

#endif
