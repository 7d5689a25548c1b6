/* SPDX-License-Identifier: Apache-2.0
 *
 * Shifts and rotates: SDM vol. 1, 7.3.6. A count is masked to 5 bits (6 for 64-bit operands); 0 changes no flag. OF is
 * defined for single shifts only; for the others it is computed by the same formula, as hardware does. AF is cleared by
 * shifts.
 */
#include "cpu/operand.h"
#include "cpu/variant.h"

enum shift_operation { SHIFT_SHL, SHIFT_SHR, SHIFT_SAR, SHIFT_ROL, SHIFT_ROR, SHIFT_RCL, SHIFT_RCR };

/* A value and the bit that was shifted out of it last. */
struct shifted {
  uint64_t value;
  bool cf;
  bool is_changed; /* false: the flags stay */
};

ALWAYS_INLINE unsigned shift_count(uint64_t count, unsigned size)
{
  return (unsigned)count & (size == 8 ? 63 : 31);
}

/* `count` is not 0. Bits of `a` above its size are 0. */
ALWAYS_INLINE struct shifted shift_left(uint64_t a, unsigned count, unsigned size)
{
  uint64_t before = a << (count - 1);

  return (struct shifted){before << 1, sign_bit(before, size), true};
}

ALWAYS_INLINE struct shifted shift_right(uint64_t a, unsigned count)
{
  uint64_t before = a >> (count - 1);

  return (struct shifted){before >> 1, before & 1, true};
}

ALWAYS_INLINE struct shifted shift_arithmetic(uint64_t a, unsigned count, unsigned size)
{
  int64_t before = (int64_t)flags_extend(a, size) >> (count - 1);

  return (struct shifted){(uint64_t)(before >> 1), before & 1, true};
}

ALWAYS_INLINE uint64_t rotate_left(uint64_t a, unsigned count, unsigned size)
{
  unsigned bits = 8 * size;

  count %= bits;
  return count ? ((a << count) | (a >> (bits - count))) & size_mask(size) : a;
}

/* A rotation through CF: a ring of one bit more than the operand has. */
ALWAYS_INLINE struct shifted rotate_left_carry(uint64_t a, unsigned count, unsigned size, bool cf)
{
  unsigned bits = 8 * size;

  count %= bits + 1;
  if (!count)
    return (struct shifted){a, cf, false};
  uint64_t wrapped = count == 1 ? 0 : a >> (bits + 1 - count);
  return (struct shifted){a << count | (uint64_t)cf << (count - 1) | wrapped, a >> (bits - count) & 1, true};
}

ALWAYS_INLINE struct shifted rotate_right_carry(uint64_t a, unsigned count, unsigned size, bool cf)
{
  unsigned bits = 8 * size;

  count %= bits + 1;
  if (!count)
    return (struct shifted){a, cf, false};
  uint64_t wrapped = count == 1 ? 0 : a << (bits + 1 - count);
  return (struct shifted){a >> count | (uint64_t)cf << (bits - count) | wrapped, a >> (count - 1) & 1, true};
}

ALWAYS_INLINE struct shifted shift_apply(enum shift_operation operation, uint64_t a, unsigned count, unsigned size,
                                         bool cf)
{
  uint64_t rotated;

  switch (operation) {
  case SHIFT_SHL:
    return shift_left(a, count, size);
  case SHIFT_SHR:
    return shift_right(a, count);
  case SHIFT_SAR:
    return shift_arithmetic(a, count, size);
  case SHIFT_ROL:
    rotated = rotate_left(a, count, size);
    return (struct shifted){rotated, rotated & 1, true};
  case SHIFT_ROR:
    rotated = rotate_left(a, 64 - count, size);
    return (struct shifted){rotated, sign_bit(rotated, size), true};
  case SHIFT_RCL:
    return rotate_left_carry(a, count, size, cf);
  default:
    return rotate_right_carry(a, count, size, cf);
  }
}

/* Shifts to the left: OF is set if the sign and CF differ. To the right: if the two upper bits differ; for a single SHR
 * this is the old sign, and for SAR it never happens. */
ALWAYS_INLINE bool shift_overflows(bool is_left, uint64_t result, bool cf, unsigned size)
{
  return sign_bit(is_left ? result : result ^ result << 1, size) ^ (is_left && cf);
}

