/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs several processors in turn. They share one clock, which advances while one processor runs and the others stand
 * still (cpu_stand). Everything that one does therefore comes before all that the next one sees, its time-stamp counter
 * included. A turn takes TURN_TIME; it ends earlier if the processor waits (HLT, a jump to itself) or executes PAUSE.
 * Its end depends on the guest alone, not on where a run was cut. A single processor has one turn without end.
 */
#include "machine/state.h"

#include <assert.h>

#define TURN_TIME UINT64_C(2000) /* nanoseconds, of one instruction each */
#define WAITS_MOST UINT64_C(1)   /* instructions of a processor that only waits: the jump to itself, or HLT */

uint64_t machine_retired(const struct machine *machine)
{
  uint64_t retired = 0;

  for (unsigned i = 0; i < machine->cpu_count; i++)
    retired += cpu_retired(machine->cpus[i]);
  return retired;
}

void turn_settle(struct machine *machine)
{
  uint64_t now = cpu_cycles(machine->cpu);

  for (unsigned i = 0; i < machine->cpu_count; i++)
    if (machine->cpus[i] != machine->cpu)
      cpu_stand(machine->cpus[i], now);
}

static void turn_give(struct machine *m, unsigned number)
{
  uint64_t now = cpu_cycles(m->cpu);

  assert(number < m->cpu_count);
  m->cpu = m->cpus[number];
  cpu_stand(m->cpu, now);
  m->turn.number = number;
  m->turn.until = m->cpu_count > 1 ? now + TURN_TIME : UINT64_MAX;
  m->turn.retired = cpu_retired(m->cpu);
}

void turn_renew(struct machine *machine)
{
  turn_give(machine, machine->turn.number);
}

void turn_reset(struct machine *machine)
{
  turn_settle(machine);
  turn_give(machine, 0);
  machine->turn.waiting = 0;
}

uint64_t turn_left(const struct machine *machine)
{
  uint64_t now = cpu_cycles(machine->cpu);

  if (machine->cpu_count == 1)
    return UINT64_MAX;
  return machine->turn.until > now ? machine->turn.until - now : 0;
}

/* Gives the turn to the next processor. Returns true if all wait. */
static bool turn_next(struct machine *m, bool waits)
{
  struct turn *turn = &m->turn;
  bool did_nothing = cpu_retired(m->cpu) - turn->retired <= WAITS_MOST;

  turn->waiting = !waits ? 0 : did_nothing ? turn->waiting + 1 : 1;
  bool all_wait = turn->waiting >= m->cpu_count;
  if (all_wait)
    turn->waiting = 0;
  turn_give(m, all_wait ? 0 : (turn->number + 1) % m->cpu_count);
  return all_wait;
}

enum cpu_stop turn_run(struct machine *machine, uint64_t instructions, bool *ret_waits)
{
  struct cpu *cpu = machine->cpu;

  cpu_look_at_monitor(cpu);
  enum cpu_stop stop = cpu_run(cpu, instructions);
  bool waits = stop == CPU_STOP_HALTED || stop == CPU_STOP_SPINNING;
  *ret_waits = waits;
  if (machine->cpu_count == 1)
    return stop;
  bool has_paused = cpu->has_paused;
  cpu->has_paused = *ret_waits = false;
  if (stop == CPU_STOP_BUDGET && !has_paused && turn_left(machine))
    return stop;
  if (waits || stop == CPU_STOP_BUDGET)
    *ret_waits = turn_next(machine, waits);
  return !waits ? stop : machine->cpu->activity == CPU_RUNNING ? CPU_STOP_SPINNING : CPU_STOP_HALTED;
}

bool turn_is_interruptible(const struct machine *machine)
{
  for (unsigned i = 0; i < machine->cpu_count; i++)
    if (cpu_is_interruptible(machine->cpus[i]))
      return true;
  return false;
}

bool turn_is_disturbed(const struct machine *machine)
{
  for (unsigned i = 0; i < machine->cpu_count; i++)
    if (machine->cpus[i]->signals || machine->cpus[i]->lines)
      return true;
  return false;
}

bool turn_others_sleep(const struct machine *machine)
{
  for (unsigned i = 1; i < machine->cpu_count; i++)
    if (machine->cpus[i]->activity == CPU_RUNNING || cpu_is_interruptible(machine->cpus[i]))
      return false;
  return true;
}
