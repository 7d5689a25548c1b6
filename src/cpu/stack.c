/* SPDX-License-Identifier: Apache-2.0
 *
 * PUSH, POP, ENTER, LEAVE and the flags on the stack: SDM vol. 1, 6.2 and 6.5. The stack pointer moves last, so that
 * everything can start again after a fault.
 */
#include "cpu/stack.h"

#include "cpu/fault.h"
#include "cpu/segment.h"
#include "cpu/variant.h"

/* ---- PUSH ---- */

ALWAYS_INLINE const struct insn *stack_push_run(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place source, place;

  if (!operand_find(cpu, insn, shape, ACCESS_READ, &source))
    return shape.slow(cpu, insn);
  if (!stack_find_push(cpu, shape, &place))
    return shape.slow(cpu, insn);
  uint64_t value = shape.form == FORM_IMM ? insn->imm : operand_first(cpu, insn, shape, &source);
  stack_push_at(cpu, shape, &place, value);
  return insn_next(cpu, insn);
}

static insn_chooser stack_push_general;
FORMS_STACK(stack_push_general, stack_push_run);

/* With a 32-bit operand size only 16 bits are written, as processors since the Core do (SDM, PUSH); with 64 bits the
 * selector is zero-extended. */
static const struct insn *stack_push_segment(struct cpu *cpu, const struct insn *insn)
{
  uint64_t pointer = (cpu->r[RSP] - insn->size) & cpu->stack_mask;

  access_store(cpu, SS, pointer, insn->size == 8 ? 8 : 2, cpu->segment[insn->op[0] % LDTR].selector);
  stack_set_pointer(cpu, pointer);
  return insn_next(cpu, insn);
}

insn_handler *stack_push_choose(const struct insn *insn)
{
  return insn->variant == VARIANT_SEGMENT ? stack_push_segment : stack_push_general(insn);
}

/* ---- POP ---- */

/* The register is written last: POP rSP keeps the popped value. */
ALWAYS_INLINE const struct insn *stack_pop_reg(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place;

  if (!stack_find_top(cpu, shape, &place))
    return shape.slow(cpu, insn);
  uint64_t value = stack_top_at(cpu, shape, &place);
  stack_move(cpu, shape, shape.size);
  reg_set(cpu, insn->op[0], shape.size, value);
  return insn_next(cpu, insn);
}

