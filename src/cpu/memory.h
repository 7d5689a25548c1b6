/* SPDX-License-Identifier: Apache-2.0
 *
 * Physical memory: RAM, the shadowed megabyte and ROM, by page. All other addresses belong to the bus (MMIO). Every
 * page knows which of its 64-byte lines hold decoded code, so that a write there discards the blocks.
 */
#ifndef CPU_MEMORY_H
#define CPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_SIZE 4096u
#define PAGE_MASK UINT64_C(0xFFF)
#define MEMORY_HOLE UINT64_C(0xC0000000) /* RAM beyond this is placed above 4 GiB */
#define MEMORY_HIGH UINT64_C(0x100000000)

#define MEMORY_CPUS 8u /* processors that share it, at most */

struct cpu;

struct memory {
  uint8_t *ram;       /* `size` bytes, then nothing */
  uint64_t size;      /* in all */
  uint64_t low;       /* of these below MEMORY_HOLE; the rest starts at MEMORY_HIGH */
  uint64_t rom_start; /* physical [rom_start, 0x100000) cannot be written by the guest */
  uint64_t a20_mask;  /* all ones, or without bit 20 */
  uint64_t *code;     /* per page of RAM: a bit per line of 64 bytes that holds decoded code */
  struct cpu
    *cpus[MEMORY_CPUS]; /* processors that have decoded code and cached translations of it: cpu_new adds them */
  unsigned cpu_count;
};

/* Allocates zeroed RAM of `size` bytes, a multiple of 4096, at least 1 MiB. Returns 0 or -ENOMEM. */
int memory_init(struct memory *memory, uint64_t size);
void memory_done(struct memory *memory);

/* The host address of a physical address in RAM, valid up to the end of its page; NULL outside RAM. The caller applies
 * A20. */
static inline uint8_t *memory_at(const struct memory *memory, uint64_t address)
{
  if (address < memory->low)
    return memory->ram + address;
  if (address >= MEMORY_HIGH && address - MEMORY_HIGH < memory->size - memory->low)
    return memory->ram + memory->low + (address - MEMORY_HIGH);
  return NULL;
}

static inline bool memory_is_rom(const struct memory *memory, uint64_t address)
{
  return address >= memory->rom_start && address < 0x100000;
}

/* Copies for loaders and firmware: ROM may be written, and decoded code is not discarded (cpu_changed does that).
 * Return false and copy nothing if some of the bytes are not in RAM. */
bool memory_read(const struct memory *memory, uint64_t address, void *bytes, size_t size);
bool memory_write(struct memory *memory, uint64_t address, const void *bytes, size_t size);

#endif
