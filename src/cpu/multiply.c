/* SPDX-License-Identifier: Apache-2.0
 *
 * Multiplication and division: SDM vol. 1, 7.3.2. Flags that the manual leaves undefined: after a multiplication SF, ZF
 * and PF follow the low half of the product and AF is 0; a division changes none.
 */
#include "cpu/fault.h"
#include "cpu/operand.h"
#include "cpu/variant.h"

/* Twice the width of an operand; `high` and `low` are truncated to the operand's size. */
struct wide {
  uint64_t high, low;
};

__extension__ static inline struct wide multiply_64(uint64_t a, uint64_t b)
{
  unsigned __int128 product = (unsigned __int128)a * b;
  return (struct wide){(uint64_t)(product >> 64), (uint64_t)product};
}

/* Operands of smaller sizes are already extended, with zeros or with their sign. */
ALWAYS_INLINE struct wide multiply(uint64_t a, uint64_t b, unsigned size, bool is_signed)
{
  if (size < 8) {
    uint64_t product = a * b;

    return (struct wide){product >> (8 * size) & size_mask(size), product & size_mask(size)};
  }
  struct wide product = multiply_64(a, b);
  if (is_signed) /* a negative factor was taken as 2^64 too large: correct the high half */
    product.high -= (sign_bit(a, 8) ? b : 0) + (sign_bit(b, 8) ? a : 0);
  return product;
}

/* CF and OF: the high half is more than the sign or zero extension of the low half. */
ALWAYS_INLINE bool multiply_overflows(struct wide product, unsigned size, bool is_signed)
{
  uint64_t plain = is_signed && sign_bit(product.low, size) ? size_mask(size) : 0;

  return product.high != plain;
}

/* Sets the register pair of a product or dividend: AX for bytes, otherwise rDX:rAX. */
ALWAYS_INLINE void pair_set(struct cpu *cpu, unsigned size, uint64_t high, uint64_t low)
{
  reg_set(cpu, 8 * RAX, size, low);
  reg_set(cpu, size == 1 ? 8 * RAX + 1 : 8 * RDX, size, high);
}

ALWAYS_INLINE struct wide pair_get(const struct cpu *cpu, unsigned size)
{
  return (struct wide){reg_get(cpu, size == 1 ? 8 * RAX + 1 : 8 * RDX, size), reg_get(cpu, 8 * RAX, size)};
}

ALWAYS_INLINE const struct insn *multiply_pair(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                               bool is_signed)
{
  uint64_t b = operand_first(cpu, insn, shape, NULL);
  uint64_t a = reg_get(cpu, 8 * RAX, shape.size);
  struct wide product = is_signed ? multiply(flags_extend(a, shape.size), flags_extend(b, shape.size), shape.size, true)
                                  : multiply(a, b, shape.size, false);
  bool is_over = multiply_overflows(product, shape.size, is_signed);

  pair_set(cpu, shape.size, product.high, product.low);
  flags_result(cpu, product.low, shape.size, is_over, is_over, false);
  return insn_next(cpu, insn);
}

/* IMUL r, r/m and IMUL r, r/m, imm. */
ALWAYS_INLINE const struct insn *multiply_to_reg(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t b = operand_second(cpu, insn, shape, NULL);
  uint64_t a = insn->operands == 3 ? insn->imm : flags_extend(reg_get(cpu, insn->op[0], shape.size), shape.size);
  struct wide product = multiply(a, flags_extend(b, shape.size), shape.size, true);
  bool is_over = multiply_overflows(product, shape.size, true);

  reg_set(cpu, insn->op[0], shape.size, product.low);
  flags_result(cpu, product.low, shape.size, is_over, is_over, false);
  return insn_next(cpu, insn);
}

FORMS_ONE(multiply_mul, multiply_pair, false);
static insn_chooser multiply_imul_one, multiply_imul_two;
FORMS_ONE(multiply_imul_one, multiply_pair, true);
FORMS_TO_REG(multiply_imul_two, multiply_to_reg);

insn_handler *multiply_imul(const struct insn *insn)
{
  return insn->operands == 1 ? multiply_imul_one(insn) : multiply_imul_two(insn);
}

/* BMI2. The low half is written first: if both destinations are the same register, the high half stays. */
ALWAYS_INLINE const struct insn *multiply_flagless(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct wide product =
    multiply(reg_get(cpu, 8 * RDX, shape.size), operand_third(cpu, insn, shape.size), shape.size, false);

  reg_set(cpu, insn->op[1], shape.size, product.low);
  reg_set(cpu, insn->op[0], shape.size, product.high);
  return insn_next(cpu, insn);
}

SIZES(multiply_mulx, multiply_flagless);

/* ---- division ---- */

struct quotient {
  uint64_t quotient, remainder;
};

__extension__ static inline struct quotient divide_64(struct wide dividend, uint64_t divisor)
{
  unsigned __int128 whole = (unsigned __int128)dividend.high << 64 | dividend.low;
  return (struct quotient){(uint64_t)(whole / divisor), (uint64_t)(whole % divisor)};
}

/* #DE for a divisor of 0 or a quotient that does not fit: in both cases the high half is not below the divisor. */
ALWAYS_INLINE struct quotient divide(struct cpu *cpu, struct wide dividend, uint64_t divisor, unsigned size)
{
  if (dividend.high >= divisor)
    fault_raise(cpu, EXCEPTION_DE, 0);
  if (size == 8 && dividend.high)
    return divide_64(dividend, divisor);
  uint64_t whole = size == 8 ? dividend.low : dividend.high << (8 * size) | dividend.low;
  return (struct quotient){whole / divisor, whole % divisor};
}

ALWAYS_INLINE struct wide wide_negate(struct wide value, unsigned size)
{
  uint64_t low = (0 - value.low) & size_mask(size);

  return (struct wide){(~value.high + (low == 0)) & size_mask(size), low};
}

/* Divides the magnitudes. The remainder has the dividend's sign; a quotient of 80..0 fits only if it is negative. */
ALWAYS_INLINE struct quotient divide_signed(struct cpu *cpu, struct wide dividend, uint64_t divisor, unsigned size)
{
  bool is_negative = sign_bit(dividend.high, size);
  bool is_opposite = is_negative != sign_bit(divisor, size);
  uint64_t magnitude = sign_bit(divisor, size) ? (0 - divisor) & size_mask(size) : divisor;
  struct quotient result = divide(cpu, is_negative ? wide_negate(dividend, size) : dividend, magnitude, size);
  uint64_t most = (UINT64_C(1) << (8 * size - 1)) - !is_opposite;

  if (result.quotient > most)
    fault_raise(cpu, EXCEPTION_DE, 0);
  return (struct quotient){is_opposite ? 0 - result.quotient : result.quotient,
                           is_negative ? 0 - result.remainder : result.remainder};
}

ALWAYS_INLINE const struct insn *divide_pair(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                             bool is_signed)
{
  uint64_t divisor = operand_first(cpu, insn, shape, NULL);
  struct wide dividend = pair_get(cpu, shape.size);
  struct quotient result =
    is_signed ? divide_signed(cpu, dividend, divisor, shape.size) : divide(cpu, dividend, divisor, shape.size);

  pair_set(cpu, shape.size, result.remainder, result.quotient);
  return insn_next(cpu, insn);
}

FORMS_ONE(multiply_div, divide_pair, false);
FORMS_ONE(multiply_idiv, divide_pair, true);
