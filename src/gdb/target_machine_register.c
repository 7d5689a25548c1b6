/* SPDX-License-Identifier: Apache-2.0
 *
 * The machine's registers for gdb. gdb has only addresses, not segments: RIP is the linear address of the next
 * instruction, whatever the base of CS. A value that the processor would refuse is refused.
 */
#include <errno.h>
#include <string.h>

#include "gdb/target_machine.h"

#define MSR_EFER 0xC0000080u
#define MSR_FS_BASE 0xC0000100u
#define MSR_GS_BASE 0xC0000101u
#define FLAGS_DEFINED                                                                                                  \
  (FLAGS_ARITHMETIC | FLAG_1 | FLAG_TF | FLAG_IF | FLAG_DF | FLAG_IOPL | FLAG_NT | FLAG_RF | FLAG_VM | FLAG_AC |       \
   FLAG_VIF | FLAG_VIP | FLAG_ID)
#define STATUS_TOP 0x3800u
#define CONTROL_FIXED 0x40u /* reads as 1 */
#define MXCSR_DEFINED 0xFFFFu

uint64_t gdb_machine_rip(const struct cpu *cpu)
{
  return (cpu->segment[CS].linear_base + cpu->rip) & cpu->linear_mask;
}

static const uint8_t segments[] = {CS, SS, DS, ES, FS, GS}; /* from GDB_CS on */
static const uint8_t controls[] = {0, 2, 3, 4, 8};          /* from GDB_CR0 on */

/* ---- x87 ---- */

/* 0 valid, 1 zero, 2 special, 3 empty: SDM vol. 1, 8.1.7. */
static unsigned x87_tag(const struct fpu *fpu, unsigned number)
{
  const uint8_t *bytes = fpu->st[number];
  uint64_t significand = bytes_get_u64(bytes);
  unsigned exponent = (unsigned)(bytes[8] | bytes[9] << 8) & 0x7FFF;

  if (!(fpu->tags >> number & 1))
    return 3;
  if (exponent == 0 && significand == 0)
    return 1;
  return exponent == 0 || exponent == 0x7FFF || !(significand >> 63) ? 2 : 0;
}

static uint64_t x87_read(const struct fpu *fpu, enum gdb_register number)
{
  unsigned tags = 0;

  switch (number) {
  case GDB_FCTRL:
    return fpu->control;
  case GDB_FSTAT:
    return (fpu->status & ~STATUS_TOP) | (unsigned)(fpu->top & 7) << 11;
  case GDB_FTAG:
    for (unsigned i = 0; i < 8; i++)
      tags |= x87_tag(fpu, i) << (2 * i);
    return tags;
  case GDB_FISEG:
    return fpu->instruction_selector;
  case GDB_FIOFF:
    return fpu->instruction;
  case GDB_FOSEG:
    return fpu->data_selector;
  case GDB_FOOFF:
    return fpu->data;
  default:
    return fpu->opcode;
  }
}

static int x87_write(struct fpu *fpu, enum gdb_register number, uint64_t value)
{
  bool is_offset = number == GDB_FIOFF || number == GDB_FOOFF;

  if (!is_offset && value > (number == GDB_FOP ? 0x7FFu : 0xFFFFu))
    return -EINVAL;
  switch (number) {
  case GDB_FCTRL:
    fpu->control = (uint16_t)(value | CONTROL_FIXED);
    break;
  case GDB_FSTAT:
    fpu->status = (uint16_t)(value & ~(uint64_t)STATUS_TOP);
    fpu->top = value >> 11 & 7;
    break;
  case GDB_FTAG:
    fpu->tags = 0;
    for (unsigned i = 0; i < 8; i++)
      fpu->tags |= (uint8_t)((value >> (2 * i) & 3) != 3 ? 1u << i : 0);
    break;
  case GDB_FISEG:
    fpu->instruction_selector = (uint16_t)value;
    break;
  case GDB_FIOFF:
    fpu->instruction = value;
    break;
  case GDB_FOSEG:
    fpu->data_selector = (uint16_t)value;
    break;
  case GDB_FOOFF:
    fpu->data = value;
    break;
  default:
    fpu->opcode = (uint16_t)value;
  }
  return 0;
}

/* ---- reading ---- */

static uint64_t control_read(const struct cpu *cpu, enum gdb_register number)
{
  switch (number) {
  case GDB_CR0:
    return cpu->cr0;
  case GDB_CR2:
    return cpu->cr2;
  case GDB_CR3:
    return cpu->cr3;
  case GDB_CR4:
    return cpu->cr4;
  case GDB_CR8:
    return cpu->bus.task_priority(cpu->bus.data);
  default:
    return cpu->efer;
  }
}

static uint64_t word_read(const struct cpu *cpu, enum gdb_register number)
{
  if (number < GDB_RIP)
    return cpu->r[number];
  if (number == GDB_RIP)
    return gdb_machine_rip(cpu);
  if (number == GDB_EFLAGS)
    return cpu_flags(cpu);
  if (number >= GDB_CS && number <= GDB_GS)
    return cpu->segment[segments[number - GDB_CS]].selector;
  if (number >= GDB_FCTRL && number <= GDB_FOP)
    return x87_read(&cpu->fpu, number);
  if (number == GDB_MXCSR)
    return cpu->fpu.mxcsr;
  if (number == GDB_FS_BASE || number == GDB_GS_BASE)
    return cpu->segment[number == GDB_FS_BASE ? FS : GS].base;
  return control_read(cpu, number);
}

