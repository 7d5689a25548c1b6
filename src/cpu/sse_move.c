/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector moves: whole registers, halves, single elements, to and from general and MMX registers. No arithmetic and no
 * flags. The details are alignment, the rest of the register, and that nothing changes before a fault.
 */
#include "cpu/vector.h"

/* ---- 16 bytes ---- */

static const struct insn *whole_reg(struct cpu *cpu, const struct insn *insn)
{
  vector_begin(cpu);
  vector_set(cpu, insn->op[0], vector_get(cpu, insn->op[1]));
  return insn + 1;
}

VECTOR_INLINE const struct insn *whole_load(struct cpu *cpu, const struct insn *insn, bool is_aligned)
{
  vector_begin(cpu);
  vector_set(cpu, insn->op[0], vector_load(cpu, insn, is_aligned));
  return insn + 1;
}

VECTOR_INLINE const struct insn *whole_store(struct cpu *cpu, const struct insn *insn, bool is_aligned)
{
  vector_begin(cpu);
  vector_store(cpu, insn, vector_get(cpu, insn->op[1]), is_aligned);
  return insn + 1;
}

/* VEX: 16 or 32 bytes, the rest of a register becomes 0. Aligned moves require alignment here, too. */
static const struct insn *whole_vex(struct cpu *cpu, const struct insn *insn, bool is_aligned)
{
  vector_begin_vex(cpu);
  union vector value;
  if (insn->form != FORM_REG_REG && is_aligned) {
    unsigned access = insn->form == FORM_MEM_REG ? ACCESS_WRITE : ACCESS_READ;
    uint64_t linear = access_linear(cpu, insn->segment, insn_address(cpu, insn), insn->memory_size, access);

    if (linear & (insn->memory_size - 1u))
      fault_gp(cpu, 0);
  }
  vex_read(cpu, insn, 1, &value);
  if (insn->form == FORM_MEM_REG)
    access_write(cpu, insn->segment, insn_address(cpu, insn), value.u8, insn->memory_size);
  else
    cpu->fpu.v[insn->op[0]] = value;
  return insn + 1;
}

static HANDLER(load_aligned, whole_load, true);
static HANDLER(load_unaligned, whole_load, false);
static HANDLER(store_aligned, whole_store, true);
static HANDLER(store_unaligned, whole_store, false);
static HANDLER(vex_aligned, whole_vex, true);
static HANDLER(vex_unaligned, whole_vex, false);

/* MOVAPS, MOVAPD, MOVDQA, and the non-temporal moves, which require alignment too */
insn_handler *vector_move_aligned(const struct insn *insn)
{
  if (vector_is_vex(insn))
    return vex_aligned;
  return insn->form == FORM_MEM_REG ? store_aligned : insn->form == FORM_REG_MEM ? load_aligned : whole_reg;
}

/* MOVUPS, MOVUPD, MOVDQU, LDDQU */
insn_handler *vector_move_unaligned(const struct insn *insn)
{
  if (vector_is_vex(insn))
    return vex_unaligned;
  return insn->form == FORM_MEM_REG ? store_unaligned : insn->form == FORM_REG_MEM ? load_unaligned : whole_reg;
}

/* ---- 8 bytes: a half of the register ---- */

/* VEX has a third operand, which supplies the other half. */
static const struct insn *half_load(struct cpu *cpu, const struct insn *insn, unsigned half)
{
  vector_begin_any(cpu, insn);
  union vector value;
  uint64_t loaded = insn_load(cpu, insn, 8);
  memcpy(value.u8, cpu->fpu.v[insn->op[vector_is_vex(insn) ? 1 : 0]].u8, 16);
  value.u64[half] = loaded;
  __m128i result;
  memcpy(&result, value.u8, 16);
  vector_set_any(cpu, insn, insn->op[0], result);
  return insn + 1;
}

static const struct insn *half_store(struct cpu *cpu, const struct insn *insn, unsigned half)
{
  vector_begin_any(cpu, insn);
  insn_store(cpu, insn, 8, cpu->fpu.v[insn->op[1]].u64[half]);
  return insn + 1;
}

static HANDLER(low_load, half_load, 0);
static HANDLER(low_store, half_store, 0);
static HANDLER(high_load, half_load, 1);
static HANDLER(high_store, half_store, 1);

insn_handler *vector_move_low(const struct insn *insn)
{
  return insn->form == FORM_MEM_REG ? low_store : low_load;
}

insn_handler *vector_move_high(const struct insn *insn)
{
  return insn->form == FORM_MEM_REG ? high_store : high_load;
}

