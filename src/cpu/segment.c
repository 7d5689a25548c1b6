/* SPDX-License-Identifier: Apache-2.0
 *
 * Segment registers: descriptors from their tables, loads into ES, SS, DS, FS and GS, and everything that follows from
 * the segment registers (mode, privilege level, widths). SDM vol. 3, 3.4, 5.5 to 5.7; vol. 2, MOV.
 */
#include "cpu/segment.h"

#include "cpu/access.h"
#include "cpu/far.h"
#include "cpu/fault.h"
#include "cpu/transfer.h"

#define ACCESS_V8086 0xF3u /* present, DPL 3, data, writable, accessed: SDM vol. 3, 20.2 */
#define ACCESS_REAL 0x93u  /* the same with DPL 0 */
#define ACCESS_FLAT_CODE 0xC09Bu
#define ACCESS_FLAT_DATA 0xC093u
#define LIMIT_MAX 0xFFFFFFFFu

/* ---- state derived from the registers ---- */

/* The accesses that are allowed up to the limit without further checks. */
static uint8_t bounded_access(const struct cpu *cpu, const struct cpu_segment *s)
{
  if (!segment_is_protected(cpu))
    return ACCESS_READ | ACCESS_WRITE;
  if (!(s->access & SEGMENT_P) || !(s->access & SEGMENT_S))
    return 0;
  if (s->access & SEGMENT_CODE)
    return s->access & SEGMENT_READABLE ? ACCESS_READ : 0;
  if (s->access & SEGMENT_EXPAND_DOWN)
    return 0;
  return s->access & SEGMENT_WRITABLE ? ACCESS_READ | ACCESS_WRITE : ACCESS_READ;
}

/* The privilege level is SS.DPL, as VMX has it (SDM vol. 3, 24.4.1): CS.RPL is meaningless just after CR0.PE was set,
 * and CS.DPL in a conforming segment. */
static uint8_t current_level(const struct cpu *cpu)
{
  if (!(cpu->cr0 & CR0_PE))
    return 0;
  return cpu->eflags & FLAG_VM ? 3 : (uint8_t)SEGMENT_DPL(cpu->segment[SS].access);
}

static uint32_t current_mode(const struct cpu *cpu)
{
  uint16_t code = cpu->segment[CS].access;
  bool is_long = cpu->efer & EFER_LMA;
  uint32_t mode = cpu->mode & MODE_ONE;

  if (is_long && (code & SEGMENT_L))
    mode |= MODE_64;
  else
    mode |= code & SEGMENT_DB ? MODE_32 : MODE_16;
  mode |= is_long ? MODE_LONG : 0;
  mode |= segment_is_protected(cpu) ? 0 : MODE_REAL;
  return mode | (cpu->cpl == 3 ? MODE_USER : 0);
}

static bool segments_are_flat(const struct cpu *cpu)
{
  static const uint8_t data[] = {ES, SS, DS};

  for (unsigned i = 0; i < sizeof(data); i++) {
    const struct cpu_segment *s = &cpu->segment[data[i]];

    if (s->linear_base || s->ease != (ACCESS_READ | ACCESS_WRITE))
      return false;
  }
  return cpu->segment[SS].access & SEGMENT_DB;
}

void segment_update(struct cpu *cpu)
{
  cpu->cpl = current_level(cpu);
  cpu->mode = current_mode(cpu);
  bool is_64 = (cpu->mode & MODE_BITS) == MODE_64;
  for (unsigned i = 0; i < CPU_SEGMENTS; i++) {
    struct cpu_segment *s = &cpu->segment[i];
    bool is_flat = is_64 && i <= DS; /* FS, GS and the system segments keep their bases */

    s->linear_base = is_flat ? 0 : s->base;
    s->bounded = is_64 ? ACCESS_READ | ACCESS_WRITE : bounded_access(cpu, s);
    s->ease = is_64 || s->limit == LIMIT_MAX ? s->bounded : 0;
  }
  cpu->mode |= !is_64 && segments_are_flat(cpu) ? MODE_FLAT : 0;
  cpu->outside = is_64 ? 0 : 3;
  cpu->code_limit = is_64 ? UINT64_MAX : cpu->segment[CS].limit;
  cpu->stack_mask = is_64 ? UINT64_MAX : cpu->segment[SS].access & SEGMENT_DB ? 0xFFFFFFFF : 0xFFFF;
  cpu->linear_mask = is_64 ? UINT64_MAX : 0xFFFFFFFF;
  if (cpu->tlb != cpu->tlbs[2]) /* the run loop chose the slow path for every access */
    cpu->tlb = cpu->tlbs[cpu->cpl == 3];
}

