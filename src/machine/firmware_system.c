/* SPDX-License-Identifier: Apache-2.0
 *
 * INT 11h, 12h, 15h, and the ends of hardware interrupts: the machine's equipment, A20, waiting. All other INT 15h
 * functions return CF = 1, AH = 86h, as a BIOS does.
 */
#include "machine/firmware.h"

#define UNSUPPORTED 0x86

bool firmware_equipment(struct machine *machine)
{
  set16(machine, RAX, (uint16_t)guest_get(machine, BDA_EQUIPMENT, 2));
  return false;
}

bool firmware_memory_size(struct machine *machine)
{
  set16(machine, RAX, (uint16_t)guest_get(machine, BDA_MEMORY, 2));
  return false;
}

/* ---- hardware interrupts ---- */

bool firmware_eoi(struct machine *machine)
{
  board_out(machine->board, 0x20, 1, 0x20);
  return false;
}

bool firmware_eoi_both(struct machine *machine)
{
  board_out(machine->board, 0xA0, 1, 0x20);
  board_out(machine->board, 0x20, 1, 0x20);
  return false;
}

/* IRQ 13: releases FERR#. */
bool firmware_coprocessor(struct machine *machine)
{
  board_out(machine->board, 0xF0, 1, 0);
  return false;
}

/* ---- INT 15h ---- */

/* AH=24h: port 92h bit 1 opens the gate. */
static void system_a20(struct machine *m)
{
  uint8_t function = get_low(m, RAX);
  uint8_t port = (uint8_t)(board_in(m->board, 0x92, 1) & ~1u); /* bit 0 would reset */

  switch (function) {
  case 0:
  case 1:
    board_out(m->board, 0x92, 1, function ? port | 2u : port & ~2u);
    break;
  case 2:
    set_low(m, RAX, m->memory.a20_mask == UINT64_MAX);
    break;
  case 3:
    set16(m, RBX, 3); /* by the keyboard controller and by port 92h */
    break;
  default:
    guest_fail(m, UNSUPPORTED);
    return;
  }
  guest_succeed(m, 0);
}

/* AH=86h waits for CX:DX microseconds. Time is skipped up to the next event; then the stub enables interrupts and calls
 * again. */
static bool system_wait(struct machine *m)
{
  uint64_t now = cpu_cycles(m->cpu), deadline = board_deadline(m->board);
  uint64_t wanted = ((uint64_t)get16(m, RCX) << 16 | get16(m, RDX)) * 1000;

  if (m->wait_until == 0)
    m->wait_until = now + wanted;
  if (now >= m->wait_until) {
    m->wait_until = 0;
    guest_set_flag(m, FLAG_CF, false);
    return false;
  }
  uint64_t until = deadline < m->wait_until ? deadline : m->wait_until;
  if (until > now)
    cpu_idle(m->cpu, until - now);
  cpu_kick(m->cpu); /* the board is told the time before the guest continues */
  return true;
}

/* AH=C0h: the table of the configuration. AH=C1h: segment of the extended data area. */
static void system_tables(struct machine *m, uint8_t function)
{
  if (function == 0xC0) {
    cpu_load_real_segment(m->cpu, ES, FIRMWARE_SEGMENT);
    set16(m, RBX, ROM_CONFIG_TABLE);
    guest_succeed(m, 0);
    return;
  }
  cpu_load_real_segment(m->cpu, ES, (uint16_t)guest_get(m, BDA_EBDA, 2));
  guest_set_flag(m, FLAG_CF, false);
}

static void system_memory(struct machine *m)
{
  switch (get_low(m, RAX)) {
  case 0x01:
    memory_map_e801(m);
    break;
  case 0x20:
    memory_map_e820(m);
    break;
  default:
    guest_fail(m, UNSUPPORTED);
  }
}

bool firmware_system(struct machine *machine)
{
  uint8_t function = get_high(machine, RAX);

  switch (function) {
  case 0x24:
    system_a20(machine);
    break;
  case 0x4F: /* a key, unchanged: CF stays as INT 9 set it */
    break;
  case 0x86:
    return system_wait(machine);
  case 0x87:
    memory_map_move(machine);
    break;
  case 0x88:
    memory_map_88(machine);
    break;
  case 0x90: /* a device waits, a device is done: for operating systems to hook */
  case 0x91:
    guest_succeed(machine, 0);
    break;
  case 0xC0:
  case 0xC1:
    system_tables(machine, function);
    break;
  case 0xE8:
    system_memory(machine);
    break;
  default:
    guest_fail(machine, UNSUPPORTED);
  }
  return false;
}
