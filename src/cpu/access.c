/* SPDX-License-Identifier: Apache-2.0
 *
 * The slow path of guest memory accesses: segment checks, translation, page crossings, devices, breakpoints, alignment,
 * and writes to code. See access.h.
 */
#include "cpu/access.h"

#include "cpu/block.h"
#include "cpu/fault.h"
#include "cpu/flags.h"
#include "cpu/paging.h"
#include "cpu/point.h"
#include "cpu/segment.h"
#include "cpu/system.h"

#define NO_TAG 1

/* ---- segments ---- */

_Noreturn static void segment_fault(struct cpu *cpu, unsigned segment)
{
  fault_raise(cpu, segment == SS ? EXCEPTION_SS : EXCEPTION_GP, 0);
}

static bool is_type_right(const struct cpu_segment *segment, unsigned access)
{
  bool is_code = segment->access & SEGMENT_CODE;

  if (!(segment->access & SEGMENT_P) || !(segment->access & SEGMENT_S))
    return false;
  if (access & ACCESS_WRITE)
    return !is_code && (segment->access & SEGMENT_WRITABLE);
  return !is_code || (segment->access & SEGMENT_READABLE);
}

static bool is_inside(const struct cpu_segment *segment, uint64_t offset, unsigned size)
{
  uint64_t last = offset + size - 1;
  bool is_down = !(segment->access & SEGMENT_CODE) && (segment->access & SEGMENT_EXPAND_DOWN);

  if (!is_down)
    return last <= segment->limit;
  uint64_t most = segment->access & SEGMENT_DB ? 0xFFFFFFFF : 0xFFFF;
  return offset > segment->limit && last <= most;
}

uint64_t access_linear_slow(struct cpu *cpu, unsigned number, uint64_t offset, unsigned size, unsigned access)
{
  const struct cpu_segment *segment = &cpu->segment[number];

  if (segment_is_protected(cpu) && !is_type_right(segment, access))
    segment_fault(cpu, number);
  if (!is_inside(segment, offset, size))
    segment_fault(cpu, number);
  return (segment->linear_base + offset) & cpu->linear_mask;
}

/* ---- physical ---- */

uint64_t access_load_physical(struct cpu *cpu, uint64_t address, unsigned size)
{
  address &= cpu->memory->a20_mask;
  const uint8_t *at = memory_at(cpu->memory, address);
  if (at && access_is_whole(address, size))
    return access_fetch(at, size);
  if (at || !access_is_whole(address, size)) { /* across pages: byte by byte */
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++)
      value |= access_load_physical(cpu, address + i, 1) << (8 * i);
    return value;
  }
  return cpu->bus.mmio_read(cpu->bus.data, address, size);
}

static void write_ram(struct cpu *cpu, uint64_t address, uint8_t *at, unsigned size, const void *bytes)
{
  if (memory_is_rom(cpu->memory, address))
    return;
  uint64_t number = (uint64_t)(at - cpu->memory->ram) / PAGE_SIZE;
  if (cpu->memory->code[number])
    block_invalidate(cpu, address, size);
  memcpy(at, bytes, size);
}

void access_store_physical(struct cpu *cpu, uint64_t address, unsigned size, uint64_t value)
{
  address &= cpu->memory->a20_mask;
  if (!access_is_whole(address, size)) {
    for (unsigned i = 0; i < size; i++)
      access_store_physical(cpu, address + i, 1, value >> (8 * i) & 0xFF);
    return;
  }
  uint8_t *at = memory_at(cpu->memory, address);
  if (at)
    write_ram(cpu, address, at, size, &value);
  else
    cpu->bus.mmio_write(cpu->bus.data, address, size, value);
}

/* ---- linear ---- */

static unsigned privilege(const struct cpu *cpu)
{
  return cpu->cpl == 3 ? PAGING_USER : 0;
}

static void check_canonical(struct cpu *cpu, unsigned segment, uint64_t linear)
{
  if (cpu->linear_mask == UINT64_MAX && (uint64_t)((int64_t)(linear << 16) >> 16) != linear)
    segment_fault(cpu, segment);
}