/* ---- descriptors ---- */

static struct descriptor descriptor_of(uint64_t linear, uint64_t raw, uint64_t raw_high)
{
  struct descriptor d = {.linear = linear, .raw = raw, .raw_high = raw_high};

  d.base = (raw >> 16 & 0xFFFFFF) | (raw >> 56) << 24 | (raw_high & 0xFFFFFFFF) << 32;
  d.limit = (uint32_t)((raw & 0xFFFF) | (raw >> 32 & 0xF0000));
  d.access = raw >> 40 & 0xF0FF;
  if (d.access & SEGMENT_G)
    d.limit = d.limit << 12 | 0xFFF;
  return d;
}

bool segment_look(struct cpu *cpu, uint16_t selector, bool is_system, struct descriptor *ret_descriptor)
{
  bool is_wide = is_system && far_is_long(cpu);
  const struct cpu_segment *ldt = &cpu->segment[LDTR];
  bool is_local = selector & 4;

  if (is_local && !(ldt->access & SEGMENT_P))
    return false;
  uint64_t base = is_local ? ldt->base : cpu->gdtr.base;
  uint32_t limit = is_local ? ldt->limit : cpu->gdtr.limit;
  uint32_t offset = selector & 0xFFF8u;
  if (offset + (is_wide ? 15 : 7) > limit)
    return false;
  uint64_t linear = (base + offset) & (far_is_long(cpu) ? UINT64_MAX : 0xFFFFFFFF);
  uint64_t raw = access_load_system(cpu, linear, 8);
  uint64_t raw_high = is_wide ? access_load_system(cpu, linear + 8, 8) : 0;
  *ret_descriptor = descriptor_of(linear, raw, raw_high);
  return true;
}

struct descriptor segment_fetch(struct cpu *cpu, uint16_t selector, unsigned exception, bool is_system)
{
  struct descriptor d;

  if (!segment_look(cpu, selector, is_system, &d))
    fault_raise(cpu, exception, selector & ~3u);
  return d;
}

bool segment_peek(struct cpu *cpu, uint16_t selector, const struct cpu_segment *ldt, struct descriptor *ret_descriptor)
{
  bool is_local = selector & 4;
  uint64_t base = is_local ? ldt->base : cpu->gdtr.base;
  uint32_t limit = is_local ? ldt->limit : cpu->gdtr.limit;
  uint32_t offset = selector & 0xFFF8u;
  uint8_t bytes[8];

  if ((is_local && !(ldt->access & SEGMENT_P)) || offset + 7 > limit ||
      cpu_peek(cpu, (base + offset) & 0xFFFFFFFF, bytes, sizeof(bytes)) != sizeof(bytes))
    return false;
  *ret_descriptor = descriptor_of((base + offset) & 0xFFFFFFFF, access_fetch(bytes, 8), 0);
  return true;
}

void segment_mark_accessed(struct cpu *cpu, struct descriptor *descriptor)
{
  if (descriptor->access & SEGMENT_ACCESSED)
    return;
  descriptor->access |= SEGMENT_ACCESSED;
  access_store_system(cpu, descriptor->linear + 5, 1, descriptor->access & 0xFF);
}

/* ---- loading ---- */

void segment_set(struct cpu *cpu, unsigned number, uint16_t selector, const struct descriptor *descriptor)
{
  struct cpu_segment *s = &cpu->segment[number];

  s->selector = selector;
  s->base = descriptor->base;
  s->limit = descriptor->limit;
  s->access = descriptor->access;
}

void segment_set_null(struct cpu *cpu, unsigned number, uint16_t selector)
{
  struct cpu_segment *s = &cpu->segment[number];
  bool keeps_base = cpu->model->vendor == LB_VENDOR_AMD && (number == FS || number == GS); /* APM vol. 2, 4.5.3 */

  s->selector = selector;
  s->base = keeps_base ? s->base : 0;
  s->limit = LIMIT_MAX; /* as VMCS dumps show; `access` makes it unusable */
  s->access = number == SS ? (uint16_t)(cpu->cpl << 5) : 0;
}

