/* SPDX-License-Identifier: Apache-2.0
 *
 * Near jumps, calls and returns; conditional jumps and loops. SDM vol. 1, 6.4 and 7.3.8. All of them end in transfer.h,
 * after the last check. far.c has the far ones.
 */
#include "cpu/far.h"
#include "cpu/stack.h"
#include "cpu/transfer.h"
#include "cpu/variant.h"

/* ---- conditional ---- */

#define CONDITION(code, upper, name)                                                                                   \
  const struct insn *branch_j##name(struct cpu *cpu, const struct insn *insn)                                          \
  {                                                                                                                    \
    return transfer_conditional(cpu, insn, flags_condition(cpu, code));                                                \
  }
#include "cpu/condition.def"
#undef CONDITION

const struct insn *branch_jcxz(struct cpu *cpu, const struct insn *insn)
{
  return transfer_conditional(cpu, insn, !(cpu->r[RCX] & 0xFFFF));
}

const struct insn *branch_jecxz(struct cpu *cpu, const struct insn *insn)
{
  return transfer_conditional(cpu, insn, !(cpu->r[RCX] & 0xFFFFFFFF));
}

const struct insn *branch_jrcxz(struct cpu *cpu, const struct insn *insn)
{
  return transfer_conditional(cpu, insn, !cpu->r[RCX]);
}

/* The count has the address size. It is changed only after the target was found valid. */
ALWAYS_INLINE const struct insn *branch_count(struct cpu *cpu, const struct insn *insn, bool may_jump)
{
  uint64_t count = (cpu->r[RCX] - 1) & insn->address_mask;
  bool is_taken = count && may_jump;

  if (is_taken)
    transfer_check(cpu, insn->target);
  reg_set_masked(cpu, RCX, insn->address_mask, count);
  return transfer_conditional(cpu, insn, is_taken);
}

const struct insn *branch_loop(struct cpu *cpu, const struct insn *insn)
{
  return branch_count(cpu, insn, true);
}

const struct insn *branch_loope(struct cpu *cpu, const struct insn *insn)
{
  return branch_count(cpu, insn, flags_zf(cpu));
}

const struct insn *branch_loopne(struct cpu *cpu, const struct insn *insn)
{
  return branch_count(cpu, insn, !flags_zf(cpu));
}

/* ---- JMP, CALL, RET ---- */

/* Finds the target block of a jump or call through a register or memory. On the fast path the block must be known,
 * which was checked before. */
ALWAYS_INLINE bool branch_find(struct cpu *cpu, uint64_t target, struct shape shape, const struct block **ret_block)
{
  if (shape_is_slow(shape)) {
    transfer_check(cpu, target);
    return true;
  }
  *ret_block = transfer_known(cpu, target, shape.size == 8);
  return *ret_block;
}

ALWAYS_INLINE const struct insn *branch_go(struct cpu *cpu, const struct insn *insn, uint64_t target,
                                           const struct block *block, struct shape shape, enum lb_branch_kind kind)
{
  return shape_is_slow(shape) ? transfer_indirect(cpu, insn, target, kind) : transfer_to_block(cpu, insn, block, kind);
}

ALWAYS_INLINE const struct insn *branch_jump(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;
  const struct block *block = NULL;

  if (shape.form == FORM_IMM) {
    transfer_check(cpu, insn->target);
    return transfer_jump(cpu, insn);
  }
  if (!operand_find(cpu, insn, shape, ACCESS_READ, &place))
    return shape.slow(cpu, insn);
  uint64_t target = operand_first(cpu, insn, shape, &place);
  if (!branch_find(cpu, target, shape, &block))
    return shape.slow(cpu, insn);
  return branch_go(cpu, insn, target, block, shape, LB_BRANCH_NEAR_IND_JMP);
}

ALWAYS_INLINE const struct insn *branch_call_relative(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;

  if (!stack_find_push(cpu, shape, &place))
    return shape.slow(cpu, insn);
  transfer_check(cpu, insn->target);
  stack_push_at(cpu, shape, &place, insn_next_rip(insn));
  return transfer_call(cpu, insn);
}

ALWAYS_INLINE const struct insn *branch_call(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place source, place;
  const struct block *block = NULL;

  if (shape.form == FORM_IMM)
    return branch_call_relative(cpu, insn, shape);
  if (!operand_find(cpu, insn, shape, ACCESS_READ, &source) || !stack_find_push(cpu, shape, &place))
    return shape.slow(cpu, insn);
  uint64_t target = operand_first(cpu, insn, shape, &source);
  if (!branch_find(cpu, target, shape, &block))
    return shape.slow(cpu, insn);
  stack_push_at(cpu, shape, &place, insn_next_rip(insn));
  return branch_go(cpu, insn, target, block, shape, LB_BRANCH_NEAR_IND_CALL);
}

/* The immediate, if there is one, is the size of the arguments that the caller pushed. */
ALWAYS_INLINE const struct insn *branch_return(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;
  const struct block *block = NULL;

  if (!stack_find_top(cpu, shape, &place))
    return shape.slow(cpu, insn);
  uint64_t target = stack_top_at(cpu, shape, &place);
  if (!branch_find(cpu, target, shape, &block))
    return shape.slow(cpu, insn);
  stack_move(cpu, shape, shape.size + (insn->imm & 0xFFFF));
  return branch_go(cpu, insn, target, block, shape, LB_BRANCH_NEAR_RET);
}

static insn_chooser branch_jmp_near, branch_call_near, branch_ret_near;
FORMS_STACK(branch_jmp_near, branch_jump);
FORMS_STACK(branch_call_near, branch_call);
SIZES_STACK(branch_ret_near, branch_return);

insn_handler *branch_jmp(const struct insn *insn)
{
  return insn->variant == VARIANT_FAR ? far_jump : branch_jmp_near(insn);
}

insn_handler *branch_call_choose(const struct insn *insn)
{
  return insn->variant == VARIANT_FAR ? far_call : branch_call_near(insn);
}

insn_handler *branch_ret(const struct insn *insn)
{
  return insn->variant == VARIANT_FAR ? far_return : branch_ret_near(insn);
}
