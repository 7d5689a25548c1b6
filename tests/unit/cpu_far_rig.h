/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests for the tests of segmentation and far transfers: tables built by hand, and a listener that notes what
 * transfer.c reported. Expected values follow from Intel's SDM vol. 3, chapters 5 to 7 and 20, and vol. 2 under the
 * instructions' names.
 */
#ifndef TESTS_CPU_FAR_RIG_H
#define TESTS_CPU_FAR_RIG_H

#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "cpu_bus.h"
#include "lastbranch/cpudb.h"
#include "parts.h"

/* Where things lie in the guest. */
enum {
  GDT = 0x1000,
  IDT = 0x2000,
  TSS_A = 0x4000,
  TSS_B = 0x5000,
  LDT = 0x6000,
  CODE = 0x10000,
  HANDLER = 0x11000, /* of exception n: HANDLER + 0x10 * n */
  STACK_0 = 0x20000,
  STACK_3 = 0x21000,
  STACK_IST = 0x22008, /* not aligned, so that delivery must */
  PAGES = 0x70000,
};

/* Selectors. The first four are laid out as SYSENTER wants them. */
enum {
  CODE_0 = 0x08,
  DATA_0 = 0x10,
  CODE_3 = 0x1B,
  DATA_3 = 0x23,
  CONFORMING = 0x28,
  GATE = 0x30,
  TASK_A = 0x38,
  TASK_B = 0x40,
  TASK_GATE = 0x48,
  CODE16_0 = 0x50,
  DATA_ABSENT = 0x58,
  LOCAL = 0x60, /* the LDT's own */
  DATA_READ_ONLY = 0x68,
  CODE64_0 = 0x70,
  CODE64_3 = 0x7B,
  GATE64 = 0x80, /* 16 bytes, as the next */
  TASK64 = 0x90,
  BEYOND = 0x200, /* outside the limit */
};

struct guest {
  struct memory memory;
  struct cpu *cpu;
  struct lb_branch seen[64];
  unsigned count;
  uint8_t vector; /* of the external interrupt */
};

/* ---- the bus: nobody but a controller of interrupts ---- */

static inline uint8_t bus_acknowledge(void *data)
{
  struct guest *guest = data;

  cpu_set_line(guest->cpu, CPU_LINE_INTR, false);
  return guest->vector;
}

static inline void on_branch(void *data, const struct lb_branch *branch)
{
  struct guest *guest = data;

  if (guest->count < sizeof(guest->seen) / sizeof(guest->seen[0]))
    guest->seen[guest->count++] = *branch;
}

/* ---- memory ---- */

static inline void put(struct guest *g, uint64_t address, uint64_t value, size_t size)
{
  assert_true(memory_write(&g->memory, address, &value, size));
}

static inline uint64_t get(struct guest *g, uint64_t address, size_t size)
{
  uint64_t value = 0;

  assert_true(memory_read(&g->memory, address, &value, size));
  return value;
}

static inline void put_bytes(struct guest *g, uint64_t address, const uint8_t *bytes, size_t size)
{
  assert_true(memory_write(&g->memory, address, bytes, size));
}

