/* SPDX-License-Identifier: Apache-2.0
 *
 * Single elements and masks of vector registers: PEXTR, PINSR, MOVMSK, PMOVMSKB, the masked stores, the blends under a
 * mask register, PTEST.
 */
#include "cpu/flags.h"
#include "cpu/vector.h"

static void lane_begin(struct cpu *cpu, const struct insn *insn, bool is_mmx)
{
  if (is_mmx)
    vector_begin_mmx(cpu);
  else
    vector_begin_any(cpu, insn);
}

/* ---- PEXTRB, PEXTRW, PEXTRD, PEXTRQ, EXTRACTPS ---- */

static const struct insn *lane_extract(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  bool is_mmx = insn->op_class[1] == CLASS_MMX;

  lane_begin(cpu, insn, is_mmx);
  const uint8_t *bytes = is_mmx ? cpu->fpu.st[insn->op[1]] : cpu->fpu.v[insn->op[1]].u8;
  unsigned mask = (is_mmx ? 8 : 16) / size - 1;
  uint64_t value = access_fetch(bytes + (insn->imm & mask) * size, size);
  if (insn->op_class[0] == CLASS_MEMORY)
    insn_store(cpu, insn, size, value);
  else
    reg_set(cpu, insn->op[0], 8, value); /* zero-extended to the whole register */
  if (is_mmx)
    mmx_enter(cpu);
  return insn + 1;
}

HANDLER(vector_pextrb, lane_extract, 1);
HANDLER(vector_pextrw, lane_extract, 2);
HANDLER(vector_pextrd, lane_extract, 4);
HANDLER(vector_pextrq, lane_extract, 8);

/* ---- PINSRB, PINSRW, PINSRD, PINSRQ ---- */

static uint64_t lane_source(struct cpu *cpu, const struct insn *insn, unsigned number, unsigned size)
{
  return insn->op_class[number] == CLASS_MEMORY ? insn_load(cpu, insn, size) : reg_get(cpu, insn->op[number], size);
}

static const struct insn *lane_insert(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_any(cpu, insn);
  unsigned last = vector_is_vex(insn) ? 2 : 1;
  uint64_t value = lane_source(cpu, insn, last, size);
  union vector result;
  memcpy(result.u8, cpu->fpu.v[insn->op[last - 1]].u8, 16);
  memcpy(result.u8 + (insn->imm & (16 / size - 1)) * size, &value, size);
  __m128i whole;
  memcpy(&whole, result.u8, 16);
  vector_set_any(cpu, insn, insn->op[0], whole);
  return insn + 1;
}

const struct insn *vector_pinsrw(struct cpu *cpu, const struct insn *insn)
{
  if (insn->op_class[0] != CLASS_MMX)
    return lane_insert(cpu, insn, 2);
  vector_begin_mmx(cpu);
  uint64_t value = lane_source(cpu, insn, 1, 2);
  unsigned shift = 16 * (insn->imm & 3);
  uint64_t old = mmx_get(cpu, insn->op[0]) & ~((uint64_t)0xFFFF << shift);
  mmx_enter(cpu);
  mmx_set(cpu, insn->op[0], old | value << shift);
  return insn + 1;
}

HANDLER(vector_pinsrb, lane_insert, 1);
HANDLER(vector_pinsrd, lane_insert, 4);
HANDLER(vector_pinsrq, lane_insert, 8);

/* ---- sign bits into a general register ---- */

static uint64_t sign_bits(const uint8_t *bytes, unsigned count, unsigned size)
{
  uint64_t mask = 0;

  for (unsigned i = 0; i < count; i++)
    mask |= (uint64_t)(bytes[i * size + size - 1] >> 7) << i;
  return mask;
}

static const struct insn *lane_signs(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  bool is_mmx = insn->op_class[1] == CLASS_MMX;

  lane_begin(cpu, insn, is_mmx);
  const uint8_t *bytes = is_mmx ? cpu->fpu.st[insn->op[1]] : cpu->fpu.v[insn->op[1]].u8;
  unsigned width = is_mmx ? 8 : insn->op_class[1] == CLASS_YMM ? 32 : 16;
  reg_set(cpu, insn->op[0], 8, sign_bits(bytes, width / size, size));
  if (is_mmx)
    mmx_enter(cpu);
  return insn + 1;
}

