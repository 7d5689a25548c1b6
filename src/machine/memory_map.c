/* SPDX-License-Identifier: Apache-2.0
 *
 * The guest's memory map: one list, for INT 15h E820h, E801h, 88h and for multiboot's memory map; and INT 15h AH=87h,
 * which moves memory beyond 1 MiB.
 */
#include <string.h>

#include "base/base.h"
#include "machine/firmware.h"

unsigned memory_map(const struct machine *machine, struct map_range ret_ranges[MAP_MAX])
{
  const struct memory *memory = &machine->memory;
  const struct map_range ranges[MAP_MAX] = {
    {0, EBDA_START, MAP_USABLE},
    {EBDA_START, 0xA0000 - EBDA_START, MAP_RESERVED},
    {FIRMWARE_START, EXTENDED_START - FIRMWARE_START, MAP_RESERVED},
    {EXTENDED_START, machine->tables - EXTENDED_START, MAP_USABLE},
    {machine->tables, memory->low - machine->tables, MAP_ACPI},
    {0xFEC00000, 0x300000, MAP_RESERVED}, /* I/O APIC, HPET, local APIC */
    {0xFFFF0000, 0x10000, MAP_RESERVED},  /* the ROM again */
    {MEMORY_HIGH, memory->size - memory->low, MAP_USABLE},
  };
  unsigned count = memory->size > memory->low ? 8 : 7;

  memcpy(ret_ranges, ranges, count * sizeof(ranges[0]));
  return count;
}

/* EBX: which range; ECX: size of the buffer at ES:DI, 20 bytes or 24 with ACPI 3.0's attributes. */
void memory_map_e820(struct machine *machine)
{
  struct map_range ranges[MAP_MAX];
  unsigned count = memory_map(machine, ranges);
  uint32_t index = get32(machine, RBX), size = get32(machine, RCX) >= 24 ? 24 : 20;
  uint8_t entry[24];

  if (get32(machine, RDX) != 0x534D4150 || get32(machine, RCX) < 20 || index >= count) { /* "SMAP" */
    guest_fail(machine, 0x86);
    return;
  }
  bytes_put_u64(entry, ranges[index].start);
  bytes_put_u64(entry + 8, ranges[index].size);
  bytes_put_u32(entry + 16, ranges[index].type);
  bytes_put_u32(entry + 20, 1); /* bit 0: the entry is valid */
  guest_write(machine, guest_at(machine, ES, get16(machine, RDI)), entry, size);
  set32(machine, RAX, 0x534D4150);
  set32(machine, RBX, index + 1 < count ? index + 1 : 0);
  set32(machine, RCX, size);
  guest_set_flag(machine, FLAG_CF, false);
}

static uint64_t extended_kib(const struct machine *m)
{
  return (m->tables - EXTENDED_START) / 1024;
}

/* AX, CX: KiB from 1 to 16 MiB. BX, DX: 64-KiB blocks above. */
void memory_map_e801(struct machine *machine)
{
  uint64_t kib = extended_kib(machine), low = kib < 15 * 1024 ? kib : 15 * 1024;
  uint16_t blocks = (uint16_t)((kib - low) / 64);

  set16(machine, RAX, (uint16_t)low);
  set16(machine, RCX, (uint16_t)low);
  set16(machine, RBX, blocks);
  set16(machine, RDX, blocks);
  guest_set_flag(machine, FLAG_CF, false);
}

/* AX: KiB above 1 MiB, at most 63 MiB: programs that use this function would misunderstand more than 64. */
void memory_map_88(struct machine *machine)
{
  uint64_t kib = extended_kib(machine);

  set16(machine, RAX, (uint16_t)(kib < 63 * 1024 ? kib : 63 * 1024));
  guest_set_flag(machine, FLAG_CF, false);
}

static uint64_t descriptor_base(const uint8_t *bytes)
{
  return (bytes_get_u32(bytes + 2) & 0xFFFFFF) | (uint64_t)bytes[7] << 24;
}

/* ES:SI: a table of descriptors, of which 2 is the source and 3 the target. CX: words. */
void memory_map_move(struct machine *machine)
{
  static uint8_t const nothing[8] = {0};
  uint8_t table[32], bytes[2 * 0x8000];
  uint32_t size = get16(machine, RCX) * 2u;

  if (size > sizeof(bytes)) {
    guest_fail(machine, 2);
    return;
  }
  guest_read(machine, guest_at(machine, ES, get16(machine, RSI)), table, sizeof(table));
  uint64_t from = descriptor_base(table + 16), to = descriptor_base(table + 24);
  bool is_writable = to + size <= machine->memory.rom_start || to >= EXTENDED_START;
  bool is_done = memcmp(table + 16, nothing, 8) != 0 && is_writable &&
                 memory_read(&machine->memory, from, bytes, size) && memory_write(&machine->memory, to, bytes, size);
  cpu_changed(machine->cpu); /* the target may have held code */
  if (is_done)
    guest_succeed(machine, 0);
  else
    guest_fail(machine, 2);
  guest_set_flag(machine, FLAG_ZF, is_done);
}