#define code_at(guest, address, ...)                                                                                   \
  put_bytes(guest, address, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

#define LE16(value) (uint8_t)(value), (uint8_t)((value) >> 8)
#define LE32(value) LE16(value), LE16((value) >> 16)
#define LE64(value) LE32(value), LE32((uint64_t)(value) >> 32)

/* ---- descriptors ---- */

static inline void put_segment(struct guest *g, unsigned selector, uint32_t base, uint32_t limit, unsigned access,
                               unsigned flags)
{
  uint64_t raw = (limit & 0xFFFF) | (uint64_t)(base & 0xFFFFFF) << 16 | (uint64_t)access << 40 |
                 (uint64_t)(limit >> 16 & 0xF) << 48 | (uint64_t)flags << 52 | (uint64_t)(base >> 24) << 56;

  put(g, GDT + (selector & ~7u), raw, 8);
}

static inline uint64_t gate_bits(unsigned selector, uint64_t offset, unsigned access, unsigned count)
{
  return (offset & 0xFFFF) | (uint64_t)selector << 16 | (uint64_t)count << 32 | (uint64_t)access << 40 |
         (offset >> 16 & 0xFFFF) << 48;
}

static inline void put_vector(struct guest *g, unsigned vector, unsigned selector, uint64_t offset, unsigned access)
{
  put(g, IDT + 8 * vector, gate_bits(selector, offset, access, 0), 8);
}

static inline void put_vector_64(struct guest *g, unsigned vector, unsigned selector, uint64_t offset, unsigned access,
                                 unsigned ist)
{
  put(g, IDT + 16 * vector, gate_bits(selector, offset, access, ist), 8);
  put(g, IDT + 16 * vector + 8, offset >> 32, 8);
}

static inline unsigned access_of(struct guest *g, unsigned selector)
{
  return (unsigned)get(g, GDT + (selector & ~7u) + 5, 1);
}

static inline void fill_gdt(struct guest *g)
{
  put_segment(g, CODE_0, 0, 0xFFFFF, 0x9A, 0xC);
  put_segment(g, DATA_0, 0, 0xFFFFF, 0x92, 0xC);
  put_segment(g, CODE_3, 0, 0xFFFFF, 0xFA, 0xC);
  put_segment(g, DATA_3, 0, 0xFFFFF, 0xF2, 0xC);
  put_segment(g, CONFORMING, 0, 0xFFFFF, 0x9E, 0xC);
  put_segment(g, TASK_A, TSS_A, 0x67, 0x89, 0);
  put_segment(g, TASK_B, TSS_B, 0x67, 0x89, 0);
  put_segment(g, CODE16_0, 0x10000, 0xFFFF, 0x9A, 0);
  put_segment(g, DATA_ABSENT, 0, 0xFFFFF, 0x12, 0xC);
  put_segment(g, LOCAL, LDT, 0xFF, 0x82, 0);
  put_segment(g, DATA_READ_ONLY, 0, 0xFFFFF, 0xF0, 0xC);
  put_segment(g, CODE64_0, 0, 0xFFFFF, 0x9A, 0xA);
  put_segment(g, CODE64_3, 0, 0xFFFFF, 0xFA, 0xA);
  put_segment(g, TASK64, TSS_A, 0x67, 0x89, 0);
  put(g, GDT + TASK64 + 8, 0, 8);
}

/* ---- guests ---- */

static inline struct guest *guest_new_model(const char *name)
{
  struct guest *g = calloc(1, sizeof(*g));

  assert_non_null(g);
  assert_int_equal(memory_init(&g->memory, 2 << 20), 0);
  g->memory.rom_start = 0x100000;
  g->memory.a20_mask = UINT64_MAX;
  const struct lb_cpu *model = NULL;
  assert_int_equal(lb_cpu_find(name, &model), 0);
  struct cpu_bus bus = bus_idle;
  bus.data = g;
  bus.acknowledge = bus_acknowledge;
  assert_int_equal(cpu_new(model, &g->memory, &bus, 0, &g->cpu), 0);
  return g;
}

static inline void guest_free(struct guest *g)
{
  cpu_free(g->cpu);
  memory_done(&g->memory);
  free(g);
}

static inline void set_segment(struct guest *g, unsigned number, unsigned selector, unsigned access)
{
  struct cpu_segment *s = &g->cpu->segment[number];

  *s = (struct cpu_segment){.selector = (uint16_t)selector, .access = (uint16_t)access, .limit = 0xFFFFFFFF};
}

/* Code segment, stack segment and pointer by the level of `code`. */
static inline void set_level(struct guest *g, unsigned code, unsigned code_access)
{
  unsigned level = code & 3;

  set_segment(g, CS, code, code_access);
  set_segment(g, SS, level ? DATA_3 : DATA_0, level ? 0xC0F3 : 0xC093);
  for (unsigned i = 0; i < 4; i++)
    set_segment(g, ((const uint8_t[]){ES, DS, FS, GS})[i], DATA_3, 0xC0F3);
  g->cpu->r[RSP] = level ? STACK_3 : STACK_0;
  cpu_changed(g->cpu);
}

static inline void set_task(struct guest *g, unsigned selector, uint32_t base, unsigned access)
{
  g->cpu->segment[TR] =
    (struct cpu_segment){.selector = (uint16_t)selector, .base = base, .limit = 0x67, .access = (uint16_t)access};
}

/* 32-bit protected mode, tables filled, in level `code & 3`; every exception ends in HLT at its own address. */
static inline struct guest *guest_new_32_of(const char *model, unsigned code)
{
  struct guest *g = guest_new_model(model);

  fill_gdt(g);
  for (unsigned i = 0; i < 32; i++) {
    put_vector(g, i, CODE_0, HANDLER + 0x10 * i, 0x8E);
    code_at(g, HANDLER + 0x10 * i, 0xF4);
  }
  put(g, TSS_A + 4, STACK_0, 4);
  put(g, TSS_A + 8, DATA_0, 4);
  cpu_enter_flat_protected(g->cpu, CODE);
  g->cpu->gdtr = (struct cpu_table){.base = GDT, .limit = 0x1FF};
  g->cpu->idtr = (struct cpu_table){.base = IDT, .limit = 0x7FF};
  put(g, GDT + TASK_A + 5, 0x8B, 1);
  set_task(g, TASK_A, TSS_A, 0x8B);
  set_level(g, code, code & 3 ? 0xC0FB : 0xC09B);
  cpu_listen(g->cpu, on_branch, g);
  return g;
}

static inline struct guest *guest_new_32(unsigned code)
{
  return guest_new_32_of("skylake", code);
}

/* 64-bit mode (or compatibility mode, by `code`), the first 2 MiB mapped for all. */
static inline struct guest *guest_new_64_of(const char *model, unsigned code)
{
  struct guest *g = guest_new_32_of(model, CODE_0);
  struct cpu *cpu = g->cpu;

  put(g, PAGES, (PAGES + 0x1000) | 7, 8);
  put(g, PAGES + 0x1000, (PAGES + 0x2000) | 7, 8);
  put(g, PAGES + 0x2000, 0x87, 8);
  for (unsigned i = 0; i < 32; i++)
    put_vector_64(g, i, CODE64_0, HANDLER + 0x10 * i, 0x8E, 0);
  put(g, TSS_A + 4, STACK_0, 8);
  put(g, TSS_A + 36, STACK_IST, 8);
  put(g, GDT + TASK64 + 5, 0x8B, 1);
  set_task(g, TASK64, TSS_A, 0x8B);
  cpu->cr3 = PAGES;
  cpu->cr4 |= CR4_PAE;
  cpu->efer |= EFER_LME | EFER_LMA | EFER_SCE;
  cpu->cr0 |= CR0_PG;
  cpu->idtr.limit = 0xFFF;
  bool is_64 = (code & ~3u) == CODE64_0 || (code & ~3u) == (CODE64_3 & ~3u);
  set_level(g, code, (code & 3 ? 0xFBu : 0x9Bu) | (is_64 ? 0xA000 : 0xC000));
  return g;
}

static inline struct guest *guest_new_64(unsigned code)
{
  return guest_new_64_of("skylake", code);
}

static inline void run(struct guest *g)
{
  assert_int_equal(cpu_run(g->cpu, 100), CPU_STOP_HALTED);
}

static inline void start(struct guest *g, uint64_t rip)
{
  cpu_set_rip(g->cpu, rip);
  g->cpu->activity = CPU_RUNNING;
}

/* Runs to the HLT at `address`. */
static inline void run_to(struct guest *g, uint64_t address)
{
  run(g);
  assert_int_equal(g->cpu->rip, address + 1);
}

static inline void expect_branch(struct guest *g, unsigned number, enum lb_branch_kind kind, uint64_t from, uint64_t to)
{
  assert_true(number < g->count);
  assert_string_equal(lb_branch_kind_name(g->seen[number].kind), lb_branch_kind_name(kind));
  assert_int_equal(g->seen[number].from, from);
  assert_int_equal(g->seen[number].to, to);
}

/* The exception's handler was entered with this error code on top of the frame. */
static inline void expect_exception(struct guest *g, unsigned vector, uint32_t error, uint32_t eip)
{
  run_to(g, HANDLER + 0x10 * vector);
  assert_int_equal(get(g, g->cpu->r[RSP], 4), error);
  assert_int_equal(get(g, g->cpu->r[RSP] + 4, 4), eip);
}

#endif
