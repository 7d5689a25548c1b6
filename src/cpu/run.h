/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations of the run loop: values that come back through cpu->door, and functions that it shares with cpu.c.
 */
#ifndef CPU_RUN_H
#define CPU_RUN_H

#include "cpu/cpu.h"

#define MISPREDICT_CYCLES 15u /* extra cycles of a mispredicted branch */

/* Adds cycles in which no instruction retires. They reduce the budget, too, since that ends at a deadline in time. */
static inline void run_pass_cycles(struct cpu *cpu, unsigned cycles)
{
  cpu->budget -= cycles;
  cpu->budget_start -= cycles;
  cpu->extra_cycles += cycles;
}

enum { DOOR_FAULT = 1, DOOR_UNIMPLEMENTED = 2, DOOR_ALONE = 3 };

/* Reports the instructions before this one to the counters and the clock of records, so that a reader sees the same as
 * with a report for each instruction. */
void run_sync(struct cpu *cpu);

#endif