static void check_alignment(struct cpu *cpu, uint64_t linear, unsigned size)
{
  bool is_checked = cpu->cpl == 3 && (cpu->cr0 & CR0_AM) && (cpu->eflags & FLAG_AC);

  if (is_checked && (linear & (size - 1)))
    fault_raise(cpu, EXCEPTION_AC, 0);
}

/* Puts a page into the translation cache of its privilege, if it is RAM. */
static void tlb_fill(struct cpu *cpu, uint64_t linear, unsigned wants, const struct paging_page *page)
{
  uint8_t *at = memory_at(cpu->memory, page->physical);

  if (!at || page->is_guarded || (wants & PAGING_IMPLICIT))
    return;
  uint64_t number = (uint64_t)(at - cpu->memory->ram) / PAGE_SIZE;
  uint64_t tag = linear & ~PAGE_MASK;
  bool takes_writes = page->is_writable && !memory_is_rom(cpu->memory, page->physical) && !cpu->memory->code[number];
  struct cpu_tlb_entry *entry = &cpu->tlbs[wants & PAGING_USER ? 1 : 0][linear / PAGE_SIZE % TLB_ENTRIES];
  *entry = (struct cpu_tlb_entry){.read = tag, .write = takes_writes ? tag : NO_TAG, .host = (uintptr_t)at - tag};
  if (page->shift > cpu->tlb_shift)
    cpu->tlb_shift = page->shift;
}

static uint64_t translate(struct cpu *cpu, uint64_t linear, unsigned wants)
{
  struct paging_page page = paging_translate(cpu, linear, wants);

  tlb_fill(cpu, linear, wants, &page);
  return page.physical | (linear & PAGE_MASK);
}

/* The physical addresses of an access that may cross a page. */
struct pieces {
  uint64_t physical[2];
  unsigned first; /* bytes in the first page */
};

static struct pieces translate_pieces(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size, unsigned wants)
{
  struct pieces pieces = {.first = size};

  if (!access_is_whole(linear, size)) {
    pieces.first = (unsigned)(PAGE_SIZE - (linear & PAGE_MASK));
    uint64_t next = (linear + pieces.first) & cpu->linear_mask;
    check_canonical(cpu, segment, next);
    pieces.physical[0] = translate(cpu, linear, wants);
    pieces.physical[1] = translate(cpu, next, wants);
  } else {
    pieces.physical[0] = translate(cpu, linear, wants);
  }
  return pieces;
}

static uint64_t piece_at(const struct pieces *pieces, unsigned i)
{
  return i < pieces->first ? pieces->physical[0] + i : pieces->physical[1] + (i - pieces->first);
}

static uint64_t load_pieces(struct cpu *cpu, const struct pieces *pieces, unsigned size)
{
  if (pieces->first == size)
    return access_load_physical(cpu, pieces->physical[0], size);
  uint64_t value = 0;
  for (unsigned i = 0; i < size; i++)
    value |= access_load_physical(cpu, piece_at(pieces, i), 1) << (8 * i);
  return value;
}

/* Reports an access to counters of cache events. Devices are not cached. */
static void pieces_count(struct cpu *cpu, const struct pieces *pieces, unsigned size)
{
  if (memory_at(cpu->memory, pieces->physical[0] & cpu->memory->a20_mask))
    cache_access(&cpu->cache, pieces->physical[0], pieces->first, &cpu->progress);
  if (size > pieces->first && memory_at(cpu->memory, pieces->physical[1] & cpu->memory->a20_mask))
    cache_access(&cpu->cache, pieces->physical[1], size - pieces->first, &cpu->progress);
}

/* A store to a device may raise an interrupt or change the next deadline: the run loop must check before the next
 * instruction. */
static void guard_devices(struct cpu *cpu, const struct pieces *pieces, unsigned size)
{
  bool is_memory = memory_at(cpu->memory, pieces->physical[0]) &&
                   (pieces->first == size || memory_at(cpu->memory, pieces->physical[1]));

  if (!is_memory)
    fault_unless_alone(cpu);
}

