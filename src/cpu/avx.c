/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions that AVX and AVX2 added beyond wider registers: broadcasts, permutations across halves, inserted and
 * extracted halves, shifts by element, masked moves, gathers. Plain C: none of these needs the host's arithmetic. SDM
 * vol. 1, chapter 14.
 */
#include "cpu/vector.h"

/* Bytes of the destination, or of the source where that is the vector. */
static unsigned width_of(const struct insn *insn)
{
  return insn->op_class[0] == CLASS_YMM ? 32 : 16;
}

static uint64_t element_get(const union vector *v, unsigned number, unsigned size)
{
  return access_fetch(v->u8 + number * size, size);
}

static void element_set(union vector *v, unsigned number, unsigned size, uint64_t value)
{
  memcpy(v->u8 + number * size, &value, size);
}

/* ---- VZEROUPPER, VZEROALL: all sixteen registers in 64-bit mode, else eight ---- */

static const struct insn *zero_run(struct cpu *cpu, const struct insn *insn, unsigned from)
{
  vector_begin_vex(cpu);
  for (unsigned i = 0; i < (insn_is_64(cpu) ? 16u : 8u); i++)
    memset(cpu->fpu.v[i].u8 + from, 0, 32 - from);
  return insn + 1;
}

HANDLER(vector_vzeroupper, zero_run, 16);
HANDLER(vector_vzeroall, zero_run, 0);

/* ---- broadcasts: the first element of the source everywhere ---- */

