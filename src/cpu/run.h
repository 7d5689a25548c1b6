/* SPDX-License-Identifier: Apache-2.0
 *
 * The run loop's own: what comes back through cpu->door, and what it shares with cpu.c.
 */
#ifndef CPU_RUN_H
#define CPU_RUN_H

#include "cpu/cpu.h"

#define MISPREDICT_CYCLES 15u /* that a mispredicted branch takes more */

/* Cycles in which no instruction retires, out of the budget too: it ends at a deadline, which is a time. */
static inline void run_pass_cycles(struct cpu *cpu, unsigned cycles)
{
  cpu->budget -= cycles;
  cpu->budget_start -= cycles;
  cpu->extra_cycles += cycles;
}

enum { DOOR_FAULT = 1, DOOR_UNIMPLEMENTED = 2, DOOR_ALONE = 3 };

/* Counters and the clock of records hear of the instructions before this one, as they do where they hear of each:
 * before somebody looks at them. */
void run_sync(struct cpu *cpu);

#endif