/* An address that contains rSP is computed after the pop (SDM, POP). */
ALWAYS_INLINE const struct insn *stack_pop_mem(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t value = stack_peek(cpu, 0, shape.size);
  uint64_t old = cpu->r[RSP];

  stack_set_pointer(cpu, old + shape.size);
  uint64_t address = insn_address(cpu, insn);
  uint64_t popped = cpu->r[RSP];
  cpu->r[RSP] = old;
  access_store(cpu, insn->segment, address, shape.size, value);
  cpu->r[RSP] = popped;
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *stack_pop_run(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  return shape.form == FORM_REG ? stack_pop_reg(cpu, insn, shape) : stack_pop_mem(cpu, insn, shape);
}

static insn_chooser stack_pop_general;
FORMS_STACK(stack_pop_general, stack_pop_run);

/* Loading SS may change the width of the stack pointer; the pop still uses the old one. */
static const struct insn *stack_pop_segment(struct cpu *cpu, const struct insn *insn)
{
  uint64_t mask = cpu->stack_mask, pointer = cpu->r[RSP] + insn->size;

  if (insn->op[0] == CS || insn->op[0] > GS)
    fault_ud(cpu);
  uint32_t mode = cpu->mode;
  segment_load(cpu, insn->op[0], (uint16_t)stack_peek(cpu, 0, 2));
  reg_set_masked(cpu, RSP, mask, pointer);
  if (insn->op[0] != SS)
    return insn_next_in(cpu, insn, mode);
  cpu->shadow = SHADOW_MOV_SS;
  return insn_leave(cpu, insn);
}

insn_handler *stack_pop_choose(const struct insn *insn)
{
  return insn->variant == VARIANT_SEGMENT ? stack_pop_segment : stack_pop_general(insn);
}

/* ---- all registers ---- */

static const struct insn *stack_push_all(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  uint64_t pointer = cpu->r[RSP];

  for (unsigned number = RAX; number <= RDI; number++) { /* rSP with its old value */
    pointer = (pointer - size) & cpu->stack_mask;
    access_store(cpu, SS, pointer, size, reg_get(cpu, 8 * number, size));
  }
  stack_set_pointer(cpu, pointer);
  return insn_next(cpu, insn);
}

static const struct insn *stack_pop_all(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  uint64_t values[8];

  for (unsigned i = 0; i < 8; i++)
    values[RDI - i] = stack_peek(cpu, (uint64_t)i * size, size);
  stack_set_pointer(cpu, cpu->r[RSP] + (uint64_t)8 * size);
  for (unsigned number = RAX; number <= RDI; number++)
    if (number != RSP)
      reg_set(cpu, 8 * number, size, values[number]);
  return insn_next(cpu, insn);
}

const struct insn *stack_pusha(struct cpu *cpu, const struct insn *insn)
{
  return stack_push_all(cpu, insn, 2);
}

const struct insn *stack_pushad(struct cpu *cpu, const struct insn *insn)
{
  return stack_push_all(cpu, insn, 4);
}

const struct insn *stack_popa(struct cpu *cpu, const struct insn *insn)
{
  return stack_pop_all(cpu, insn, 2);
}

const struct insn *stack_popad(struct cpu *cpu, const struct insn *insn)
{
  return stack_pop_all(cpu, insn, 4);
}

/* ---- frames ---- */

/* Pushes rBP, then the frame pointers of the outer levels and its own; then reserves room. The final stack pointer must
 * be writable (SDM, ENTER). */
ALWAYS_INLINE const struct insn *stack_enter_run(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  unsigned level = insn->second_imm % 32;
  uint64_t mask = cpu->stack_mask, outer = cpu->r[RBP];
  uint64_t frame = (cpu->r[RSP] - shape.size) & mask, pointer = frame;

  access_store(cpu, SS, pointer, shape.size, cpu->r[RBP]);
  for (unsigned i = 1; i <= level; i++) {
    outer -= shape.size;
    uint64_t value = i < level ? access_load(cpu, SS, outer & mask, shape.size) : frame;
    pointer = (pointer - shape.size) & mask;
    access_store(cpu, SS, pointer, shape.size, value);
  }
  pointer = (pointer - (insn->imm & 0xFFFF)) & mask;
  access_check_write(cpu, SS, pointer, shape.size);
  stack_set_pointer(cpu, pointer);
  reg_set(cpu, 8 * RBP, shape.size, frame);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *stack_leave_run(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  struct place place = {NULL, 0};
  uint64_t pointer = cpu->r[RBP] & cpu->stack_mask;

  if (!shape_is_slow(shape) && !place_find(cpu, &place, SS, pointer, shape.size, ACCESS_READ))
    return shape.slow(cpu, insn);
  uint64_t value = place.host ? access_fetch(place.host, shape.size) : access_load(cpu, SS, pointer, shape.size);
  stack_set_pointer(cpu, pointer + shape.size);
  reg_set(cpu, 8 * RBP, shape.size, value);
  return insn_next(cpu, insn);
}

SIZES(stack_enter, stack_enter_run);
SIZES(stack_leave, stack_leave_run);

/* ---- flags ---- */

static bool stack_is_v86(const struct cpu *cpu)
{
  return (cpu->cr0 & CR0_PE) && (cpu->eflags & FLAG_VM);
}

static unsigned stack_iopl(const struct cpu *cpu)
{
  return cpu->eflags >> 12 & 3;
}

/* In virtual-8086 mode with IOPL below 3 only the 16-bit forms exist, and only with CR4.VME: they use VIF in place of
 * IF (SDM vol. 3, 20.3). Returns true in that case. */
static bool stack_flags_are_virtual(struct cpu *cpu, unsigned size)
{
  if (!stack_is_v86(cpu) || stack_iopl(cpu) == 3)
    return false;
  if (size != 2 || !(cpu->cr4 & CR4_VME))
    fault_gp(cpu, 0);
  return true;
}

/* RF and VM are pushed as 0. */
static const struct insn *stack_push_flags(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  uint32_t flags = flags_get(cpu) & ~(uint32_t)(FLAG_RF | FLAG_VM);

  if (stack_flags_are_virtual(cpu, size)) {
    flags = (flags | FLAG_IOPL) & ~(uint32_t)FLAG_IF;
    flags |= flags & FLAG_VIF ? FLAG_IF : 0;
  }
  stack_push(cpu, size, flags);
  return insn_next(cpu, insn);
}

/* The bits that POPF may change here. RF is always cleared; VM, VIF and VIP stay. */
static uint32_t stack_popf_mask(const struct cpu *cpu, unsigned size)
{
  uint32_t mask = FLAGS_ARITHMETIC | FLAG_TF | FLAG_DF | FLAG_NT;

  if (size > 2)
    mask |= FLAG_AC | FLAG_ID;
  if (cpu->cpl <= stack_iopl(cpu))
    mask |= FLAG_IF;
  if (cpu->cpl == 0)
    mask |= FLAG_IOPL;
  return mask;
}

/* The popped IF goes to VIF. Raises #GP(0) for TF, or if a pending interrupt could now be delivered. */
static uint32_t stack_popf_virtual(struct cpu *cpu, uint32_t popped)
{
  bool is_due = (popped & FLAG_IF) && (cpu->eflags & FLAG_VIP);

  if ((popped & FLAG_TF) || is_due)
    fault_gp(cpu, 0);
  uint32_t mask = FLAGS_ARITHMETIC | FLAG_DF | FLAG_NT;
  uint32_t kept = flags_get(cpu) & ~(mask | FLAG_VIF | FLAG_TF);
  return kept | (popped & mask) | (popped & FLAG_IF ? FLAG_VIF : 0);
}

/* The run loop must check for events if more than the arithmetic flags and DF changed. */
static const struct insn *stack_pop_flags(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  bool is_virtual = stack_flags_are_virtual(cpu, size);
  uint32_t popped = (uint32_t)stack_peek(cpu, 0, size), old = flags_get(cpu), flags;

  if (is_virtual) {
    flags = stack_popf_virtual(cpu, popped);
  } else {
    uint32_t mask = stack_popf_mask(cpu, size);
    flags = (old & ~mask) | (popped & mask);
  }
  stack_set_pointer(cpu, cpu->r[RSP] + size);
  flags_set(cpu, flags & ~(uint32_t)FLAG_RF);
  bool is_seen = (old ^ flags) & ~(uint32_t)(FLAGS_ARITHMETIC | FLAG_DF);
  return is_seen ? insn_leave(cpu, insn) : insn_next(cpu, insn);
}

const struct insn *stack_pushf(struct cpu *cpu, const struct insn *insn)
{
  return stack_push_flags(cpu, insn, 2);
}

const struct insn *stack_pushfd(struct cpu *cpu, const struct insn *insn)
{
  return stack_push_flags(cpu, insn, 4);
}

const struct insn *stack_pushfq(struct cpu *cpu, const struct insn *insn)
{
  return stack_push_flags(cpu, insn, 8);
}

const struct insn *stack_popf(struct cpu *cpu, const struct insn *insn)
{
  return stack_pop_flags(cpu, insn, 2);
}

const struct insn *stack_popfd(struct cpu *cpu, const struct insn *insn)
{
  return stack_pop_flags(cpu, insn, 4);
}

const struct insn *stack_popfq(struct cpu *cpu, const struct insn *insn)
{
  return stack_pop_flags(cpu, insn, 8);
}