static void store_pieces(struct cpu *cpu, const struct pieces *pieces, unsigned size, uint64_t value)
{
  guard_devices(cpu, pieces, size);
  if (pieces->first == size) {
    access_store_physical(cpu, pieces->physical[0], size, value);
    return;
  }
  for (unsigned i = 0; i < size; i++)
    access_store_physical(cpu, piece_at(pieces, i), 1, value >> (8 * i) & 0xFF);
}

uint64_t access_load_slow(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size, bool to_modify)
{
  check_canonical(cpu, segment, linear);
  check_alignment(cpu, linear, size);
  unsigned wants = privilege(cpu) | (to_modify ? PAGING_WRITE : 0);
  struct pieces pieces = translate_pieces(cpu, segment, linear, size, wants);
  if (to_modify)
    guard_devices(cpu, &pieces, size);
  if (cpu->dr_access)
    system_data_breakpoints(cpu, linear, size, ACCESS_READ);
  if (cpu->counts_cache)
    pieces_count(cpu, &pieces, size);
  return load_pieces(cpu, &pieces, size);
}

void access_store_slow(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size, uint64_t value)
{
  check_canonical(cpu, segment, linear);
  check_alignment(cpu, linear, size);
  struct pieces pieces = translate_pieces(cpu, segment, linear, size, privilege(cpu) | PAGING_WRITE);
  if (cpu->dr_access)
    system_data_breakpoints(cpu, linear, size, ACCESS_WRITE);
  if (cpu->counts_cache)
    pieces_count(cpu, &pieces, size);
  store_pieces(cpu, &pieces, size, value);
}

/* ---- system ---- */

uint64_t access_load_system(struct cpu *cpu, uint64_t linear, unsigned size)
{
  linear &= cpu->efer & EFER_LMA ? UINT64_MAX : 0xFFFFFFFF;
  const struct cpu_tlb_entry *entry = &cpu->tlbs[0][linear / PAGE_SIZE % TLB_ENTRIES];
  if (entry->read == (linear & ~PAGE_MASK) && access_is_whole(linear, size))
    return access_fetch((const void *)(uintptr_t)(linear + entry->host), size);
  struct pieces pieces = translate_pieces(cpu, DS, linear, size, PAGING_IMPLICIT);
  return load_pieces(cpu, &pieces, size);
}

void access_store_system(struct cpu *cpu, uint64_t linear, unsigned size, uint64_t value)
{
  linear &= cpu->efer & EFER_LMA ? UINT64_MAX : 0xFFFFFFFF;
  struct pieces pieces = translate_pieces(cpu, DS, linear, size, PAGING_IMPLICIT | PAGING_WRITE);
  if (cpu->dr_access & DR_ACCESS_POINTS)
    point_access(cpu, linear, size, ACCESS_WRITE);
  store_pieces(cpu, &pieces, size, value);
}

void access_check_write_system(struct cpu *cpu, uint64_t linear, unsigned size)
{
  linear &= cpu->efer & EFER_LMA ? UINT64_MAX : 0xFFFFFFFF;
  translate_pieces(cpu, DS, linear, size, PAGING_IMPLICIT | PAGING_WRITE);
}

/* ---- many bytes ---- */

/* Physical addresses of the (at most two) pages of [linear, linear + size), checked. */
static struct pieces many(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size, unsigned access,
                          uint64_t *ret_linear)
{
  uint64_t linear = access_linear(cpu, segment, offset, size, access);

  check_canonical(cpu, segment, linear);
  *ret_linear = linear;
  return translate_pieces(cpu, segment, linear, size, privilege(cpu) | (access & ACCESS_WRITE ? PAGING_WRITE : 0));
}

void access_read(struct cpu *cpu, unsigned segment, uint64_t offset, void *bytes, unsigned size)
{
  uint64_t linear;
  struct pieces pieces = many(cpu, segment, offset, size, ACCESS_READ, &linear);

  if (cpu->dr_access)
    system_data_breakpoints(cpu, linear, size, ACCESS_READ);
  if (cpu->counts_cache)
    pieces_count(cpu, &pieces, size);
  const uint8_t *at = memory_at(cpu->memory, pieces.physical[0]);
  if (at && pieces.first == size) {
    memcpy(bytes, at, size);
    return;
  }
  for (unsigned i = 0; i < size; i++)
    ((uint8_t *)bytes)[i] = (uint8_t)access_load_physical(cpu, piece_at(&pieces, i), 1);
}

