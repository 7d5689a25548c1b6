/* SPDX-License-Identifier: Apache-2.0
 *
 * Addition, subtraction, comparison and logic: SDM vol. 1, 7.3.2 and 7.3.5.
 */
#include "cpu/operand.h"
#include "cpu/variant.h"

enum alu_operation { ALU_ADD, ALU_ADC, ALU_SUB, ALU_SBB, ALU_AND, ALU_OR, ALU_XOR, ALU_CMP, ALU_TEST };

ALWAYS_INLINE uint64_t alu_result(enum alu_operation operation, uint64_t a, uint64_t b, uint64_t carry)
{
  switch (operation) {
  case ALU_ADD:
  case ALU_ADC:
    return a + b + carry;
  case ALU_SUB:
  case ALU_SBB:
  case ALU_CMP:
    return a - b - carry;
  case ALU_AND:
  case ALU_TEST:
    return a & b;
  case ALU_OR:
    return a | b;
  default:
    return a ^ b;
  }
}

ALWAYS_INLINE void alu_flags(struct cpu *cpu, enum alu_operation operation, uint64_t a, uint64_t b, uint64_t result,
                             unsigned size)
{
  if (operation == ALU_ADD || operation == ALU_ADC)
    flags_whole(cpu, a, b, result, true, size);
  else if (operation == ALU_SUB || operation == ALU_SBB || operation == ALU_CMP)
    flags_whole(cpu, a, b, result, false, size);
  else
    flags_logic(cpu, result, size);
}

ALWAYS_INLINE const struct insn *alu_run(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                         enum alu_operation operation)
{
  struct place place;
  bool is_written = operation != ALU_CMP && operation != ALU_TEST;
  unsigned access = is_written && form_is_memory(shape.form) ? ACCESS_WRITE : ACCESS_READ;

  if (!operand_find(cpu, insn, shape, access, &place))
    return shape.slow(cpu, insn);
  uint64_t b = operand_second(cpu, insn, shape, &place) & size_mask(shape.size);
  uint64_t a = is_written ? operand_modify(cpu, insn, shape, &place) : operand_first(cpu, insn, shape, &place);
  uint64_t carry = operation == ALU_ADC || operation == ALU_SBB ? flags_cf(cpu) : 0;
  uint64_t result = alu_result(operation, a, b, carry);
  if (is_written)
    operand_write(cpu, insn, shape, &place, result);
  alu_flags(cpu, operation, a, b, result, shape.size);
  return insn_next(cpu, insn);
}

FORMS_ANY(alu_add, alu_run, ALU_ADD);
FORMS_ANY(alu_adc, alu_run, ALU_ADC);
FORMS_ANY(alu_sub, alu_run, ALU_SUB);
FORMS_ANY(alu_sbb, alu_run, ALU_SBB);
FORMS_ANY(alu_and, alu_run, ALU_AND);
FORMS_ANY(alu_or, alu_run, ALU_OR);
FORMS_ANY(alu_xor, alu_run, ALU_XOR);
FORMS_ANY(alu_cmp, alu_run, ALU_CMP);
FORMS_ANY(alu_test, alu_run, ALU_TEST);

/* ---- one operand ---- */

/* INC and DEC do not change CF. INC overflows to the smallest number, DEC from it. */
ALWAYS_INLINE const struct insn *alu_step(struct cpu *cpu, const struct insn *insn, struct shape shape, bool is_up)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_WRITE, &place))
    return shape.slow(cpu, insn);
  uint64_t a = operand_modify(cpu, insn, shape, &place);
  uint64_t result = is_up ? a + 1 : a - 1;
  operand_write(cpu, insn, shape, &place, result);
  bool cf = flags_cf(cpu);
  bool of = ((is_up ? result : a) & size_mask(shape.size)) == UINT64_C(1) << (8 * shape.size - 1);
  cpu->lazy.result = flags_extend(result, shape.size);
  cpu->lazy.fix = (uint32_t)((a ^ 1 ^ result) & FLAG_AF);
  flags_set_cf_of(cpu, cf, of);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *alu_negate(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_WRITE, &place))
    return shape.slow(cpu, insn);
  uint64_t a = operand_modify(cpu, insn, shape, &place);
  operand_write(cpu, insn, shape, &place, 0 - a);
  flags_whole(cpu, 0, a, 0 - a, false, shape.size);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *alu_complement(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_WRITE, &place))
    return shape.slow(cpu, insn);
  uint64_t a = operand_modify(cpu, insn, shape, &place);
  operand_write(cpu, insn, shape, &place, ~a);
  return insn_next(cpu, insn);
}

FORMS_ONE(alu_inc, alu_step, true);
FORMS_ONE(alu_dec, alu_step, false);
FORMS_ONE(alu_neg, alu_negate);
FORMS_ONE(alu_not, alu_complement);

/* ---- two chains of carries: ADCX has CF, ADOX has OF, and both leave all other flags ---- */

ALWAYS_INLINE const struct insn *alu_chain(struct cpu *cpu, const struct insn *insn, struct shape shape, bool is_of)
{
  uint64_t b = operand_second(cpu, insn, shape, NULL);
  uint64_t a = reg_get(cpu, insn->op[0], shape.size);
  uint64_t result = a + b + (is_of ? flags_of(cpu) : flags_cf(cpu));
  bool carry = sign_bit((a & b) | ((a | b) & ~result), shape.size);

  reg_set(cpu, insn->op[0], shape.size, result);
  flags_set_cf_of(cpu, is_of ? flags_cf(cpu) : carry, is_of ? carry : flags_of(cpu));
  return insn_next(cpu, insn);
}

FORMS_TO_REG(alu_adcx, alu_chain, false);
FORMS_TO_REG(alu_adox, alu_chain, true);