int gdb_machine_read(struct gdb_machine *gdb, enum gdb_register number, uint8_t *bytes)
{
  const struct cpu *cpu = machine_cpu(gdb->session->machine);

  if (number >= GDB_ST0 && number < GDB_ST0 + 8)
    memcpy(bytes, cpu->fpu.st[(cpu->fpu.top + number - GDB_ST0) & 7], 10);
  else if (number >= GDB_XMM0 && number < GDB_XMM0 + 16)
    memcpy(bytes, cpu->fpu.v[number - GDB_XMM0].u8, 16);
  else if (number == GDB_ORIG_RAX)
    return 0;
  else
    bytes_put_u64(bytes, word_read(cpu, number));
  return 1;
}

/* ---- writing ---- */

static int rip_write(struct cpu *cpu, uint64_t value)
{
  uint64_t offset = value - cpu->segment[CS].linear_base;

  if (cpu->linear_mask != UINT64_MAX)
    offset &= UINT32_MAX;
  else if ((uint64_t)((int64_t)(value << 16) >> 16) != value)
    return -EINVAL;
  if (offset > cpu->code_limit || (value & cpu->linear_mask) != value)
    return -EINVAL;
  if (cpu->activity == CPU_HALTED)
    cpu->activity = CPU_RUNNING;
  cpu_set_rip(cpu, offset);
  return 0;
}

static int flags_write(struct cpu *cpu, uint64_t value)
{
  uint64_t flags = value | FLAG_1;

  if ((flags & ~(uint64_t)FLAGS_DEFINED) || ((flags ^ cpu->eflags) & FLAG_VM))
    return -EINVAL;
  cpu_set_flags(cpu, flags);
  return 0;
}

static int segment_write(struct cpu *cpu, unsigned number, uint64_t value)
{
  if (value == cpu->segment[number].selector)
    return 0;
  return value > UINT16_MAX ? -EINVAL : cpu_load_segment(cpu, number, (uint16_t)value);
}

static int msr_write(struct cpu *cpu, uint32_t msr, uint64_t value)
{
  return cpu_write_msr(cpu, msr, value) ? 0 : -EINVAL;
}

static int word_write(struct cpu *cpu, enum gdb_register number, uint64_t value)
{
  if (number == GDB_RIP)
    return rip_write(cpu, value);
  if (number == GDB_EFLAGS)
    return flags_write(cpu, value);
  if (number >= GDB_CS && number <= GDB_GS)
    return segment_write(cpu, segments[number - GDB_CS], value);
  if (number >= GDB_FCTRL && number <= GDB_FOP)
    return x87_write(&cpu->fpu, number, value);
  if (number == GDB_FS_BASE || number == GDB_GS_BASE)
    return msr_write(cpu, number == GDB_FS_BASE ? MSR_FS_BASE : MSR_GS_BASE, value);
  if (number == GDB_EFER)
    return msr_write(cpu, MSR_EFER, value);
  if (number != GDB_MXCSR)
    return cpu_set_control(cpu, controls[number - GDB_CR0], value);
  if (value & ~(uint64_t)MXCSR_DEFINED)
    return -EINVAL;
  cpu->fpu.mxcsr = (uint32_t)value;
  return 0;
}

/* The half of a general register that gdb does not see keeps its value. */
static int general_write(struct cpu *cpu, enum gdb_register number, const uint8_t *bytes, unsigned size)
{
  memcpy(&cpu->r[number], bytes, size); /* little-endian hosts */
  return 0;
}

int gdb_machine_write(struct gdb_machine *gdb, enum gdb_register number, const uint8_t *bytes)
{
  struct cpu *cpu = machine_cpu(gdb->session->machine);
  unsigned size = gdb_register_size(gdb->told, number);
  uint64_t before = gdb_machine_rip(cpu);
  int r;

  if (number < GDB_RIP)
    return general_write(cpu, number, bytes, size);
  if (number >= GDB_ST0 && number < GDB_ST0 + 8) {
    memcpy(cpu->fpu.st[(cpu->fpu.top + number - GDB_ST0) & 7], bytes, 10);
    return 0;
  }
  if (number >= GDB_XMM0 && number < GDB_XMM0 + 16) {
    memcpy(cpu->fpu.v[number - GDB_XMM0].u8, bytes, 16);
    return 0;
  }
  if (number == GDB_ORIG_RAX)
    return -EINVAL;
  r = word_write(cpu, number, size == 8 ? bytes_get_u64(bytes) : bytes_get_u32(bytes));
  cpu_changed(cpu);
  if (gdb_machine_rip(cpu) != before) {
    gdb->is_at_exception = false;
    gdb_machine_history_jump(&gdb->history, before);
  }
  return r;
}