void access_write(struct cpu *cpu, unsigned segment, uint64_t offset, const void *bytes, unsigned size)
{
  uint64_t linear;
  struct pieces pieces = many(cpu, segment, offset, size, ACCESS_WRITE, &linear);

  if (cpu->dr_access)
    system_data_breakpoints(cpu, linear, size, ACCESS_WRITE);
  if (cpu->counts_cache)
    pieces_count(cpu, &pieces, size);
  uint8_t *at = memory_at(cpu->memory, pieces.physical[0]);
  if (at && pieces.first == size) {
    write_ram(cpu, pieces.physical[0], at, size, bytes);
    return;
  }
  guard_devices(cpu, &pieces, size);
  for (unsigned i = 0; i < size; i++)
    access_store_physical(cpu, piece_at(&pieces, i), 1, ((const uint8_t *)bytes)[i]);
}

void access_check_write(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size)
{
  uint64_t linear;

  many(cpu, segment, offset, size, ACCESS_WRITE, &linear);
}

uint8_t *access_span(struct cpu *cpu, uint64_t linear, unsigned access, unsigned *ret_size)
{
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);
  uint64_t tag = linear & ~PAGE_MASK;

  if ((access & ACCESS_WRITE ? entry->write : entry->read) != tag)
    return NULL;
  *ret_size = (unsigned)(PAGE_SIZE - (linear & PAGE_MASK));
  return (uint8_t *)(uintptr_t)(linear + entry->host);
}

/* ---- flushing ---- */

void access_flush_data(struct cpu *cpu)
{
  for (unsigned which = 0; which < 2; which++)
    for (unsigned i = 0; i < TLB_ENTRIES; i++)
      cpu->tlbs[which][i] = (struct cpu_tlb_entry){.read = NO_TAG, .write = NO_TAG};
  cpu->tlb_shift = 0;
  cpu->keys_cached[0] = cpu->keys_cached[1] = 0;
  lb_recorder_flush(&cpu->recorder);
}

void access_flush(struct cpu *cpu, bool with_global)
{
  (void)with_global; /* a processor may flush global pages too */
  access_flush_data(cpu);
  block_flush_fetches(cpu);
}

/* A large page has many entries, and all of them must be flushed (SDM vol. 3, 4.10.4.1). The tables may have changed
 * since the entries were made, so the page is assumed to be as large as the largest page that has entries. */
void access_flush_page(struct cpu *cpu, uint64_t linear)
{
  unsigned shift = cpu->tlb_shift;

  for (unsigned which = 0; which < 2; which++) {
    cpu->tlbs[which][linear / PAGE_SIZE % TLB_ENTRIES] = (struct cpu_tlb_entry){.read = NO_TAG, .write = NO_TAG};
    for (unsigned i = 0; shift > 12 && i < TLB_ENTRIES; i++)
      if (cpu->tlbs[which][i].read >> shift == linear >> shift)
        cpu->tlbs[which][i] = (struct cpu_tlb_entry){.read = NO_TAG, .write = NO_TAG};
  }
  block_flush_fetches(cpu);
  lb_recorder_flush(&cpu->recorder);
}

static void forget_writes(struct cpu *cpu, uintptr_t page)
{
  for (unsigned which = 0; which < 2; which++)
    for (unsigned i = 0; i < TLB_ENTRIES; i++) {
      struct cpu_tlb_entry *entry = &cpu->tlbs[which][i];

      if (entry->write != NO_TAG && entry->write + entry->host == page)
        entry->write = NO_TAG;
    }
  lb_recorder_flush(&cpu->recorder);
}

void access_flush_writes(struct cpu *cpu, uint64_t physical)
{
  const struct memory *memory = cpu->memory;

  for (unsigned i = 0; i < memory->cpu_count; i++)
    forget_writes(memory->cpus[i], (uintptr_t)memory_at(memory, physical));
}
