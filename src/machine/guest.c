/* SPDX-License-Identifier: Apache-2.0
 *
 * The guest's memory as the firmware sees it: by linear address, since it may be called in virtual-8086 mode too. The
 * firmware does not write to ROM, and discards decoded code that it overwrites (cpu_poke does that, at a cost).
 */
#include <string.h>

#include "machine/firmware.h"

#define ACCESS_CYCLES 8u /* looking up a page */
#define LINE_SIZE 64u    /* bytes that are copied in a cycle */

/* Adds the time that the service takes for a piece. */
static void piece_count(struct machine *machine, size_t size)
{
  machine->service_cycles += ACCESS_CYCLES + size / LINE_SIZE;
}

/* The part of [linear, linear + size) up to the end of its page. */
static size_t piece_size(uint64_t linear, size_t size)
{
  size_t left = (size_t)(PAGE_SIZE - (linear & PAGE_MASK));

  return size < left ? size : left;
}

void guest_read(struct machine *machine, uint64_t linear, void *bytes, size_t size)
{
  uint8_t *to = bytes;

  for (size_t done = 0, piece; done < size; done += piece) {
    piece = piece_size(linear + done, size - done);
    piece_count(machine, piece);
    uint64_t physical = cpu_translate(machine->cpu, linear + done, NULL);
    const uint8_t *from = physical == UINT64_MAX ? NULL : memory_at(&machine->memory, physical);
    if (from)
      memcpy(to + done, from, piece);
    else
      memset(to + done, 0, piece);
  }
}

/* Is there decoded code in these bytes of one page? */
static bool has_code(const struct memory *memory, const uint8_t *at, size_t size)
{
  uint64_t offset = (uint64_t)(at - memory->ram);
  unsigned first = (unsigned)(offset & PAGE_MASK) / 64, last = (unsigned)((offset & PAGE_MASK) + size - 1) / 64;
  uint64_t lines = (UINT64_MAX << first) & (UINT64_MAX >> (63 - last));

  return memory->code[offset / PAGE_SIZE] & lines;
}

void guest_write(struct machine *machine, uint64_t linear, const void *bytes, size_t size)
{
  const uint8_t *from = bytes;

  for (size_t done = 0, piece; done < size; done += piece) {
    piece = piece_size(linear + done, size - done);
    piece_count(machine, piece);
    uint64_t physical = cpu_translate(machine->cpu, linear + done, NULL);
    uint8_t *at = physical == UINT64_MAX ? NULL : memory_at(&machine->memory, physical);
    if (!at || memory_is_rom(&machine->memory, physical))
      continue;
    if (has_code(&machine->memory, at, piece))
      cpu_poke(machine->cpu, linear + done, from + done, piece);
    else
      memcpy(at, from + done, piece);
  }
}

uint32_t guest_get(struct machine *machine, uint64_t linear, unsigned size)
{
  uint8_t bytes[4] = {0};

  guest_read(machine, linear, bytes, size);
  return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

void guest_put(struct machine *machine, uint64_t linear, unsigned size, uint32_t value)
{
  uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16), (uint8_t)(value >> 24)};

  guest_write(machine, linear, bytes, size);
}

uint64_t guest_at(const struct machine *machine, enum cpu_segment_number segment, uint16_t offset)
{
  return (machine->cpu->segment[segment].linear_base + offset) & machine->cpu->linear_mask;
}

/* SS:SP holds IP, CS, FLAGS. */
void guest_set_flag(struct machine *machine, uint32_t flag, bool is_set)
{
  uint64_t at = guest_at(machine, SS, (uint16_t)(get16(machine, RSP) + 4));
  uint32_t flags = guest_get(machine, at, 2);

  guest_put(machine, at, 2, is_set ? flags | flag : flags & ~flag);
}

void guest_succeed(struct machine *machine, uint8_t ah)
{
  set_high(machine, RAX, ah);
  guest_set_flag(machine, FLAG_CF, false);
}

void guest_fail(struct machine *machine, uint8_t ah)
{
  set_high(machine, RAX, ah);
  guest_set_flag(machine, FLAG_CF, true);
}

bool guest_vector_is_rom(struct machine *machine, uint8_t vector)
{
  const struct cpu *cpu = machine->cpu;

  if ((cpu->cr0 & CR0_PE) || cpu->idtr.limit < vector * 4u + 3)
    return false;
  uint32_t pointer = guest_get(machine, cpu->idtr.base + vector * 4u, 4);
  return (uint64_t)(pointer >> 16) * 16 + (pointer & 0xFFFF) >= FIRMWARE_START &&
         (uint64_t)(pointer >> 16) * 16 + (pointer & 0xFFFF) < EXTENDED_START;
}
