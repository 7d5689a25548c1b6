/* SPDX-License-Identifier: Apache-2.0
 *
 * Detects a guest that is idle for ever. Two of three cases are simple: interrupts are off, or nothing is left that
 * could interrupt (run.c). The third is the usual end of a boot sector: `jmp $`, or a loop of HLT, with interrupts on
 * and the clock ticking. It is idle when it has come back QUIET_MAX times in a row to a loop that does nothing (a jump
 * to itself; or HLT, jumps, NOP, PAUSE and STI alone; or the firmware's own wait for a key) and all that ran in between
 * was the firmware: every interrupt had a real-mode vector into the ROM, and so had 1Ch, which the firmware calls. A
 * guest with a handler of its own is never idle in this way, because the handler may change what the loop later sees.
 */
#include "machine/firmware.h"

#define QUIET_MAX 20u
#define LOOP_MAX 8u /* instructions of a loop that does nothing */

void idle_disturb(struct machine *machine)
{
  machine->idle.is_foreign = true;
}

void idle_interrupt(struct machine *machine, uint8_t vector)
{
  if (!guest_vector_is_rom(machine, vector) || !guest_vector_is_rom(machine, 0x1C))
    idle_disturb(machine);
}

/* Length of an instruction that does nothing, with the distance that it jumps; 0: it does something. */
static unsigned nothing_length(const struct cpu *cpu, const uint8_t *bytes, int64_t *ret_distance)
{
  *ret_distance = 0;
  switch (bytes[0]) {
  case 0x90: /* NOP */
  case 0xFB: /* STI */
    return 1;
  case 0xF3: /* PAUSE */
    return bytes[1] == 0x90 ? 2 : 0;
  case 0xEB: /* JMP rel8 */
    *ret_distance = bytes[1] < 0x80 ? bytes[1] : bytes[1] - 0x100;
    return 2;
  case 0xE9: /* JMP rel16, rel32 */
    if ((cpu->mode & MODE_BITS) == MODE_16) {
      *ret_distance = (int16_t)(bytes[1] | bytes[2] << 8);
      return 3;
    }
    *ret_distance = (int32_t)(bytes[1] | (uint32_t)bytes[2] << 8 | (uint32_t)bytes[3] << 16 | (uint32_t)bytes[4] << 24);
    return 5;
  default:
    return 0;
  }
}

/* After a HLT: does execution come to a HLT again, without doing anything? */
static bool loop_does_nothing(struct machine *m)
{
  const struct cpu *cpu = m->cpu;
  uint64_t mask = (cpu->mode & MODE_BITS) == MODE_16 ? 0xFFFF : cpu->linear_mask;
  uint64_t rip = cpu->rip;

  for (unsigned i = 0; i < LOOP_MAX; i++) {
    uint8_t bytes[5];
    int64_t distance;

    guest_read(m, (cpu->segment[CS].linear_base + rip) & cpu->linear_mask, bytes, sizeof(bytes));
    if (bytes[0] == 0xF4)
      return true;
    unsigned length = nothing_length(cpu, bytes, &distance);
    if (length == 0)
      return false;
    rip = (rip + length + (uint64_t)distance) & mask;
  }
  return false;
}

bool idle_waits_for_key(const struct machine *machine)
{
  const struct cpu *cpu = machine->cpu;

  return !(cpu->cr0 & CR0_PE) && cpu->segment[CS].linear_base == FIRMWARE_START && cpu->rip == machine->key_wait;
}

bool idle_is_forever(struct machine *machine, enum cpu_stop stop)
{
  struct idle *idle = &machine->idle;
  bool is_nothing = stop == CPU_STOP_SPINNING || idle_waits_for_key(machine) || loop_does_nothing(machine);

  idle->quiet = is_nothing && !idle->is_foreign ? idle->quiet + 1 : 0;
  idle->is_foreign = false;
  return idle->quiet > QUIET_MAX;
}