void segment_load_real(struct cpu *cpu, unsigned number, uint16_t selector)
{
  struct cpu_segment *s = &cpu->segment[number];

  s->selector = selector;
  s->base = (uint64_t)selector << 4;
  if ((cpu->cr0 & CR0_PE) && (cpu->eflags & FLAG_VM)) {
    s->limit = 0xFFFF;
    s->access = ACCESS_V8086;
  } else {
    s->access = (s->access & 0xFF00) | ACCESS_REAL; /* limit, B and G stay: "big real mode" */
  }
}

static bool is_writable_data(uint16_t access)
{
  return (access & (SEGMENT_S | SEGMENT_CODE | SEGMENT_WRITABLE)) == (SEGMENT_S | SEGMENT_WRITABLE);
}

void segment_check_stack(struct cpu *cpu, uint16_t selector, const struct descriptor *d, unsigned level,
                         unsigned exception)
{
  bool is_good = (selector & 3u) == level && is_writable_data(d->access) && SEGMENT_DPL(d->access) == level;

  if (!is_good)
    fault_raise(cpu, exception, selector & ~3u);
  if (!(d->access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_SS, selector & ~3u);
}

void segment_check_data(struct cpu *cpu, uint16_t selector, const struct descriptor *d, unsigned level,
                        unsigned exception)
{
  bool is_code = d->access & SEGMENT_CODE;
  bool is_readable = (d->access & SEGMENT_S) && (!is_code || (d->access & SEGMENT_READABLE));
  bool is_conforming = is_code && (d->access & SEGMENT_CONFORMING);
  unsigned dpl = SEGMENT_DPL(d->access);

  if (!is_readable || (!is_conforming && (level > dpl || (selector & 3u) > dpl)))
    fault_raise(cpu, exception, selector & ~3u);
  if (!(d->access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
}

static void load_null(struct cpu *cpu, unsigned number, uint16_t selector)
{
  bool is_64 = (cpu->mode & MODE_BITS) == MODE_64;

  if (number == SS && (!is_64 || cpu->cpl == 3 || (selector & 3) != cpu->cpl))
    fault_gp(cpu, 0);
  segment_set_null(cpu, number, selector);
}

static void load_protected(struct cpu *cpu, unsigned number, uint16_t selector)
{
  if (selector_is_null(selector)) {
    load_null(cpu, number, selector);
    return;
  }
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_GP, false);
  if (number == SS)
    segment_check_stack(cpu, selector, &d, cpu->cpl, EXCEPTION_GP);
  else
    segment_check_data(cpu, selector, &d, cpu->cpl, EXCEPTION_GP);
  segment_mark_accessed(cpu, &d);
  segment_set(cpu, number, selector, &d);
}

void segment_load(struct cpu *cpu, unsigned number, uint16_t selector)
{
  if (segment_is_protected(cpu))
    load_protected(cpu, number, selector);
  else
    segment_load_real(cpu, number, selector);
  segment_update(cpu);
}

/* ---- for loaders ---- */

void cpu_load_real_segment(struct cpu *cpu, unsigned number, uint16_t selector)
{
  segment_load_real(cpu, number, selector);
  segment_update(cpu);
}

void cpu_enter_flat_protected(struct cpu *cpu, uint32_t eip)
{
  static const uint8_t data[] = {ES, SS, DS, FS, GS};
  struct descriptor flat = {.limit = LIMIT_MAX, .access = ACCESS_FLAT_CODE};

  cpu->cr0 = (cpu->cr0 & ~CR0_PG) | CR0_PE;
  cpu->efer &= ~(uint64_t)EFER_LMA;
  cpu->eflags &= ~(uint32_t)(FLAG_VM | FLAG_IF);
  segment_set(cpu, CS, 0x08, &flat);
  flat.access = ACCESS_FLAT_DATA;
  for (unsigned i = 0; i < sizeof(data); i++)
    segment_set(cpu, data[i], 0x10, &flat);
  segment_update(cpu);
  access_flush(cpu, true);
  transfer_set(cpu, eip);
}
