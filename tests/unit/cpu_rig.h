/* SPDX-License-Identifier: Apache-2.0
 *
 * Guests of a few bytes for the tests of the interpreter's system registers: in real, protected and 64-bit mode, with a
 * bus that only takes notes. A vector's handler is a HLT, so that where a guest halts tells what happened.
 */
#ifndef TESTS_CPU_RIG_H
#define TESTS_CPU_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/cpu.h"
#include "cpu/system.h"

/* Where things lie in a guest. */
enum {
  CODE = 0x1000,
  HANDLERS = 0x2000, /* 16 bytes for each vector: HLT */
  GDT = 0x3000,
  IDT_32 = 0x4000,
  IDT_64 = 0x5000,
  TSS = 0x6000,
  DATA = 0x9000,
  STACK = 0xB000,
  STACK_0 = 0xC000, /* of the TSS */
  TABLES = 0x10000, /* page tables of 64-bit mode */
  PAE_TABLE = 0x18000,
};

enum { DONE = -1, RUNAWAY = -2 }; /* what execute returns beside vectors */
enum { DB = 1, UD = 6, GP = 13 };

struct rig {
  struct memory memory;
  struct cpu *cpu;
  uint16_t port;
  uint32_t written, reads, writes;
  uint8_t log[64]; /* bytes that went out */
  uint64_t apic_base, deadline;
  uint8_t priority;
  unsigned service;
  uint8_t vector;
  bool raises_smi;
};

/* ---- the bus ---- */

static inline uint32_t bus_in(void *data, uint16_t port, unsigned size)
{
  struct rig *rig = data;

  rig->port = port;
  rig->reads++;
  return (uint32_t)(UINT64_C(0x44332211) & ((UINT64_C(1) << (8 * size)) - 1)) + rig->reads - 1;
}

static inline void bus_out(void *data, uint16_t port, unsigned size, uint32_t value)
{
  struct rig *rig = data;

  (void)size;
  rig->port = port;
  rig->written = value;
  rig->log[rig->writes++ % sizeof(rig->log)] = (uint8_t)value;
  if (rig->raises_smi)
    cpu_signal(rig->cpu, CPU_SMI);
}

static inline uint64_t bus_read(void *data, uint64_t address, unsigned size)
{
  (void)data;
  (void)address;
  (void)size;
  return UINT64_MAX;
}

static inline void bus_write(void *data, uint64_t address, unsigned size, uint64_t value)
{
  (void)data;
  (void)address;
  (void)size;
  (void)value;
}

static inline uint8_t bus_acknowledge(void *data)
{
  struct rig *rig = data;

  cpu_set_line(rig->cpu, CPU_LINE_INTR, false);
  return rig->vector;
}

static inline int bus_apic_read(void *data, uint32_t msr, uint64_t *ret_value)
{
  const struct rig *rig = data;

  if (msr != 0x1B && msr != 0x6E0)
    return -1;
  *ret_value = msr == 0x1B ? rig->apic_base : rig->deadline;
  return 0;
}

static inline int bus_apic_write(void *data, uint32_t msr, uint64_t value)
{
  struct rig *rig = data;

  if (msr != 0x1B && msr != 0x6E0)
    return -1;
  *(msr == 0x1B ? &rig->apic_base : &rig->deadline) = value;
  return 0;
}

static inline uint8_t bus_priority(void *data)
{
  const struct rig *rig = data;

  return rig->priority;
}

static inline void bus_set_priority(void *data, uint8_t value)
{
  struct rig *rig = data;

  rig->priority = value;
}

static inline void bus_nothing(void *data)
{
  (void)data;
}

static inline void bus_message(void *data, const struct lb_message *message)
{
  (void)data;
  (void)message;
}

static inline void bus_service(void *data, uint8_t number)
{
  struct rig *rig = data;

  rig->service = number;
}

/* ---- making guests ---- */

static inline const struct lb_cpu *cpu_named(const char *name)
{
  const struct lb_cpu *cpu = NULL;

  assert_int_equal(lb_cpu_find(name, &cpu), 0);
  return cpu;
}

static inline void put(struct rig *rig, uint64_t address, uint64_t value, unsigned size)
{
  assert_true(memory_write(&rig->memory, address, &value, size));
}

