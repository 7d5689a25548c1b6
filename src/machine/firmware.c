/* SPDX-License-Identifier: Apache-2.0
 *
 * The firmware's power-on, which sets up memory and devices for a boot sector or a kernel, and the dispatch of the
 * firmware's instruction to its service. A service takes time in proportion to its work (guest.c counts that), so that
 * a guest which does nothing but call services is no slower by the host's clock than by its own.
 */
#include "machine/firmware.h"

#include <stdlib.h>
#include <string.h>

static firmware_service *const services[256] = {
#define SERVICE(number, function) [number] = function,
#include "machine/service.def"
#undef SERVICE
};

/* The instruction works in real and virtual-8086 mode only: in any other mode it is not a call. CF of the
 * processor tells the stub whether to call again. */
void firmware_call(struct machine *machine, uint8_t number)
{
  struct cpu *cpu = machine->cpu;
  bool is_real = !(cpu->cr0 & CR0_PE) || (cpu->eflags & FLAG_VM);

  machine->service_cycles = 0;
  bool again = is_real && services[number] && services[number](machine);
  cpu_work(cpu, machine->service_cycles);
  machine->service_cycles = 0;
  uint64_t flags = cpu_flags(cpu);
  cpu_set_flags(cpu, again ? flags | FLAG_CF : flags & ~(uint64_t)FLAG_CF);
}

/* ---- memory ---- */

static void put(struct machine *m, uint64_t address, unsigned size, uint32_t value)
{
  memory_write(&m->memory, address,
               (const uint8_t[]){(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)},
               size);
}

static void install_vectors(struct machine *m, const uint16_t entries[256])
{
  for (unsigned i = 0; i < 256; i++) {
    bool is_user = i >= 0x60 && i < 0x68; /* kept for programs: 0 means that it is free */

    put(m, 4 * i, 4, is_user ? 0 : FIRMWARE_SEGMENT << 16 | entries[i]);
  }
}

/* All other fields are 0. Video and clock add theirs. */
static void install_data(struct machine *m)
{
  uint8_t zeros[256] = {0};

  memory_write(&m->memory, 0x400, zeros, sizeof(zeros));
  put(m, BDA_COM1, 2, 0x3F8);
  put(m, BDA_EBDA, 2, (uint32_t)(EBDA_START >> 4));
  /* one serial port, 80x25 in colour, x87, a floppy or none */
  put(m, BDA_EQUIPMENT, 2, 1u << 9 | 2u << 4 | 1u << 1 | (m->floppy.bytes ? 1 : 0));
  put(m, BDA_MEMORY, 2, (uint32_t)(EBDA_START / 1024));
  put(m, BDA_KEY_HEAD, 2, BDA_KEY_BUFFER - 0x400);
  put(m, BDA_KEY_TAIL, 2, BDA_KEY_BUFFER - 0x400);
  put(m, BDA_KEY_START, 2, BDA_KEY_BUFFER - 0x400);
  put(m, BDA_KEY_END, 2, BDA_KEY_BUFFER - 0x400 + 32);
  put(m, BDA_KEY_MODE, 1, 0x10); /* an enhanced keyboard */
  put(m, BDA_DISKS, 1, m->disk.bytes ? 1 : 0);
  put(m, EBDA_START, 4, 1); /* its size in KiB */
}

#define RSDP_SIZE 36
#define MP_POINTER_SIZE 16

/* Copies the pointer of MultiProcessor Specification 4, and the table right after it, into ROM. They come last among
 * the board's tables, so all tables are built once more for their addresses in ROM. */
static void install_mp(struct machine *m, uint8_t *rom, const uint8_t *tables, size_t size)
{
  uint8_t bytes[ROM_MP_SIZE];
  size_t at = 0, rsdp;

  while (at + MP_POINTER_SIZE <= size && memcmp(tables + at, "_MP_", 4) != 0)
    at += 16;
  if (at + MP_POINTER_SIZE > size)
    return;
  size = board_tables(m->board, FIRMWARE_START + ROM_MP - at, bytes, sizeof(bytes), &rsdp);
  if (size > at)
    memcpy(rom + ROM_MP, bytes + at, size - at);
}

static void install_tables(struct machine *m, uint8_t *rom)
{
  size_t room = (size_t)(m->memory.low - m->tables), rsdp = 0;
  uint8_t *tables = memory_at(&m->memory, m->tables);

  memset(tables, 0, room);
  size_t size = board_tables(m->board, m->tables, tables, room, &rsdp);
  if (size >= RSDP_SIZE && rsdp <= size - RSDP_SIZE)
    memcpy(rom + ROM_RSDP, tables + rsdp, RSDP_SIZE);
  install_mp(m, rom, tables, size);
}

