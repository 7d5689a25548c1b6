/* SPDX-License-Identifier: Apache-2.0
 *
 * Ports: IN, OUT, INS, OUTS. SDM vol. 1 chapter 18 (I/O permission: 18.5), vol. 2 under these names. Devices may have
 * changed their lines, so the run loop checks after every access. A repeated instruction transfers a few elements at a
 * time and takes one cycle for each.
 */
#include "cpu/control.h"
#include "cpu/instruction.h"
#include "cpu/run.h"

#define ELEMENTS_AT_ONCE 32

/* ---- permission ---- */

/* Two bytes of the bitmap are read for any size, so its last byte must be followed by another. */
static bool bitmap_allows(struct cpu *cpu, uint16_t port, unsigned size)
{
  const struct cpu_segment *tss = &cpu->segment[TR];
  bool is_32 = (tss->access & (SEGMENT_P | SEGMENT_S | 0xD)) == (SEGMENT_P | 9); /* or of IA-32e mode, busy or not */

  if (!is_32 || tss->limit < 103)
    return false;
  uint32_t map = (uint32_t)access_load_system(cpu, tss->base + 102, 2);
  uint32_t at = map + port / 8u;
  if (at + 1 > tss->limit)
    return false;
  unsigned bits = (unsigned)access_load_system(cpu, tss->base + at, 2);
  return !(bits >> (port & 7) & ((1u << size) - 1));
}

void system_check_io(struct cpu *cpu, uint16_t port, unsigned size)
{
  unsigned iopl = cpu->eflags >> 12 & 3;
  bool is_free = !(cpu->cr0 & CR0_PE) || (!(cpu->eflags & FLAG_VM) && cpu->cpl <= iopl);

  if (!is_free && !bitmap_allows(cpu, port, size))
    fault_gp(cpu, 0);
}

/* ---- one access ---- */

static uint32_t port_in(struct cpu *cpu, uint16_t port, unsigned size)
{
  uint32_t value = cpu->bus.in(cpu->bus.data, port, size);

  if (cpu->dr_access)
    system_io_breakpoints(cpu, port, size);
  return value;
}

static void port_out(struct cpu *cpu, uint16_t port, unsigned size, uint32_t value)
{
  cpu->bus.out(cpu->bus.data, port, size, value);
  if (cpu->dr_access)
    system_io_breakpoints(cpu, port, size);
}

/* Type of the instruction in the encoding of SMM's IO_MISC: SDM vol. 3, table 34-5. */
enum { IO_OUT = 0, IO_IN = 1, IO_IMMEDIATE = 8 };

/* Notes the access for an SMI that it may cause: the SMI handler can ask for the instruction to be restarted. */
static void note(struct cpu *cpu, const struct insn *insn, uint16_t port, unsigned size, unsigned type)
{
  cpu->io.rip = insn->rip;
  cpu->io.retired = cpu_retired(cpu);
  cpu->io.what = (uint32_t)port << 16 | type << 4 | size << 1 | 1;
}

const struct insn *control_in(struct cpu *cpu, const struct insn *insn)
{
  bool is_immediate = insn->op_class[1] == CLASS_IMMEDIATE;
  uint16_t port = (uint16_t)(is_immediate ? insn->imm & 0xFF : cpu->r[RDX]);

  system_check_io(cpu, port, insn->size);
  note(cpu, insn, port, insn->size, IO_IN | (is_immediate ? IO_IMMEDIATE : 0));
  reg_set(cpu, 8 * RAX, insn->size, port_in(cpu, port, insn->size));
  return insn_leave(cpu, insn);
}

const struct insn *control_out(struct cpu *cpu, const struct insn *insn)
{
  bool is_immediate = insn->op_class[0] == CLASS_IMMEDIATE;
  uint16_t port = (uint16_t)(is_immediate ? insn->imm & 0xFF : cpu->r[RDX]);
  unsigned size = insn->size2;

  system_check_io(cpu, port, size);
  note(cpu, insn, port, size, IO_OUT | (is_immediate ? IO_IMMEDIATE : 0));
  port_out(cpu, port, size, (uint32_t)reg_get(cpu, 8 * RAX, size));
  return insn_leave(cpu, insn);
}

/* ---- strings ---- */

static void index_advance(struct cpu *cpu, const struct insn *insn, unsigned reg, unsigned size)
{
  uint64_t step = cpu->eflags & FLAG_DF ? 0 - (uint64_t)size : size;

  reg_set(cpu, 8 * reg, insn->address_size, cpu->r[reg] + step);
}

/* The device is read only when the store can no longer fault. */
static void element_in(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  uint16_t port = (uint16_t)cpu->r[RDX];
  uint64_t offset = cpu->r[RDI] & insn->address_mask;

  system_check_io(cpu, port, size);
  access_check_write(cpu, ES, offset, size);
  access_store(cpu, ES, offset, size, port_in(cpu, port, size));
  index_advance(cpu, insn, RDI, size);
}

static void element_out(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  uint16_t port = (uint16_t)cpu->r[RDX];
  uint64_t offset = cpu->r[RSI] & insn->address_mask;

  system_check_io(cpu, port, size);
  uint32_t value = (uint32_t)access_load(cpu, insn->segment, offset, size);
  port_out(cpu, port, size, value);
  index_advance(cpu, insn, RSI, size);
}

/* Whether something is pending between two elements: an interrupt, a trap, the host. */
static bool must_look(const struct cpu *cpu)
{
  return cpu->had_tf || cpu->debug_due || cpu->signals || cpu->lines || cpu->is_kicked || cpu->is_stepping ||
         cpu->hit.kind;
}

/* Registers are updated after each element, so that after a fault or an interrupt the instruction continues where it
 * was. */
static const struct insn *repeat(struct cpu *cpu, const struct insn *insn, unsigned size,
                                 void (*element)(struct cpu *, const struct insn *, unsigned))
{
  bool is_repeated = insn->prefixes & (PREFIX_REP | PREFIX_REPNE);

  if (!is_repeated) {
    element(cpu, insn, size);
    return insn_leave(cpu, insn);
  }
  if (!(cpu->r[RCX] & insn->address_mask))
    return insn + 1;
  for (unsigned i = 0; i < ELEMENTS_AT_ONCE; i++) {
    element(cpu, insn, size);
    run_pass_cycles(cpu, 1);
    reg_set(cpu, 8 * RCX, insn->address_size, cpu->r[RCX] - 1);
    if (!(cpu->r[RCX] & insn->address_mask))
      return insn_leave(cpu, insn);
    if (must_look(cpu))
      break;
  }
  return insn_again(cpu, insn);
}

const struct insn *control_insb(struct cpu *cpu, const struct insn *insn)
{
  return repeat(cpu, insn, 1, element_in);
}

const struct insn *control_insw(struct cpu *cpu, const struct insn *insn)
{
  return repeat(cpu, insn, 2, element_in);
}

const struct insn *control_insd(struct cpu *cpu, const struct insn *insn)
{
  return repeat(cpu, insn, 4, element_in);
}

const struct insn *control_outsb(struct cpu *cpu, const struct insn *insn)
{
  return repeat(cpu, insn, 1, element_out);
}

const struct insn *control_outsw(struct cpu *cpu, const struct insn *insn)
{
  return repeat(cpu, insn, 2, element_out);
}

const struct insn *control_outsd(struct cpu *cpu, const struct insn *insn)
{
  return repeat(cpu, insn, 4, element_out);
}
