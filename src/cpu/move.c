/* SPDX-License-Identifier: Apache-2.0
 *
 * Data transfer: MOV in all forms except those of control and debug registers, extensions, conditional moves, LEA. SDM
 * vol. 1, 7.3.1.
 */
#include "cpu/fault.h"
#include "cpu/operand.h"
#include "cpu/segment.h"
#include "cpu/system.h"
#include "cpu/variant.h"

/* ---- MOV ---- */

ALWAYS_INLINE const struct insn *move_run(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, form_is_memory(shape.form) ? ACCESS_WRITE : ACCESS_READ, &place))
    return shape.slow(cpu, insn);
  operand_put(cpu, insn, shape, &place, operand_second(cpu, insn, shape, &place));
  return insn_next(cpu, insn);
}

static insn_chooser move_general;
FORMS_ANY(move_general, move_run);

/* MOV sreg, r/m16. After a load of SS, no event is delivered before the next instruction (SDM vol. 3, 6.8.3). */
static const struct insn *move_to_segment(struct cpu *cpu, const struct insn *insn)
{
  if (insn->op[0] == CS || insn->op[0] > GS)
    fault_ud(cpu);
  uint64_t value = insn->form == FORM_REG_MEM ? insn_load(cpu, insn, 2) : reg_get(cpu, insn->op[1], 2);
  uint32_t mode = cpu->mode;
  segment_load(cpu, insn->op[0], (uint16_t)value);
  if (insn->op[0] != SS)
    return insn_next_in(cpu, insn, mode);
  cpu->shadow = SHADOW_MOV_SS;
  return insn_leave(cpu, insn);
}

/* MOV r/m, sreg: 16 bits to memory whatever the operand size, zero-extended to a register. */
static const struct insn *move_from_segment(struct cpu *cpu, const struct insn *insn)
{
  if (insn->op[1] > GS)
    fault_ud(cpu);
  uint16_t selector = cpu->segment[insn->op[1]].selector;
  if (insn->form == FORM_MEM_REG)
    insn_store(cpu, insn, 2, selector);
  else
    reg_set(cpu, insn->op[0], insn->size, selector);
  return insn_next(cpu, insn);
}

insn_handler *move_mov(const struct insn *insn)
{
  switch (insn->variant) {
  case VARIANT_SEGMENT:
    return insn_writes_special(insn) ? move_to_segment : move_from_segment;
  case VARIANT_CR:
    return control_mov_cr;
  case VARIANT_DR:
    return control_mov_dr;
  default:
    return move_general(insn);
  }
}

/* ---- extension; the source has its own size ---- */

ALWAYS_INLINE const struct insn *move_extend(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                             unsigned from, bool is_signed)
{
  struct place place;
  struct shape source = shape_sized(shape, from);

  if (!operand_find(cpu, insn, source, ACCESS_READ, &place))
    return shape.slow(cpu, insn);
  uint64_t value = operand_second(cpu, insn, source, &place);
  reg_set(cpu, insn->op[0], shape.size, is_signed ? flags_extend(value, from) : value);
  return insn_next(cpu, insn);
}

static insn_chooser move_zero_1, move_zero_2, move_sign_1, move_sign_2, move_sign_4;
FORMS_LOAD(move_zero_1, move_extend, 1, false);
FORMS_LOAD(move_zero_2, move_extend, 2, false);
FORMS_LOAD(move_sign_1, move_extend, 1, true);
FORMS_LOAD(move_sign_2, move_extend, 2, true);
FORMS_LOAD(move_sign_4, move_extend, 4, true);

insn_handler *move_movzx(const struct insn *insn)
{
  return insn->size2 == 1 ? move_zero_1(insn) : move_zero_2(insn);
}

/* MOVSX, and MOVSXD, which without REX.W is a plain move of 32 or 16 bits. */
insn_handler *move_movsx(const struct insn *insn)
{
  return insn->size2 == 1 ? move_sign_1(insn) : insn->size2 == 2 ? move_sign_2(insn) : move_sign_4(insn);
}

