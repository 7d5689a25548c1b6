/* SPDX-License-Identifier: Apache-2.0
 *
 * The processor's time, and the requests that end a run of blocks early: kicks, traps, lines and signals. The run loop
 * (run.c) handles them.
 */
#include "cpu/block.h"
#include "cpu/run.h"

#define WORK_MAX (UINT64_C(1) << 30)

void cpu_work(struct cpu *cpu, uint64_t cycles)
{
  run_pass_cycles(cpu, (unsigned)(cycles < WORK_MAX ? cycles : WORK_MAX));
}

uint64_t cpu_retired(const struct cpu *cpu)
{
  uint64_t begun = cpu->retired_base + (uint64_t)(cpu->budget_start - cpu->budget);

  return begun - (cpu->at ? cpu->at->left : 0);
}

uint64_t cpu_cycles(const struct cpu *cpu)
{
  return cpu_retired(cpu) + cpu->extra_cycles;
}

/* Neither the counters nor the clock of records advance while the processor is halted. */
void cpu_idle(struct cpu *cpu, uint64_t cycles)
{
  cpu->extra_cycles += cycles;
  if (cpu->activity == CPU_HALTED)
    cpu->reported += cycles;
}

void cpu_stand(struct cpu *cpu, uint64_t until)
{
  uint64_t now = cpu_cycles(cpu);

  if (until <= now)
    return;
  cpu->extra_cycles += until - now;
  cpu->reported += until - now;
}

/* Takes the budget away, so that the run loop checks for events after this instruction; prepare gives it back. */
static void interrupt_blocks(struct cpu *cpu)
{
  if (cpu->budget <= 0)
    return;
  cpu->budget_held += cpu->budget;
  cpu->budget_start -= cpu->budget;
  cpu->budget = 0;
}

void cpu_kick(struct cpu *cpu)
{
  cpu->is_kicked = true;
  interrupt_blocks(cpu);
}

void cpu_trap(struct cpu *cpu, uint32_t bits)
{
  cpu->debug_due |= bits;
  interrupt_blocks(cpu);
}

/* ---- from outside ---- */

void cpu_set_line(struct cpu *cpu, enum cpu_line line, bool is_high)
{
  cpu->lines = (uint8_t)(is_high ? cpu->lines | 1u << line : cpu->lines & ~(1u << line));
  if (is_high)
    interrupt_blocks(cpu);
}

void cpu_signal(struct cpu *cpu, enum cpu_signal signal)
{
  cpu->signals |= (uint8_t)signal;
  interrupt_blocks(cpu);
}
