/* SPDX-License-Identifier: Apache-2.0
 *
 * The end of ACPI's S3 (suspend to RAM), as QEMU and its firmware, SeaBIOS, do it. The processors had no power, so they
 * get a power-on reset. Devices are reset too; memory is kept. The firmware sets up what software expects of it and
 * continues in real mode at the firmware waking vector of the FACS (ACPI specification 5.2.10), with interrupts off.
 */
#include <string.h>

#include "machine/firmware.h"

#define FACS_ALIGNMENT 64u
#define FACS_VECTOR 12u
#define CMOS_SHUTDOWN 0x0F /* SeaBIOS also clears this register when it resumes */

bool machine_is_asleep(const struct machine *machine)
{
  return board_is_asleep(machine->board);
}

void machine_wake(struct machine *machine)
{
  board_request_wake(machine->board);
}

/* The waking vector that the guest has written into the FACS, an address in the first MiB; 0: none. The table lies in
 * the guest's memory and may hold anything. */
static uint32_t waking_vector(const struct machine *m)
{
  for (uint64_t place = m->tables; place + FACS_ALIGNMENT <= m->memory.low; place += FACS_ALIGNMENT) {
    uint8_t facs[FACS_VECTOR + 4];

    if (!memory_read(&m->memory, place, facs, sizeof(facs)) || memcmp(facs, "FACS", 4) != 0)
      continue;
    uint32_t vector = bytes_get_u32(facs + FACS_VECTOR);
    return vector < EXTENDED_START ? vector : 0;
  }
  return 0;
}

/* Keeps the state of RDRAND's numbers: otherwise they would be the same after each sleep. */
static void reset_cpu(struct cpu *cpu)
{
  uint64_t random = cpu->random;

  cpu_reset(cpu, false);
  cpu->random = random;
}

void sleep_end(struct machine *machine)
{
  uint32_t vector = waking_vector(machine);

  if (vector == 0) {
    machine_power_on(machine, false);
    start_apply(machine);
    return;
  }
  turn_reset(machine);
  for (unsigned i = 0; i < machine->cpu_count; i++)
    reset_cpu(machine->cpus[i]);
  board_wake(machine->board);
  machine->memory.a20_mask = UINT64_MAX;
  machine->wait_until = 0;
  machine->string = (struct string_progress){0};
  board_out(machine->board, 0x70, 1, CMOS_SHUTDOWN);
  board_out(machine->board, 0x71, 1, 0);
  firmware_resume(machine);
  enter_real(machine, (uint16_t)(vector >> 4), vector & 15, (uint16_t)(EBDA_START >> 4), 0x400);
  cpu_set_flags(machine->cpu, FLAG_1);
}