/* CBW, CWDE, CDQE: sign-extend half of the accumulator. */
ALWAYS_INLINE const struct insn *move_widen(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  reg_set(cpu, 8 * RAX, size, flags_extend(reg_get(cpu, 8 * RAX, size / 2), size / 2));
  return insn_next(cpu, insn);
}

/* CWD, CDQ, CQO: fill rDX with the accumulator's sign. */
ALWAYS_INLINE const struct insn *move_sign(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  reg_set(cpu, 8 * RDX, size, sign_bit(reg_get(cpu, 8 * RAX, size), size) ? UINT64_MAX : 0);
  return insn_next(cpu, insn);
}

const struct insn *move_cbw(struct cpu *cpu, const struct insn *insn)
{
  return move_widen(cpu, insn, 2);
}

const struct insn *move_cwde(struct cpu *cpu, const struct insn *insn)
{
  return move_widen(cpu, insn, 4);
}

const struct insn *move_cdqe(struct cpu *cpu, const struct insn *insn)
{
  return move_widen(cpu, insn, 8);
}

const struct insn *move_cwd(struct cpu *cpu, const struct insn *insn)
{
  return move_sign(cpu, insn, 2);
}

const struct insn *move_cdq(struct cpu *cpu, const struct insn *insn)
{
  return move_sign(cpu, insn, 4);
}

const struct insn *move_cqo(struct cpu *cpu, const struct insn *insn)
{
  return move_sign(cpu, insn, 8);
}

/* ---- conditional moves ---- */

/* The source is read whatever the condition is, and a 32-bit move clears the upper half in either case. */
ALWAYS_INLINE const struct insn *move_if(struct cpu *cpu, const struct insn *insn, struct shape shape, unsigned code)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_READ, &place))
    return shape.slow(cpu, insn);
  uint64_t value = operand_second(cpu, insn, shape, &place);
  uint64_t old = reg_get(cpu, insn->op[0], shape.size);
  reg_set(cpu, insn->op[0], shape.size, flags_condition(cpu, code) ? value : old);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *move_condition(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                                unsigned code)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_WRITE, &place))
    return shape.slow(cpu, insn);
  operand_put(cpu, insn, shape, &place, flags_condition(cpu, code));
  return insn_next(cpu, insn);
}

#define CONDITION(code, upper, name)                                                                                   \
  FORMS_TO_REG(move_cmov##name, move_if, code);                                                                        \
  VARIANT(set_reg_##name, FORM_REG, 1, move_condition, code)                                                           \
  VARIANT(set_mem_##name, FORM_MEM, 1, move_condition, code)                                                           \
  insn_handler *move_set##name(const struct insn *insn)                                                                \
  {                                                                                                                    \
    return insn->form == FORM_REG ? set_reg_##name : set_mem_##name;                                                   \
  }
#include "cpu/condition.def"
#undef CONDITION

/* ---- the rest ---- */

/* LEA: the address itself, not the memory there: no segment, no check. */
ALWAYS_INLINE const struct insn *move_address(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  reg_set(cpu, insn->op[0], shape.size, insn_address(cpu, insn));
  return insn_next(cpu, insn);
}

SIZES(move_lea, move_address);

/* MOVBE: one operand is memory, which has the other byte order. */
ALWAYS_INLINE const struct insn *move_swapped(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  bool is_load = insn->form == FORM_REG_MEM;
  uint64_t value = is_load ? insn_load(cpu, insn, shape.size) : reg_get(cpu, insn->op[1], shape.size);
  uint64_t swapped = __builtin_bswap64(value) >> (64 - 8 * shape.size);

  if (is_load)
    reg_set(cpu, insn->op[0], shape.size, swapped);
  else
    insn_store(cpu, insn, shape.size, swapped);
  return insn_next(cpu, insn);
}

SIZES(move_movbe, move_swapped);

/* Sets AL to the byte with the index AL in a table at rBX. */
const struct insn *move_xlat(struct cpu *cpu, const struct insn *insn)
{
  uint64_t offset = (cpu->r[RBX] + reg_get(cpu, 8 * RAX, 1)) & insn->address_mask;

  reg_set(cpu, 8 * RAX, 1, access_load(cpu, insn->segment, offset, 1));
  return insn_next(cpu, insn);
}