/* Installs an SMI handler that returns at once (RSM), at the SMBASE that the processor has after reset. */
static void install_smm(struct machine *m)
{
  put(m, 0x38000, 2, 0xAA0F);
}

/* ---- devices ---- */

/* Both 8259A with the vectors of the AT; clock, keyboard and cascade let through. */
static void install_interrupts(struct machine *m)
{
  static const struct {
    uint8_t port, value;
  } words[] = {
    {0x20, 0x11}, {0x21, 0x08}, {0x21, 0x04}, {0x21, 0x01}, {0x21, 0xF8},
    {0xA0, 0x11}, {0xA1, 0x70}, {0xA1, 0x02}, {0xA1, 0x01}, {0xA1, 0xFF},
  };
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
    board_out(m->board, words[i].port, 1, words[i].value);
}

/* The local APIC passes the 8259A's interrupts on (virtual wire mode, MultiProcessor Specification 3.6.2.2). */
static void install_apic(struct machine *m)
{
  const uint64_t apic = 0xFEE00000;

  if (!board_owns(m->board, apic))
    return;
  board_write(m->board, apic + 0xF0, 4, 0x1FF);  /* enabled, spurious vector FFh */
  board_write(m->board, apic + 0x350, 4, 0x700); /* LINT0: ExtINT */
  board_write(m->board, apic + 0x360, 4, 0x400); /* LINT1: NMI */
}

/* Channel 0: 18.2 times a second. 8042: interrupt, translation to set 1. */
static void install_timer_and_keyboard(struct machine *m)
{
  board_out(m->board, 0x43, 1, 0x36);
  board_out(m->board, 0x40, 1, 0);
  board_out(m->board, 0x40, 1, 0);
  board_out(m->board, 0x64, 1, 0x60);
  board_out(m->board, 0x60, 1, 0x65);
  board_out(m->board, 0x64, 1, 0xAE);
}

/* All memory is cached except video memory and the last GiB below 4 GiB, which has the devices; the ROM is
 * write-protected. Operating systems take memory types from these registers, and leave them alone if none are set. SDM
 * vol. 3, 11.11. */
static void install_memory_types(struct machine *m)
{
  static const struct {
    uint32_t msr;
    uint64_t value;
  } registers[] = {
    {0x250, UINT64_C(0x0606060606060606)}, /* from 0 */
    {0x258, UINT64_C(0x0606060606060606)}, /* from 80000h */
    {0x259, 0},                            /* from A0000h */
    {0x268, UINT64_C(0x0505050505050505)},
    {0x269, UINT64_C(0x0505050505050505)},
    {0x26A, UINT64_C(0x0505050505050505)},
    {0x26B, UINT64_C(0x0505050505050505)},
    {0x26C, UINT64_C(0x0505050505050505)},
    {0x26D, UINT64_C(0x0505050505050505)},
    {0x26E, UINT64_C(0x0505050505050505)},
    {0x26F, UINT64_C(0x0505050505050505)},
    {0x200, 0xC0000000},
    {0x201, UINT64_C(0xFFC0000800)}, /* of a GiB, valid */
    {0x2FF, 0xC06},                  /* on, fixed ranges too; the rest is write-back */
  };
  for (size_t i = 0; i < sizeof(registers) / sizeof(registers[0]); i++)
    for (unsigned k = 0; k < m->cpu_count; k++)
      cpu_write_msr(m->cpus[k], registers[i].msr, registers[i].value);
}

void firmware_resume(struct machine *machine)
{
  install_memory_types(machine);
  install_interrupts(machine);
  board_out(machine->board, 0x21, 1, 0xFB); /* the timer and the keyboard are not set up */
  install_apic(machine);
  board_out(machine->board, 0x92, 1, board_in(machine->board, 0x92, 1) | 2u); /* A20 open */
}

void firmware_install(struct machine *machine)
{
  uint16_t entries[256];
  uint8_t *rom = memory_at(&machine->memory, FIRMWARE_START);

  machine->key_wait = (uint16_t)rom_build(rom, &machine->disk, entries);
  install_vectors(machine, entries);
  install_data(machine);
  install_tables(machine, rom);
  install_smm(machine);
  install_memory_types(machine);
  install_timer_and_keyboard(machine);
  install_interrupts(machine); /* after the timer, whose first edge must not reach the guest */
  install_apic(machine);
  board_out(machine->board, 0x92, 1, board_in(machine->board, 0x92, 1) | 2u); /* A20 open */
  video_install(machine);
  clock_install(machine);
  cpu_changed(machine->cpu);
}