HANDLER(vector_pmovmskb, lane_signs, 1);
HANDLER(vector_movmskps, lane_signs, 4);
HANDLER(vector_movmskpd, lane_signs, 8);

/* ---- MASKMOVDQU, MASKMOVQ: bytes whose mask has its top bit, to DS:rDI ---- */

static void masked_store(struct cpu *cpu, const struct insn *insn, const uint8_t *bytes, const uint8_t *mask,
                         unsigned size)
{
  uint64_t address = cpu->r[RDI];
  unsigned first = 0, last = size;

  while (first < size && mask[first] < 0x80)
    first++;
  if (first == size)
    return;
  while (mask[last - 1] < 0x80)
    last--;
  access_check_write(cpu, insn->segment, (address + first) & insn->address_mask, last - first);
  for (unsigned i = first; i < last; i++)
    if (mask[i] >= 0x80)
      access_store(cpu, insn->segment, (address + i) & insn->address_mask, 1, bytes[i]);
}

const struct insn *vector_maskmovdqu(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_any(cpu, insn);
  masked_store(cpu, insn, cpu->fpu.v[insn->op[0]].u8, cpu->fpu.v[insn->op[1]].u8, 16);
  return insn + 1;
}

const struct insn *vector_maskmovq(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_mmx(cpu);
  masked_store(cpu, insn, cpu->fpu.st[insn->op[0]], cpu->fpu.st[insn->op[1]], 8);
  mmx_enter(cpu);
  return insn + 1;
}

/* ---- blends: an element's sign in the mask chooses the second source ---- */

static const struct insn *lane_blend(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  bool is_vex = vector_is_vex(insn);

  vector_begin_any(cpu, insn);
  union vector a, b, mask;
  if (is_vex)
    vex_read(cpu, insn, 2, &b);
  else {
    __m128i low = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);

    memcpy(b.u8, &low, 16);
  }
  a = cpu->fpu.v[insn->op[is_vex ? 1 : 0]];
  mask = cpu->fpu.v[is_vex ? insn->op[3] : 0];
  unsigned width = insn->op_class[0] == CLASS_YMM ? 32 : 16;
  for (unsigned i = 0; i < width; i += size)
    if (mask.u8[i + size - 1] >= 0x80)
      memcpy(a.u8 + i, b.u8 + i, size);
  if (is_vex)
    memset(a.u8 + width, 0, 32 - width);
  cpu->fpu.v[insn->op[0]] = a;
  return insn + 1;
}

HANDLER(vector_pblendvb, lane_blend, 1);
HANDLER(vector_blendvps, lane_blend, 4);
HANDLER(vector_blendvpd, lane_blend, 8);

/* ---- PTEST, VTESTPS, VTESTPD ---- */

/* ZF: source and destination have no bit in common. CF: the source has no bit that the destination lacks. `signs`
 * selects the bits that are tested. */
static const struct insn *lane_test(struct cpu *cpu, const struct insn *insn, uint64_t signs)
{
  vector_begin_any(cpu, insn);
  union vector b;
  if (vector_is_vex(insn))
    vex_read(cpu, insn, 1, &b);
  else {
    __m128i low = insn->form == FORM_REG_MEM ? vector_load(cpu, insn, true) : vector_get(cpu, insn->op[1]);

    memcpy(b.u8, &low, 16);
  }
  const union vector *a = &cpu->fpu.v[insn->op[0]];
  uint64_t both = 0, extra = 0;
  for (unsigned i = 0; i < (insn->op_class[0] == CLASS_YMM ? 4u : 2u); i++) {
    both |= a->u64[i] & b.u64[i] & signs;
    extra |= ~a->u64[i] & b.u64[i] & signs;
  }
  flags_set_arithmetic(cpu, (both ? 0u : FLAG_ZF) | (extra ? 0u : FLAG_CF));
  return insn + 1;
}

HANDLER(vector_ptest, lane_test, UINT64_MAX);
HANDLER(vector_vtestps, lane_test, 0x8000000080000000);
HANDLER(vector_vtestpd, lane_test, 0x8000000000000000);