static inline uint64_t get(struct rig *rig, uint64_t address, unsigned size)
{
  uint64_t value = 0;

  assert_true(memory_read(&rig->memory, address, &value, size));
  return value;
}

static inline void rig_new(struct rig *rig, const char *name)
{
  *rig = (struct rig){.apic_base = 0xFEE00900, .vector = 0x20};
  struct cpu_bus bus = {
    .data = rig,
    .in = bus_in,
    .out = bus_out,
    .mmio_read = bus_read,
    .mmio_write = bus_write,
    .acknowledge = bus_acknowledge,
    .apic_read = bus_apic_read,
    .apic_write = bus_apic_write,
    .task_priority = bus_priority,
    .set_task_priority = bus_set_priority,
    .pmi = bus_nothing,
    .ferr = bus_nothing,
    .message = bus_message,
    .service = bus_service,
  };
  assert_int_equal(memory_init(&rig->memory, 2 << 20), 0);
  assert_int_equal(cpu_new(cpu_named(name), &rig->memory, &bus, 0, &rig->cpu), 0);
  for (unsigned i = 0; i < 256; i++) {
    put(rig, HANDLERS + 16 * i, 0xF4, 1);
    put(rig, 4 * i, HANDLERS + 16 * i, 4); /* interrupt vector table: 0000:offset */
  }
}

static inline void rig_free(struct rig *rig)
{
  cpu_free(rig->cpu);
  memory_done(&rig->memory);
}

static inline void rig_real(struct rig *rig, const char *name)
{
  static const uint8_t segments[] = {ES, CS, SS, DS, FS, GS};

  rig_new(rig, name);
  for (unsigned i = 0; i < sizeof(segments); i++)
    cpu_load_real_segment(rig->cpu, segments[i], 0);
  rig->cpu->idtr.limit = 0x3FF;
  rig->cpu->r[RSP] = STACK;
}

/* Descriptors: 08 code, 10 data, 18 and 20 the same of ring 3, 28 TSS, 38 64-bit code. */
static inline void rig_tables(struct rig *rig)
{
  static const uint64_t descriptors[] = {
    0, 0x00CF9B000000FFFF, 0x00CF93000000FFFF, 0x00CFFB000000FFFF, 0x00CFF3000000FFFF, 0, 0, 0x00AF9B000000FFFF,
  };

  for (unsigned i = 0; i < 8; i++)
    put(rig, GDT + 8 * i, descriptors[i], 8);
  for (unsigned i = 0; i < 256; i++) { /* gates of DPL 3 */
    uint64_t offset = HANDLERS + 16 * i;
    put(rig, IDT_32 + 8 * i, offset | UINT64_C(0x08) << 16 | UINT64_C(0xEE00) << 32, 8);
    put(rig, IDT_64 + 16 * i, offset | UINT64_C(0x38) << 16 | UINT64_C(0xEE00) << 32, 8);
    put(rig, IDT_64 + 16 * i + 8, 0, 8);
  }
  put(rig, TSS + 4, STACK_0, 4);
  put(rig, TSS + 8, 0x10, 4);
}

static inline void rig_flat(struct rig *rig)
{
  struct cpu *cpu = rig->cpu;

  rig_tables(rig);
  cpu_enter_flat_protected(cpu, CODE);
  cpu->gdtr = (struct cpu_table){GDT, 0x3F};
  cpu->idtr = (struct cpu_table){IDT_32, 0x7FF};
  cpu->segment[TR] = (struct cpu_segment){.base = TSS, .limit = 0x67, .selector = 0x28, .access = SEGMENT_P | 0xB};
  cpu->r[RSP] = STACK;
}

static inline void rig_protected(struct rig *rig, const char *name)
{
  rig_new(rig, name);
  rig_flat(rig);
  cpu_changed(rig->cpu);
}

/* Identity for 1 GByte, as pages of 2 MByte. */
static inline void rig_page_tables(struct rig *rig)
{
  put(rig, TABLES, (TABLES + 0x1000) | 7, 8);
  put(rig, TABLES + 0x1000, (TABLES + 0x2000) | 7, 8);
  for (uint64_t i = 0; i < 512; i++)
    put(rig, TABLES + 0x2000 + 8 * i, i << 21 | 0x87, 8);
}

