/* SPDX-License-Identifier: Apache-2.0
 *
 * The exits of straight code. `cmp; je L; cmp; jg L` has two exits to one address, and the default of a switch is
 * reached by a conditional and by an indirect jump: such code is stepped by single instructions.
 */
#include "source/step_block.h"

#include "isa/isa.h"

#define INSTRUCTIONS_MAX 4096u

/* ---- reading ---- */

/* Whether an indirect branch may lead to the target of an earlier conditional one. For a return this would be
 * unusual. */
static bool is_wild(int kind)
{
  return kind == LB_BRANCH_NEAR_IND_JMP || kind == LB_BRANCH_NEAR_IND_CALL;
}

static bool exit_is_double(const struct step_block *block, uint64_t to)
{
  for (size_t i = 0; i + 1 < block->count; i++)
    if (to && block->exits[i].to == to)
      return true;
  return false;
}

/* Adds an exit. Returns false if nothing can follow it. */
static bool exit_add(struct step_block *block, const struct task_instruction *instruction)
{
  struct step_exit *exit = &block->exits[block->count++];
  int kind = instruction->kind;

  *exit = (struct step_exit){instruction->address, instruction->target, kind, instruction->length};
  if (kind == LB_BRANCH_SYSCALL)
    exit->to = instruction->address + instruction->length;
  block->is_ambiguous |= exit_is_double(block, exit->to) || (is_wild(kind) && block->count > 1) ||
                         block->count == STEP_EXITS_MAX ||
                         (lb_branch_kind_class((unsigned)kind) == LB_CLASS_FAR && kind != LB_BRANCH_SYSCALL);
  return kind == LB_BRANCH_JCC && block->count < STEP_EXITS_MAX;
}

void step_block_read(struct tasks *tasks, const struct task_thread *thread, uint64_t address,
                     struct step_block *ret_block)
{
  *ret_block = (struct step_block){0};
  for (unsigned i = 0; i < INSTRUCTIONS_MAX; i++) {
    struct task_instruction instruction = tasks_instruction(tasks, thread, address);

    if (!instruction.length)
      break;
    if (instruction.kind >= 0 && !exit_add(ret_block, &instruction))
      return;
    address += instruction.length;
  }
  ret_block->is_ambiguous = true;
}

const struct step_exit *step_block_find(const struct step_block *block, uint64_t to)
{
  const struct step_exit *last = block->count ? &block->exits[block->count - 1] : NULL;

  for (size_t i = 0; i < block->count; i++)
    if (block->exits[i].to == to)
      return &block->exits[i];
  return last && (!last->to || last->kind == LB_BRANCH_SYSCALL) ? last : NULL;
}

/* ---- conditions ---- */

enum { CF = 1u << 0, PF = 1u << 2, ZF = 1u << 6, SF = 1u << 7, OF = 1u << 11 };

/* The condition of Jcc: Intel SDM vol. 1, appendix B. */
static bool condition_holds(unsigned condition, uint64_t flags)
{
  bool is_less = !(flags & SF) != !(flags & OF), holds;

  switch (condition >> 1) {
  case 0:
    holds = flags & OF;
    break;
  case 1:
    holds = flags & CF;
    break;
  case 2:
    holds = flags & ZF;
    break;
  case 3:
    holds = flags & (CF | ZF);
    break;
  case 4:
    holds = flags & SF;
    break;
  case 5:
    holds = flags & PF;
    break;
  case 6:
    holds = is_less;
    break;
  default:
    holds = is_less || flags & ZF;
  }
  return holds != (condition & 1);
}

bool step_is_taken(const uint8_t *bytes, size_t size, uint64_t flags, uint64_t rcx)
{
  size_t at = 0;
  bool is_short = false; /* an address-size prefix: ECX counts */

  for (; at < size && (bytes[at] == 0x67 || bytes[at] == 0x66 || bytes[at] == 0x2E || bytes[at] == 0x3E ||
                       bytes[at] == 0xF2 || (bytes[at] & 0xF0) == 0x40);
       at++)
    is_short |= bytes[at] == 0x67;
  if (at >= size)
    return false;
  if (is_short)
    rcx = (uint32_t)rcx;
  if ((bytes[at] & 0xF0) == 0x70)
    return condition_holds(bytes[at] & 15, flags);
  if (bytes[at] == 0x0F && at + 1 < size)
    return condition_holds(bytes[at + 1] & 15, flags);
  if (bytes[at] == 0xE3)
    return !rcx;
  rcx -= 1;
  if (is_short)
    rcx = (uint32_t)rcx;
  if (bytes[at] == 0xE2)
    return rcx != 0;
  return rcx != 0 && (bytes[at] == 0xE1) == !!(flags & ZF);
}
