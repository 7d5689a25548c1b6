/* SPDX-License-Identifier: Apache-2.0
 *
 * System instructions related to the control registers: descriptor-table registers, INVLPG, INVPCID, cache control,
 * XCR0, EFLAGS.AC, and the bases of FS and GS. SDM vol. 2, under the instructions' names.
 */
#include "cpu/control.h"
#include "cpu/instruction.h"
#include "cpu/xsave.h"

/* ---- LGDT, LIDT, SGDT, SIDT ---- */

/* Whether the operand size is 16 bits. The operand of six bytes does not show it, so this looks for the prefix. */
static bool has_16_bit_operands(struct cpu *cpu, const struct insn *insn)
{
  uint8_t bytes[ISA_LENGTH_MAX] = {0};
  bool has_prefix = false;
  size_t size = cpu_peek(cpu, cpu->segment[CS].linear_base + insn->rip, bytes, insn->length);

  for (size_t i = 0; i < size && bytes[i] != 0x0F; i++)
    has_prefix |= bytes[i] == 0x66;
  return has_prefix != ((cpu->mode & MODE_BITS) == MODE_16);
}

/* Limit and base as they lie in memory: 6 bytes, in 64-bit mode 10. With 16-bit operands the base has 24 bits. */
static void table_load(struct cpu *cpu, const struct insn *insn, struct cpu_table *table)
{
  uint8_t bytes[10];
  bool is_64 = insn_is_64(cpu);

  control_check_privilege(cpu);
  access_read(cpu, insn->segment, insn_address(cpu, insn), bytes, is_64 ? 10 : 6);
  uint64_t base = access_fetch(bytes + 2, is_64 ? 8 : 4);
  if (is_64 && !control_is_canonical(base))
    fault_gp(cpu, 0);
  if (!is_64 && has_16_bit_operands(cpu, insn))
    base &= 0xFFFFFF;
  *table = (struct cpu_table){.base = base, .limit = (uint32_t)access_fetch(bytes, 2)};
}

/* All 32 bits of the base are stored for any operand size, as on every CPU since the 386. */
static void table_store(struct cpu *cpu, const struct insn *insn, const struct cpu_table *table)
{
  uint8_t bytes[10];
  uint16_t limit = (uint16_t)table->limit;

  control_check_umip(cpu);
  memcpy(bytes, &limit, 2);
  memcpy(bytes + 2, &table->base, 8);
  access_write(cpu, insn->segment, insn_address(cpu, insn), bytes, insn_is_64(cpu) ? 10 : 6);
}

const struct insn *control_lgdt(struct cpu *cpu, const struct insn *insn)
{
  table_load(cpu, insn, &cpu->gdtr);
  return insn + 1;
}

const struct insn *control_lidt(struct cpu *cpu, const struct insn *insn)
{
  table_load(cpu, insn, &cpu->idtr);
  return insn + 1;
}

const struct insn *control_sgdt(struct cpu *cpu, const struct insn *insn)
{
  table_store(cpu, insn, &cpu->gdtr);
  return insn + 1;
}

const struct insn *control_sidt(struct cpu *cpu, const struct insn *insn)
{
  table_store(cpu, insn, &cpu->idtr);
  return insn + 1;
}

/* ---- caches ---- */

/* The segment limit is not checked; an address that is not canonical has no effect. */
const struct insn *control_invlpg(struct cpu *cpu, const struct insn *insn)
{
  control_check_privilege(cpu);
  uint64_t linear = (cpu->segment[insn->segment].linear_base + insn_address(cpu, insn)) & cpu->linear_mask;
  if (!insn_is_64(cpu) || control_is_canonical(linear)) {
    access_flush_page(cpu, linear);
    lb_recorder_flush(&cpu->recorder);
  }
  return insn_leave(cpu, insn);
}

enum { INVPCID_ADDRESS, INVPCID_CONTEXT, INVPCID_ALL_GLOBAL, INVPCID_ALL };

/* Without CR4.PCIDE there is one context, PCID 0. With it there are more, and all of them are flushed, which is
 * allowed. */
static void check_invpcid(struct cpu *cpu, uint64_t type, uint64_t context, uint64_t linear)
{
  if (type > INVPCID_ALL || context >> 12)
    fault_gp(cpu, 0);
  if (type <= INVPCID_CONTEXT && context && !(cpu->cr4 & CR4_PCIDE))
    fault_gp(cpu, 0);
  if (type == INVPCID_ADDRESS && !control_is_canonical(linear))
    fault_gp(cpu, 0);
}