static const struct insn *broadcast_run(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_vex(cpu);
  union vector source, result = {{0}};
  vex_read(cpu, insn, 1, &source);
  for (unsigned i = 0; i < width_of(insn); i += size)
    memcpy(result.u8 + i, source.u8, size);
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

HANDLER(vector_broadcast_1, broadcast_run, 1);
HANDLER(vector_broadcast_2, broadcast_run, 2);
HANDLER(vector_broadcast_4, broadcast_run, 4);
HANDLER(vector_broadcast_8, broadcast_run, 8);
HANDLER(vector_broadcast_16, broadcast_run, 16);

/* ---- permutations ---- */

/* Within each half. Two bits of the immediate, or of the control's element, choose among four singles; for doubles one
 * bit, and bit 1 of the control's element. */
static const struct insn *permil_run(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_vex(cpu);
  bool is_immediate = insn->op_class[2] == CLASS_IMMEDIATE;
  union vector source, control, result = {{0}};
  if (is_immediate) {
    vex_read(cpu, insn, 1, &source);
  } else {
    source = cpu->fpu.v[insn->op[1]];
    vex_read(cpu, insn, 2, &control);
  }
  unsigned per_half = 16 / size;
  for (unsigned i = 0; i < width_of(insn) / size; i++) {
    unsigned from;

    if (is_immediate)
      from = (unsigned)(size == 4 ? insn->imm >> 2 * (i % 4) & 3 : insn->imm >> i & 1);
    else
      from = (unsigned)(element_get(&control, i, size) >> (size == 8) & (per_half - 1));
    element_set(&result, i, size, element_get(&source, i / per_half * per_half + from, size));
  }
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

HANDLER(vector_vpermilps, permil_run, 4);
HANDLER(vector_vpermilpd, permil_run, 8);

/* VPERMD, VPERMPS: any of eight dwords of the last operand, chosen by those of operand 1. */
const struct insn *vector_vpermd(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_vex(cpu);
  union vector source, control = cpu->fpu.v[insn->op[1]], result;
  vex_read(cpu, insn, 2, &source);
  for (unsigned i = 0; i < 8; i++)
    result.u32[i] = source.u32[control.u32[i] & 7];
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

/* VPERMQ, VPERMPD: any of four qwords, chosen by the immediate. */
const struct insn *vector_vpermq(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_vex(cpu);
  union vector source, result;
  vex_read(cpu, insn, 1, &source);
  for (unsigned i = 0; i < 4; i++)
    result.u64[i] = source.u64[insn->imm >> 2 * i & 3];
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

/* VPERM2F128, VPERM2I128: each half is one of the four halves of the sources, or 0. */
const struct insn *vector_vperm2f128(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_vex(cpu);
  union vector source[2] = {cpu->fpu.v[insn->op[1]]}, result = {{0}};
  vex_read(cpu, insn, 2, &source[1]);
  for (unsigned half = 0; half < 2; half++) {
    unsigned control = (unsigned)(insn->imm >> 4 * half);

    if (!(control & 8))
      memcpy(result.u8 + 16 * half, source[control >> 1 & 1].u8 + 16 * (control & 1), 16);
  }
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

/* ---- halves ---- */

const struct insn *vector_vinsertf128(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_vex(cpu);
  union vector result = cpu->fpu.v[insn->op[1]], source;
  vex_read(cpu, insn, 2, &source);
  memcpy(result.u8 + 16 * (insn->imm & 1), source.u8, 16);
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

const struct insn *vector_vextractf128(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_vex(cpu);
  __m128i value = vector_half(cpu, insn->op[1], insn->imm & 1);
  if (insn->form == FORM_MEM_REG)
    vector_store(cpu, insn, value, false);
  else
    vector_set_whole(cpu, insn->op[0], value, _mm_setzero_si128());
  return insn + 1;
}

/* ---- VPBLENDD ---- */

const struct insn *vector_vpblendd(struct cpu *cpu, const struct insn *insn)
{
  vector_begin_vex(cpu);
  union vector a = cpu->fpu.v[insn->op[1]], b, result = {{0}};
  vex_read(cpu, insn, 2, &b);
  for (unsigned i = 0; i < width_of(insn) / 4; i++)
    result.u32[i] = insn->imm >> i & 1 ? b.u32[i] : a.u32[i];
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

/* ---- shifts by element: a count beyond the width shifts everything out ---- */

enum shift { SHIFT_LEFT, SHIFT_RIGHT, SHIFT_ARITHMETIC };

static uint64_t shifted(uint64_t value, uint64_t count, unsigned bits, enum shift shift)
{
  if (shift == SHIFT_ARITHMETIC) /* dwords only */
    return (uint32_t)((int32_t)(uint32_t)value >> (count < bits ? count : bits - 1));
  if (count >= bits)
    return 0;
  return shift == SHIFT_LEFT ? value << count : value >> count;
}

static const struct insn *shift_run(struct cpu *cpu, const struct insn *insn, unsigned size, enum shift shift)
{
  vector_begin_vex(cpu);
  union vector a = cpu->fpu.v[insn->op[1]], b, result = {{0}};
  vex_read(cpu, insn, 2, &b);
  for (unsigned i = 0; i < width_of(insn) / size; i++)
    element_set(&result, i, size, shifted(element_get(&a, i, size), element_get(&b, i, size), 8 * size, shift));
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

HANDLER(vector_vpsllvd, shift_run, 4, SHIFT_LEFT);
HANDLER(vector_vpsllvq, shift_run, 8, SHIFT_LEFT);
HANDLER(vector_vpsrlvd, shift_run, 4, SHIFT_RIGHT);
HANDLER(vector_vpsrlvq, shift_run, 8, SHIFT_RIGHT);
HANDLER(vector_vpsravd, shift_run, 4, SHIFT_ARITHMETIC);

/* ---- masked moves: only elements whose mask has its sign are touched in memory ---- */

static bool is_chosen(const union vector *mask, unsigned number, unsigned size)
{
  return mask->u8[number * size + size - 1] >= 0x80;
}

static uint64_t element_address(const struct cpu *cpu, const struct insn *insn, unsigned offset)
{
  return (insn_address(cpu, insn) + offset) & insn->address_mask;
}

static const struct insn *masked_load(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_vex(cpu);
  union vector mask = cpu->fpu.v[insn->op[1]], result = {{0}};
  for (unsigned i = 0; i < width_of(insn) / size; i++)
    if (is_chosen(&mask, i, size))
      element_set(&result, i, size, access_load(cpu, insn->segment, element_address(cpu, insn, i * size), size));
  cpu->fpu.v[insn->op[0]] = result;
  return insn + 1;
}

static const struct insn *masked_store(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  vector_begin_vex(cpu);
  const union vector *mask = &cpu->fpu.v[insn->op[1]], *source = &cpu->fpu.v[insn->op[2]];
  unsigned elements = (insn->op_class[1] == CLASS_YMM ? 32 : 16) / size;
  for (unsigned i = 0; i < elements; i++) /* nothing is written if any element would fault */
    if (is_chosen(mask, i, size))
      access_check_write(cpu, insn->segment, element_address(cpu, insn, i * size), size);
  for (unsigned i = 0; i < elements; i++)
    if (is_chosen(mask, i, size))
      access_store(cpu, insn->segment, element_address(cpu, insn, i * size), size, element_get(source, i, size));
  return insn + 1;
}

static const struct insn *masked_run(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  return insn->form == FORM_MEM_REG ? masked_store(cpu, insn, size) : masked_load(cpu, insn, size);
}

HANDLER(vector_vmaskmovps, masked_run, 4);
HANDLER(vector_vmaskmovpd, masked_run, 8);

/* ---- gathers ---- */

/* Elements at base + index * scale. If an element faults, the elements loaded before it stay and their mask elements
 * are cleared, so that the instruction can be restarted there. The index register is stored in the place of a general
 * one, as 8 * number. */
static const struct insn *gather_run(struct cpu *cpu, const struct insn *insn, unsigned index_size, unsigned size)
{
  vector_begin_vex(cpu);
  unsigned index = insn->index / 8 % 16, to = insn->op[0], mask = insn->op[2];
  if (index == to || index == mask || to == mask)
    fault_ud(cpu);
  unsigned elements = (insn->variant == VARIANT_VEX_256 ? 32u : 16u) / (index_size > size ? index_size : size);
  for (unsigned i = 0; i < elements; i++) {
    if (!is_chosen(&cpu->fpu.v[mask], i, size))
      continue;
    uint64_t number = element_get(&cpu->fpu.v[index], i, index_size);
    if (index_size == 4)
      number = (uint64_t)(int64_t)(int32_t)(uint32_t)number;
    uint64_t address = (reg_get(cpu, insn->base, 8) + (number << insn->scale) + insn->disp) & insn->address_mask;
    element_set(&cpu->fpu.v[to], i, size, access_load(cpu, insn->segment, address, size));
    element_set(&cpu->fpu.v[mask], i, size, 0);
  }
  memset(cpu->fpu.v[to].u8 + elements * size, 0, 32 - elements * size);
  memset(cpu->fpu.v[mask].u8, 0, 32);
  return insn + 1;
}

HANDLER(vector_gather_dword_4, gather_run, 4, 4);
HANDLER(vector_gather_dword_8, gather_run, 4, 8);
HANDLER(vector_gather_qword_4, gather_run, 8, 4);
HANDLER(vector_gather_qword_8, gather_run, 8, 8);
