/* SPDX-License-Identifier: Apache-2.0
 *
 * RETF: to the caller's code segment, at the same or an outer privilege level. SDM vol. 2, RET; vol. 3, 5.8.6.
 */
#include "cpu/far.h"
#include "cpu/transfer.h"

/* The value `bytes` above the stack pointer. */
static uint64_t peek(struct cpu *cpu, uint64_t bytes, unsigned size)
{
  return access_load(cpu, SS, (cpu->r[RSP] + bytes) & cpu->stack_mask, size);
}

/* The stack pointer after `bytes` were popped. */
static uint64_t popped(uint64_t pointer, uint64_t mask, uint64_t bytes)
{
  uint64_t moved = (pointer + bytes) & mask;

  return mask == 0xFFFF ? (pointer & ~mask) | moved : moved;
}

static const struct insn *return_real(struct cpu *cpu, uint64_t offset, uint16_t selector, uint64_t bytes)
{
  if (offset > cpu->code_limit)
    fault_gp(cpu, 0);
  struct transfer transfer = transfer_begin(cpu);
  cpu->r[RSP] = popped(cpu->r[RSP], cpu->stack_mask, bytes);
  segment_load_real(cpu, CS, selector);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, offset, LB_BRANCH_FAR_RET);
}

static const struct insn *return_same(struct cpu *cpu, uint64_t offset, uint16_t selector, struct descriptor *code,
                                      uint64_t bytes)
{
  segment_mark_accessed(cpu, code);
  struct transfer transfer = transfer_begin(cpu);
  cpu->r[RSP] = popped(cpu->r[RSP], cpu->stack_mask, bytes);
  code_set(cpu, selector, code, cpu->cpl);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, offset, LB_BRANCH_FAR_RET);
}

/* The outer stack pointer is above the parameters. The parameters are released from that stack too. */
static const struct insn *return_outer(struct cpu *cpu, const struct insn *insn, uint64_t offset, uint16_t selector,
                                       struct descriptor *code)
{
  unsigned size = insn->size;
  uint64_t release = insn->form == FORM_IMM ? insn->imm & 0xFFFF : 0;
  uint64_t pointer = peek(cpu, 2 * size + release, size);
  uint16_t ss = (uint16_t)peek(cpu, 3 * size + release, size);
  struct frame_stack stack = frame_stack_outer(cpu, ss, pointer, selector & 3, code_is_64(cpu, code));

  code_check_offset(cpu, code, offset);
  frame_mark(cpu, &stack, code);
  stack.pointer = popped(stack.pointer, stack.mask, release);
  struct transfer transfer = transfer_begin(cpu);
  frame_use(cpu, &stack);
  code_set(cpu, selector, code, selector & 3);
  frame_drop_segments(cpu, selector & 3);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, offset, LB_BRANCH_FAR_RET);
}

const struct insn *far_return(struct cpu *cpu, const struct insn *insn)
{
  unsigned size = insn->size;
  uint64_t bytes = 2 * size + (insn->form == FORM_IMM ? insn->imm & 0xFFFF : 0);
  uint64_t offset = peek(cpu, 0, size);
  uint16_t selector = (uint16_t)peek(cpu, size, size);

  if (!segment_is_protected(cpu))
    return return_real(cpu, offset, selector, bytes);
  struct descriptor code = code_fetch_to_return(cpu, selector);
  if ((selector & 3) > cpu->cpl)
    return return_outer(cpu, insn, offset, selector, &code);
  code_check_offset(cpu, &code, offset);
  return return_same(cpu, offset, selector, &code, bytes);
}
