/* SPDX-License-Identifier: Apache-2.0
 *
 * Decimal digits in AL and AX: SDM vol. 1, 7.3.3. None of these exists in 64-bit mode. OF, which the manual leaves
 * undefined, is 0; so are CF and AF after AAM and AAD.
 */
#include "cpu/fault.h"
#include "cpu/operand.h"
#include "cpu/variant.h"

static uint8_t decimal_al(const struct cpu *cpu)
{
  return (uint8_t)cpu->r[RAX];
}

static const struct insn *decimal_done(struct cpu *cpu, const struct insn *insn, uint8_t al, bool cf, bool af)
{
  reg_set(cpu, 8 * RAX, 1, al);
  flags_result(cpu, al, 1, cf, false, af);
  return insn + 1;
}

/* AAA, AAS: one digit per byte, the carry into AH. */
static const struct insn *decimal_unpacked(struct cpu *cpu, const struct insn *insn, int ax_adjust)
{
  if ((decimal_al(cpu) & 0xF) <= 9 && !flags_af(cpu))
    return decimal_done(cpu, insn, decimal_al(cpu) & 0xF, false, false);
  reg_set(cpu, 8 * RAX, 2, cpu->r[RAX] + (uint64_t)(int64_t)ax_adjust);
  return decimal_done(cpu, insn, decimal_al(cpu) & 0xF, true, true);
}

const struct insn *decimal_aaa(struct cpu *cpu, const struct insn *insn)
{
  return decimal_unpacked(cpu, insn, 0x106);
}

const struct insn *decimal_aas(struct cpu *cpu, const struct insn *insn)
{
  return decimal_unpacked(cpu, insn, -0x106);
}

/* DAA, DAS: two digits in AL. Both decisions depend on the original AL. */
const struct insn *decimal_daa(struct cpu *cpu, const struct insn *insn)
{
  uint8_t al = decimal_al(cpu);
  unsigned low = (al & 0xF) > 9 || flags_af(cpu) ? 6 : 0;
  unsigned high = al > 0x99 || flags_cf(cpu) ? 0x60 : 0;

  return decimal_done(cpu, insn, (uint8_t)(al + low + high), high != 0, low != 0);
}

const struct insn *decimal_das(struct cpu *cpu, const struct insn *insn)
{
  uint8_t al = decimal_al(cpu);
  unsigned low = (al & 0xF) > 9 || flags_af(cpu) ? 6 : 0;
  unsigned high = al > 0x99 || flags_cf(cpu) ? 0x60 : 0;

  return decimal_done(cpu, insn, (uint8_t)(al - low - high), high != 0 || al < low, low != 0);
}

/* AAM, AAD: the immediate is the base, 10 unless the bytes were encoded by hand. */
const struct insn *decimal_aam(struct cpu *cpu, const struct insn *insn)
{
  uint8_t al = decimal_al(cpu), base = (uint8_t)insn->imm;

  if (!base)
    fault_raise(cpu, EXCEPTION_DE, 0);
  reg_set(cpu, 8 * RAX + 1, 1, al / base);
  return decimal_done(cpu, insn, al % base, false, false);
}

const struct insn *decimal_aad(struct cpu *cpu, const struct insn *insn)
{
  uint8_t ah = (uint8_t)reg_get(cpu, 8 * RAX + 1, 1);
  uint8_t al = (uint8_t)(decimal_al(cpu) + ah * (uint8_t)insn->imm);

  reg_set(cpu, 8 * RAX + 1, 1, 0);
  return decimal_done(cpu, insn, al, false, false);
}
