/* SPDX-License-Identifier: Apache-2.0
 *
 * Instructions that read and write an operand in one step: XCHG, XADD, CMPXCHG and its wide forms. SDM vol. 1, 7.3.1.2.
 * No lock is needed, because processors run in turns.
 */
#include "cpu/fault.h"
#include "cpu/operand.h"
#include "cpu/variant.h"

ALWAYS_INLINE const struct insn *exchange_run(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place = {NULL, 0};
  uint64_t first = operand_modify(cpu, insn, shape, &place);
  uint64_t second = reg_get(cpu, insn->op[1], shape.size);

  operand_write(cpu, insn, shape, &place, second);
  reg_set(cpu, insn->op[1], shape.size, first);
  return insn_next(cpu, insn);
}

/* The register is written first: if both operands are the same register, the sum stays. */
ALWAYS_INLINE const struct insn *exchange_add(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place = {NULL, 0};
  uint64_t first = operand_modify(cpu, insn, shape, &place);
  uint64_t second = reg_get(cpu, insn->op[1], shape.size);

  reg_set(cpu, insn->op[1], shape.size, first);
  operand_write(cpu, insn, shape, &place, first + second);
  flags_add(cpu, first, second, first + second, shape.size);
  return insn_next(cpu, insn);
}

/* The destination is written in either case, if only with its old value. The accumulator changes if they differ. */
ALWAYS_INLINE const struct insn *exchange_compare(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place = {NULL, 0};
  uint64_t value = operand_modify(cpu, insn, shape, &place);
  uint64_t accumulator = reg_get(cpu, 8 * RAX, shape.size);
  bool is_equal = value == accumulator;

  operand_write(cpu, insn, shape, &place, is_equal ? reg_get(cpu, insn->op[1], shape.size) : value);
  if (!is_equal)
    reg_set(cpu, 8 * RAX, shape.size, value);
  flags_sub(cpu, accumulator, value, accumulator - value, shape.size);
  return insn_next(cpu, insn);
}

FORMS_BY_REG(exchange_xchg, exchange_run);
FORMS_BY_REG(exchange_xadd, exchange_add);
FORMS_BY_REG(exchange_cmpxchg, exchange_compare);

/* ---- rDX:rAX against memory, rCX:rBX into it; ZF alone changes ---- */

ALWAYS_INLINE const struct insn *exchange_compare_pair(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  struct place low, high;
  uint64_t address = insn_address(cpu, insn);
  uint64_t linear = access_linear(cpu, insn->segment, address, 2 * size, ACCESS_WRITE);

  if (size == 8 && linear % 16)
    fault_gp(cpu, 0);
  uint64_t low_value = place_load(cpu, &low, insn->segment, linear, size);
  uint64_t high_value = place_load(cpu, &high, insn->segment, (linear + size) & cpu->linear_mask, size);
  bool is_equal = low_value == reg_get(cpu, 8 * RAX, size) && high_value == reg_get(cpu, 8 * RDX, size);
  place_store(cpu, &low, size, is_equal ? reg_get(cpu, 8 * RBX, size) : low_value);
  place_store(cpu, &high, size, is_equal ? reg_get(cpu, 8 * RCX, size) : high_value);
  if (!is_equal) {
    reg_set(cpu, 8 * RAX, size, low_value);
    reg_set(cpu, 8 * RDX, size, high_value);
  }
  flags_set_zf(cpu, is_equal);
  return insn_next(cpu, insn);
}

const struct insn *exchange_cmpxchg8b(struct cpu *cpu, const struct insn *insn)
{
  return exchange_compare_pair(cpu, insn, 4);
}

const struct insn *exchange_cmpxchg16b(struct cpu *cpu, const struct insn *insn)
{
  return exchange_compare_pair(cpu, insn, 8);
}
