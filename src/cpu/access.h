/* SPDX-License-Identifier: Apache-2.0
 *
 * Guest memory as instructions see it: segment, then paging, then RAM or a device. Accesses that hit the translation
 * cache are inline; everything else is in access.c. The functions do not return when the access faults (#SS, #GP, #PF,
 * #AC).
 */
#ifndef CPU_ACCESS_H
#define CPU_ACCESS_H

#include <string.h>

#include "cpu/cpu.h"

/* The slow path: checks, translates, calls devices, crosses pages. The segment decides between #SS and #GP
 * for addresses that are not canonical. */
uint64_t access_load_slow(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size, bool to_modify);
void access_store_slow(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size, uint64_t value);

/* Checks segment limit and rights for [offset, offset + size), and raises #SS(0) or #GP(0). Returns the linear
 * address. */
uint64_t access_linear_slow(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size, unsigned access);

static inline uint64_t access_linear(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size, unsigned access)
{
  const struct cpu_segment *s = &cpu->segment[segment];

  if (__builtin_expect(s->ease & access, 1))
    return (s->linear_base + offset) & cpu->linear_mask;
  if ((s->bounded & access) && offset + size - 1 <= s->limit)
    return (s->linear_base + offset) & cpu->linear_mask;
  return access_linear_slow(cpu, segment, offset, size, access);
}

/* True when [linear, linear + size) lies in one page. */
static inline bool access_is_whole(uint64_t linear, unsigned size)
{
  return (linear & PAGE_MASK) <= PAGE_SIZE - size;
}

static inline struct cpu_tlb_entry *access_entry(struct cpu *cpu, uint64_t linear)
{
  return &cpu->tlb[linear / PAGE_SIZE % TLB_ENTRIES];
}

/* The tag that an entry must have to serve all of [linear, linear + size). If the access crosses a page, this is the
 * tag of the next page, which the entry of this page never has. */
static inline uint64_t access_tag(uint64_t linear, unsigned size)
{
  return (linear + size - 1) & ~PAGE_MASK;
}

static inline uint64_t access_fetch(const void *at, unsigned size)
{
  uint64_t value = 0;

  memcpy(&value, at, size); /* little-endian hosts */
  return value;
}

/* Access by linear address, with the rights of the current privilege level. `size` is 1, 2, 4 or 8, preferably a
 * constant. */
static inline uint64_t access_load_linear(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size)
{
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);

  if (__builtin_expect(entry->read == access_tag(linear, size), 1))
    return access_fetch((const void *)(uintptr_t)(linear + entry->host), size);
  return access_load_slow(cpu, segment, linear, size, false);
}

static inline void access_store_linear(struct cpu *cpu, unsigned segment, uint64_t linear, unsigned size,
                                       uint64_t value)
{
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);

  if (__builtin_expect(entry->write == access_tag(linear, size), 1))
    memcpy((void *)(uintptr_t)(linear + entry->host), &value, size);
  else
    access_store_slow(cpu, segment, linear, size, value);
}

static inline uint64_t access_load(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size)
{
  return access_load_linear(cpu, segment, access_linear(cpu, segment, offset, size, ACCESS_READ), size);
}

static inline void access_store(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size, uint64_t value)
{
  access_store_linear(cpu, segment, access_linear(cpu, segment, offset, size, ACCESS_WRITE), size, value);
}

/* Reads an operand that will be written back: any fault that the write could raise is raised now, as a write. */
static inline uint64_t access_load_to_modify(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size)
{
  uint64_t linear = access_linear(cpu, segment, offset, size, ACCESS_WRITE);
  const struct cpu_tlb_entry *entry = access_entry(cpu, linear);

  if (__builtin_expect(entry->write == access_tag(linear, size), 1))
    return access_fetch((const void *)(uintptr_t)(linear + entry->host), size);
  return access_load_slow(cpu, segment, linear, size, true);
}

/* Any number of bytes (up to 4096), all or nothing: a write that faults has written nothing. */
void access_read(struct cpu *cpu, unsigned segment, uint64_t offset, void *bytes, unsigned size);
void access_write(struct cpu *cpu, unsigned segment, uint64_t offset, const void *bytes, unsigned size);

/* Raises any fault that a write of these bytes would raise; afterwards the write succeeds. For instructions that must
 * check before they change something else. */
void access_check_write(struct cpu *cpu, unsigned segment, uint64_t offset, unsigned size);

/* Access to descriptor tables, task state segments and interrupt stacks, by linear address, with supervisor rights at
 * any CPL. A #PF of such an access has U = 0. */
uint64_t access_load_system(struct cpu *cpu, uint64_t linear, unsigned size);
void access_store_system(struct cpu *cpu, uint64_t linear, unsigned size, uint64_t value);
void access_check_write_system(struct cpu *cpu, uint64_t linear, unsigned size);

/* Access by physical address, with A20 applied, for SMM's state and page tables. It may reach devices. */
uint64_t access_load_physical(struct cpu *cpu, uint64_t address, unsigned size);
void access_store_physical(struct cpu *cpu, uint64_t address, unsigned size, uint64_t value);

/* Bulk access for string instructions. Returns a host pointer to `linear` if its page may be read (written) directly,
 * and in *ret_size the number of bytes up to the page's end; NULL if the bytes must be accessed one by one. Raises no
 * fault. */
uint8_t *access_span(struct cpu *cpu, uint64_t linear, unsigned access, unsigned *ret_size);

/* Discards translations: all of them, or those of one page of any size. */
void access_flush(struct cpu *cpu, bool with_global);
/* Discards all translations except those of code, which stay valid. */
void access_flush_data(struct cpu *cpu);
void access_flush_page(struct cpu *cpu, uint64_t linear);
/* Makes writes to this physical page, in which code was found, take the slow path. */
void access_flush_writes(struct cpu *cpu, uint64_t physical);

#endif