static inline void rig_long(struct rig *rig, const char *name)
{
  rig_new(rig, name);
  struct cpu *cpu = rig->cpu;
  rig_flat(rig);
  rig_page_tables(rig);
  cpu->cr3 = TABLES;
  cpu->cr4 |= CR4_PAE;
  cpu->efer = EFER_LME | EFER_LMA;
  cpu->cr0 |= CR0_PG;
  lb_recorder_long_mode(&cpu->recorder, true);
  cpu->idtr = (struct cpu_table){IDT_64, 0xFFF};
  cpu->segment[CS].selector = 0x38;
  cpu->segment[CS].access = 0xA09B;
  cpu_changed(cpu);
}

static inline void rig_ring_3(struct rig *rig)
{
  struct cpu *cpu = rig->cpu;
  static const uint8_t data[] = {ES, SS, DS, FS, GS};

  cpu->segment[CS].selector = 0x1B;
  cpu->segment[CS].access |= 0x60;
  for (unsigned i = 0; i < sizeof(data); i++) {
    cpu->segment[data[i]].selector = 0x23;
    cpu->segment[data[i]].access |= 0x60;
  }
  cpu_changed(cpu);
}

/* ---- running ---- */

static inline uint64_t code_offset(const struct rig *rig)
{
  return CODE - rig->cpu->segment[CS].linear_base;
}

/* Runs `size` bytes and a HLT behind them. Returns DONE, the vector whose handler was reached, or RUNAWAY. */
static inline int execute(struct rig *rig, const void *bytes, size_t size)
{
  struct cpu *cpu = rig->cpu;

  assert_true(memory_write(&rig->memory, CODE, bytes, size));
  put(rig, CODE + size, 0xF4, 1);
  cpu->activity = CPU_RUNNING;
  cpu_set_rip(cpu, code_offset(rig));
  cpu_changed(cpu);
  enum cpu_stop stop = cpu_run(cpu, 1000);
  uint64_t linear = cpu->rip + cpu->segment[CS].linear_base;
  if (stop != CPU_STOP_HALTED)
    return RUNAWAY;
  if (linear == CODE + size + 1)
    return DONE;
  if (linear < HANDLERS || linear >= HANDLERS + 16 * 256)
    return RUNAWAY;
  return (int)(linear - HANDLERS) / 16;
}

#define EXECUTE(rig, ...) execute(rig, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Runs the program at CODE in ring 3, up to its UD2. */
static inline void run_ring_3(struct rig *rig)
{
  rig_ring_3(rig);
  rig->cpu->activity = CPU_RUNNING;
  cpu_set_rip(rig->cpu, CODE);
  cpu_changed(rig->cpu);
  assert_int_equal(cpu_run(rig->cpu, 100000), CPU_STOP_HALTED);
  assert_int_equal(rig->cpu->rip, HANDLERS + 16 * UD + 1);
}

/* MOV CRn, EAX and the like: one instruction with EAX given. Works in every mode. */
static inline int mov_cr(struct rig *rig, unsigned number, uint64_t value)
{
  rig->cpu->r[RAX] = value;
  return EXECUTE(rig, 0x0F, 0x22, (uint8_t)(0xC0 | number << 3));
}

static inline int mov_dr(struct rig *rig, unsigned number, uint64_t value)
{
  rig->cpu->r[RAX] = value;
  return EXECUTE(rig, 0x0F, 0x23, (uint8_t)(0xC0 | number << 3));
}

static inline int wrmsr(struct rig *rig, uint32_t msr, uint64_t value)
{
  rig->cpu->r[RCX] = msr;
  rig->cpu->r[RAX] = (uint32_t)value;
  rig->cpu->r[RDX] = value >> 32;
  return EXECUTE(rig, 0x0F, 0x30);
}

static inline int rdmsr(struct rig *rig, uint32_t msr, uint64_t *ret_value)
{
  rig->cpu->r[RCX] = msr;
  int result = EXECUTE(rig, 0x0F, 0x32);
  *ret_value = rig->cpu->r[RDX] << 32 | rig->cpu->r[RAX];
  return result;
}

static inline uint64_t msr_of(struct rig *rig, uint32_t msr)
{
  uint64_t value = 0;

  assert_int_equal(rdmsr(rig, msr, &value), DONE);
  return value;
}

#endif