const struct insn *control_invpcid(struct cpu *cpu, const struct insn *insn)
{
  uint8_t bytes[16];

  control_check_privilege(cpu);
  uint64_t type = reg_get(cpu, insn->op[0], insn_is_64(cpu) ? 8 : 4);
  access_read(cpu, insn->segment, insn_address(cpu, insn), bytes, 16);
  uint64_t context = access_fetch(bytes, 8);
  uint64_t linear = access_fetch(bytes + 8, 8);
  check_invpcid(cpu, type, context, linear);
  if (type == INVPCID_ADDRESS)
    access_flush_page(cpu, linear & cpu->linear_mask);
  else
    access_flush(cpu, type == INVPCID_ALL_GLOBAL);
  lb_recorder_flush(&cpu->recorder);
  return insn_leave(cpu, insn);
}

/* There are no data caches to write back or drop. */
const struct insn *control_wbinvd(struct cpu *cpu, const struct insn *insn)
{
  control_check_privilege(cpu);
  return insn + 1;
}

/* ---- XCR0 ---- */

enum { XCR0_X87 = 1, XCR0_SSE = 2, XCR0_AVX = 4, XCR0_PKRU = 1 << 9 };

static void check_xsave(struct cpu *cpu)
{
  if (!(cpu->cr4 & CR4_OSXSAVE))
    fault_ud(cpu);
}

uint64_t system_xcr0_bits(const struct cpu *cpu)
{
  return XCR0_X87 | XCR0_SSE | (system_has(cpu, FEATURE_AVX) ? XCR0_AVX : 0) |
         (system_has(cpu, FEATURE_PKU) ? XCR0_PKRU : 0);
}

const struct insn *control_xgetbv(struct cpu *cpu, const struct insn *insn)
{
  check_xsave(cpu);
  uint32_t number = (uint32_t)cpu->r[RCX];
  if (number > (system_has(cpu, FEATURE_XGETBV1) ? 1 : 0))
    fault_gp(cpu, 0);
  uint64_t value = cpu->xcr0 & (number ? xsave_used(cpu) : UINT64_MAX);
  cpu->r[RAX] = (uint32_t)value;
  cpu->r[RDX] = value >> 32;
  return insn + 1;
}

const struct insn *control_xsetbv(struct cpu *cpu, const struct insn *insn)
{
  check_xsave(cpu);
  control_check_privilege(cpu);
  uint64_t value = (uint64_t)(uint32_t)cpu->r[RDX] << 32 | (uint32_t)cpu->r[RAX];
  bool is_bad = (value & ~system_xcr0_bits(cpu)) || !(value & XCR0_X87) || ((value & XCR0_AVX) && !(value & XCR0_SSE));
  if ((uint32_t)cpu->r[RCX] != 0 || is_bad)
    fault_gp(cpu, 0);
  cpu->xcr0 = value;
  return insn_leave(cpu, insn);
}

/* ---- EFLAGS.AC ---- */

/* They do not exist above CPL 0, and therefore not in virtual-8086 mode. */
static const struct insn *set_ac(struct cpu *cpu, const struct insn *insn, uint32_t value)
{
  if (cpu->cpl)
    fault_ud(cpu);
  cpu->eflags = (cpu->eflags & ~(uint32_t)FLAG_AC) | value;
  return insn_leave(cpu, insn);
}

const struct insn *control_stac(struct cpu *cpu, const struct insn *insn)
{
  return set_ac(cpu, insn, FLAG_AC);
}

const struct insn *control_clac(struct cpu *cpu, const struct insn *insn)
{
  return set_ac(cpu, insn, 0);
}

/* ---- bases of FS and GS ---- */

const struct insn *control_swapgs(struct cpu *cpu, const struct insn *insn)
{
  control_check_privilege(cpu);
  uint64_t base = cpu->segment[GS].base;
  control_set_base(cpu, GS, cpu->kernel_gs_base);
  cpu->kernel_gs_base = base;
  return insn + 1;
}

static void check_fsgsbase(struct cpu *cpu)
{
  if (!(cpu->cr4 & CR4_FSGSBASE) || !insn_is_64(cpu))
    fault_ud(cpu);
}

static const struct insn *base_read(struct cpu *cpu, const struct insn *insn, unsigned segment)
{
  check_fsgsbase(cpu);
  reg_set(cpu, insn->op[0], insn->size, cpu->segment[segment].base);
  return insn + 1;
}

static const struct insn *base_write(struct cpu *cpu, const struct insn *insn, unsigned segment)
{
  check_fsgsbase(cpu);
  uint64_t base = reg_get(cpu, insn->op[0], insn->size);
  if (!control_is_canonical(base))
    fault_gp(cpu, 0);
  control_set_base(cpu, segment, base);
  return insn + 1;
}

const struct insn *control_rdfsbase(struct cpu *cpu, const struct insn *insn)
{
  return base_read(cpu, insn, FS);
}

const struct insn *control_rdgsbase(struct cpu *cpu, const struct insn *insn)
{
  return base_read(cpu, insn, GS);
}

const struct insn *control_wrfsbase(struct cpu *cpu, const struct insn *insn)
{
  return base_write(cpu, insn, FS);
}

const struct insn *control_wrgsbase(struct cpu *cpu, const struct insn *insn)
{
  return base_write(cpu, insn, GS);
}