ALWAYS_INLINE const struct insn *shift_run(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                           enum shift_operation operation)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_WRITE, &place))
    return shape.slow(cpu, insn);
  unsigned count = shift_count(operand_second(cpu, insn, shape_sized(shape, 1), NULL), shape.size);
  uint64_t a = operand_modify(cpu, insn, shape, &place);
  if (!count) { /* a 32-bit register is still written: its upper half is cleared */
    operand_write(cpu, insn, shape, &place, a);
    return insn_next(cpu, insn);
  }
  struct shifted shifted = shift_apply(operation, a, count, shape.size, flags_cf(cpu));
  operand_write(cpu, insn, shape, &place, shifted.value);
  bool is_left = operation == SHIFT_SHL || operation == SHIFT_ROL || operation == SHIFT_RCL;
  bool of = shift_overflows(is_left, shifted.value, shifted.cf, shape.size);
  if (operation <= SHIFT_SAR)
    flags_result(cpu, shifted.value, shape.size, shifted.cf, of, false);
  else if (shifted.is_changed)
    flags_set_cf_of(cpu, shifted.cf, of);
  return insn_next(cpu, insn);
}

FORMS_MODIFY(shift_shl, shift_run, SHIFT_SHL);
FORMS_MODIFY(shift_shr, shift_run, SHIFT_SHR);
FORMS_MODIFY(shift_sar, shift_run, SHIFT_SAR);
FORMS_MODIFY(shift_rol, shift_run, SHIFT_ROL);
FORMS_MODIFY(shift_ror, shift_run, SHIFT_ROR);
FORMS_MODIFY(shift_rcl, shift_run, SHIFT_RCL);
FORMS_MODIFY(shift_rcr, shift_run, SHIFT_RCR);

/* ---- SHLD, SHRD ---- */

/* For 16-bit operands with counts beyond 16 the manual defines nothing; hardware continues with the destination's bits
 * after the source's. The three values are therefore put in a row. With larger operands the count never exceeds the
 * source. */
ALWAYS_INLINE struct shifted shift_double(uint64_t a, uint64_t b, unsigned count, unsigned size, bool is_left)
{
  unsigned bits = 8 * size;

  if (size == 2) {
    uint64_t row = a << 32 | b << 16 | a;
    uint64_t before = is_left ? row << (count - 1) >> 32 : row >> (count - 1);

    return is_left ? (struct shifted){(row << count) >> 32, sign_bit(before, 2), true}
                   : (struct shifted){row >> count, before & 1, true};
  }
  if (is_left)
    return (struct shifted){a << count | b >> (bits - count), a >> (bits - count) & 1, true};
  return (struct shifted){a >> count | b << (bits - count), a >> (count - 1) & 1, true};
}

ALWAYS_INLINE const struct insn *shift_double_run(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                                  bool is_left)
{
  struct place place = {NULL, 0};
  bool is_immediate = insn->op_class[2] == CLASS_IMMEDIATE;
  unsigned count = shift_count(is_immediate ? insn->imm : reg_get(cpu, insn->op[2], 1), shape.size);
  uint64_t b = reg_get(cpu, insn->op[1], shape.size);
  uint64_t a = operand_modify(cpu, insn, shape, &place);

  if (!count) {
    operand_write(cpu, insn, shape, &place, a);
    return insn_next(cpu, insn);
  }
  struct shifted shifted = shift_double(a, b, count, shape.size, is_left);
  operand_write(cpu, insn, shape, &place, shifted.value);
  flags_result(cpu, shifted.value, shape.size, shifted.cf,
               shift_overflows(is_left, shifted.value, shifted.cf, shape.size), false);
  return insn_next(cpu, insn);
}

FORMS_BY_REG(shift_shld, shift_double_run, true);
FORMS_BY_REG(shift_shrd, shift_double_run, false);

/* ---- BMI2: three operands, no flags ---- */

ALWAYS_INLINE const struct insn *shift_flagless(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                                enum shift_operation operation)
{
  bool is_immediate = operation == SHIFT_ROR;
  unsigned count = shift_count(is_immediate ? insn->imm : reg_get(cpu, insn->op[2], shape.size), shape.size);
  uint64_t a = operand_second(cpu, insn, shape, NULL);

  if (operation == SHIFT_ROR)
    a = rotate_left(a, 64 - count, shape.size);
  else if (operation == SHIFT_SAR)
    a = (uint64_t)((int64_t)flags_extend(a, shape.size) >> count);
  else
    a = operation == SHIFT_SHL ? a << count : a >> count;
  reg_set(cpu, insn->op[0], shape.size, a);
  return insn_next(cpu, insn);
}

FORMS_TO_REG(shift_rorx, shift_flagless, SHIFT_ROR);
FORMS_TO_REG(shift_sarx, shift_flagless, SHIFT_SAR);
FORMS_TO_REG(shift_shlx, shift_flagless, SHIFT_SHL);
FORMS_TO_REG(shift_shrx, shift_flagless, SHIFT_SHR);
