/* SPDX-License-Identifier: Apache-2.0
 *
 * Near jumps, calls and returns; conditional jumps and loops. SDM vol. 1, 6.4 and 7.3.8. All pass transfer.h, after the
 * last check. Far ones are far.c's.
 */
#include "cpu/far.h"
#include "cpu/stack.h"
#include "cpu/transfer.h"
#include "cpu/variant.h"

enum { BRANCH_FAR = 0xFF }; /* mark of decode.c in size2 */

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

/* The count is that of the address size. It changes after the target was found good. */
ALWAYS_INLINE const struct insn *branch_count(struct cpu *cpu, const struct insn *insn, bool may_jump)
{
  uint64_t count = (cpu->r[RCX] - 1) & insn->address_mask;
  bool is_taken = count && may_jump;
  if (is_taken)
    transfer_check(cpu, insn->imm);
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

ALWAYS_INLINE const struct insn *branch_jump(struct cpu *cpu, const struct insn *insn, unsigned form, unsigned size,
                                             insn_handler *long_way)
{
  struct place place;
  if (!operand_find(cpu, insn, form, size, ACCESS_READ, long_way, &place))
    return long_way(cpu, insn);
  uint64_t target = form == FORM_IMM ? insn->imm : operand_first(cpu, insn, form, size, &place);
  transfer_check(cpu, target);
  return form == FORM_IMM ? transfer_jump(cpu, insn) : transfer_indirect(cpu, insn, target, LB_BRANCH_NEAR_IND_JMP);
}

ALWAYS_INLINE const struct insn *branch_call(struct cpu *cpu, const struct insn *insn, unsigned form, unsigned size,
                                             insn_handler *long_way)
{
  struct place source, place;
  if (!operand_find(cpu, insn, form, size, ACCESS_READ, long_way, &source))
    return long_way(cpu, insn);
  if (long_way && !stack_find_push(cpu, size, &place))
    return long_way(cpu, insn);
  uint64_t target = form == FORM_IMM ? insn->imm : operand_first(cpu, insn, form, size, &source);
  transfer_check(cpu, target);
  if (long_way)
    stack_push_at(cpu, &place, size, insn_next_rip(insn));
  else
    stack_push(cpu, size, insn_next_rip(insn));
  return form == FORM_IMM ? transfer_call(cpu, insn) : transfer_indirect(cpu, insn, target, LB_BRANCH_NEAR_IND_CALL);
}

/* The immediate, if there is one, is what the caller pushed. */
ALWAYS_INLINE const struct insn *branch_return(struct cpu *cpu, const struct insn *insn, unsigned size,
                                               insn_handler *long_way)
{
  struct place place;
  if (long_way && !stack_find_top(cpu, size, &place))
    return long_way(cpu, insn);
  uint64_t target = long_way ? access_fetch(place.host, size) : stack_peek(cpu, 0, size);
  transfer_check(cpu, target);
  stack_set_pointer(cpu, cpu->r[RSP] + size + (insn->imm & 0xFFFF));
  return transfer_indirect(cpu, insn, target, LB_BRANCH_NEAR_RET);
}

static insn_chooser branch_jmp_near, branch_call_near, branch_ret_near;
FORMS_ONE_OR_IMM(branch_jmp_near, branch_jump(cpu, insn, form, size, long_way));
FORMS_ONE_OR_IMM(branch_call_near, branch_call(cpu, insn, form, size, long_way));
SIZES(branch_ret_near, branch_return(cpu, insn, size, long_way));

insn_handler *branch_jmp(const struct insn *insn)
{
  return insn->size2 == BRANCH_FAR ? far_jump : branch_jmp_near(insn);
}

insn_handler *branch_call_choose(const struct insn *insn)
{
  return insn->size2 == BRANCH_FAR ? far_call : branch_call_near(insn);
}

insn_handler *branch_ret(const struct insn *insn)
{
  return insn->size2 == BRANCH_FAR ? far_return : branch_ret_near(insn);
}