/* MOVHLPS: the source's upper half becomes the lower one. MOVLHPS: the lower half becomes the upper one. */
const struct insn *vector_movhlps(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_any(cpu, insn);
  unsigned last = vector_is_vex(insn) ? 2 : 1;
  __m128i a = vector_get(cpu, insn->op[last - 1]), b = vector_get(cpu, insn->op[last]);
  vector_set_any(cpu, insn, insn->op[0], _mm_unpackhi_epi64(b, a));
  return insn + 1;
}

const struct insn *vector_movlhps(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_any(cpu, insn);
  unsigned last = vector_is_vex(insn) ? 2 : 1;
  __m128i a = vector_get(cpu, insn->op[last - 1]), b = vector_get(cpu, insn->op[last]);
  vector_set_any(cpu, insn, insn->op[0], _mm_unpacklo_epi64(a, b));
  return insn + 1;
}

/* ---- MOVSS, MOVSD: one element; from memory it clears the rest, from a register it does not ---- */

VECTOR_INLINE const struct insn *element_reg(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_any(cpu, insn);
  unsigned last = vector_is_vex(insn) ? 2 : 1;
  __m128i value = vector_get(cpu, insn->op[last - 1]);
  memcpy(&value, cpu->fpu.v[insn->op[last]].u8, size);
  vector_set_any(cpu, insn, insn->op[0], value);
  return insn + 1;
}

VECTOR_INLINE const struct insn *element_load(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_any(cpu, insn);
  vector_set_any(cpu, insn, insn->op[0], _mm_cvtsi64_si128((long long)insn_load(cpu, insn, size)));
  return insn + 1;
}

VECTOR_INLINE const struct insn *element_store(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_any(cpu, insn);
  insn_store(cpu, insn, size, access_fetch(cpu->fpu.v[insn->op[1]].u8, size));
  return insn + 1;
}

static HANDLER(single_reg, element_reg, 4);
static HANDLER(single_load, element_load, 4);
static HANDLER(single_store, element_store, 4);
static HANDLER(double_reg, element_reg, 8);
static HANDLER(double_load, element_load, 8);
static HANDLER(double_store, element_store, 8);

insn_handler *vector_movss(const struct insn *insn)
{
  return insn->form == FORM_MEM_REG ? single_store : insn->form == FORM_REG_MEM ? single_load : single_reg;
}

insn_handler *vector_movsd(const struct insn *insn)
{
  return insn->form == FORM_MEM_REG ? double_store : insn->form == FORM_REG_MEM ? double_load : double_reg;
}

/* ---- MOVD, MOVQ and similar: any two of general register, MMX, SSE and memory ---- */

static uint64_t scalar_get(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  switch (insn->op_class[1]) {
  case CLASS_MEMORY:
    return insn_load(cpu, insn, size);
  case CLASS_GENERAL:
    return reg_get(cpu, insn->op[1], size);
  case CLASS_MMX:
    return access_fetch(cpu->fpu.st[insn->op[1]], size);
  default:
    return access_fetch(cpu->fpu.v[insn->op[1]].u8, size);
  }
}

static const struct insn *scalar_move(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  bool is_mmx = insn->op_class[0] == CLASS_MMX || insn->op_class[1] == CLASS_MMX;

  if (insn->op_class[0] == CLASS_XMM || insn->op_class[1] == CLASS_XMM)
    vector_begin_any(cpu, insn);
  if (is_mmx)
    vector_begin_mmx(cpu);
  uint64_t value = scalar_get(cpu, insn, size);
  if (insn->op_class[0] == CLASS_MEMORY)
    insn_store(cpu, insn, size, value);
  if (is_mmx)
    mmx_enter(cpu);
  if (insn->op_class[0] == CLASS_GENERAL)
    reg_set(cpu, insn->op[0], size, value);
  else if (insn->op_class[0] == CLASS_MMX)
    mmx_set(cpu, insn->op[0], value);
  else if (insn->op_class[0] == CLASS_XMM)
    vector_set_any(cpu, insn, insn->op[0], _mm_cvtsi64_si128((long long)value));
  return insn + 1;
}

HANDLER(vector_movd, scalar_move, 4);
HANDLER(vector_movq, scalar_move, 8);

/* MOVNTI stores a general register without the caches: in this model a plain store, without a check of SSE's state. */
const struct insn *vector_movnti(struct cpu *cpu, const struct insn *insn)
{
  unsigned size = insn->size == 8 ? 8 : 4;

  insn_store(cpu, insn, size, reg_get(cpu, insn->op[1], size));
  return insn + 1;
}
