/* SPDX-License-Identifier: Apache-2.0
 *
 * JMP and CALL to another code segment: directly, through call gates, to tasks. SDM vol. 2, JMP and CALL; vol. 3, 5.8.
 * RETF is in return.c.
 */
#include "cpu/far.h"
#include "cpu/flags.h"
#include "cpu/transfer.h"

struct pointer {
  uint64_t offset;
  uint16_t selector;
};

static struct pointer load_pointer(struct cpu *cpu, const struct insn *insn)
{
  struct pointer pointer = {.offset = insn->far_offset, .selector = insn->far_selector};
  unsigned size = insn->size;

  if (insn->form == FORM_MEM) {
    uint64_t address = insn_address(cpu, insn);

    pointer.offset = access_load(cpu, insn->segment, address, size);
    pointer.selector = (uint16_t)access_load(cpu, insn->segment, (address + size) & insn->address_mask, 2);
  }
  pointer.offset &= size == 2 ? 0xFFFF : size == 4 ? 0xFFFFFFFF : UINT64_MAX;
  return pointer;
}

static enum lb_branch_kind kind_of(bool is_call)
{
  return is_call ? LB_BRANCH_FAR_CALL : LB_BRANCH_FAR_JMP;
}

/* CS:RIP of the next instruction, to return to. */
static void add_return(const struct cpu *cpu, const struct insn *insn, struct frame *frame)
{
  frame_add(frame, cpu->segment[CS].selector);
  frame_add(frame, insn_next_rip(insn));
}

/* The last steps, after all checks. */
static const struct insn *enter(struct cpu *cpu, const struct pointer *target, struct descriptor *code, unsigned cpl,
                                bool is_call)
{
  struct transfer transfer = transfer_begin(cpu);

  code_set(cpu, target->selector, code, cpl);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, target->offset, kind_of(is_call));
}

/* ---- real and virtual-8086 mode ---- */

static const struct insn *go_real(struct cpu *cpu, const struct insn *insn, const struct pointer *target, bool is_call)
{
  if (target->offset > cpu->code_limit)
    fault_gp(cpu, 0);
  struct transfer transfer = transfer_begin(cpu);
  if (is_call) {
    struct frame_stack stack = frame_stack_current(cpu, false);
    struct frame frame = {.size = insn->size};

    add_return(cpu, insn, &frame);
    frame_check(cpu, &stack, &frame);
    frame_write(cpu, &stack, &frame);
    frame_use(cpu, &stack);
  }
  segment_load_real(cpu, CS, target->selector);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, target->offset, kind_of(is_call));
}

/* ---- to a code segment ---- */

static void check_code(struct cpu *cpu, uint16_t selector, const struct descriptor *code)
{
  unsigned dpl = SEGMENT_DPL(code->access);
  bool is_level = code_is_conforming(code) ? dpl <= cpu->cpl : (selector & 3u) <= cpu->cpl && dpl == cpu->cpl;
  bool is_reserved = code_is_64(cpu, code) && (code->access & SEGMENT_DB);

  if (!code_is(code) || !is_level || is_reserved)
    fault_gp(cpu, selector & ~3u);
  if (!(code->access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
}

static const struct insn *go_code(struct cpu *cpu, const struct insn *insn, const struct pointer *target,
                                  struct descriptor *code, bool is_call)
{
  check_code(cpu, target->selector, code);
  if (!is_call) {
    code_check_offset(cpu, code, target->offset);
    segment_mark_accessed(cpu, code);
    return enter(cpu, target, code, cpu->cpl, false);
  }
  struct frame_stack stack = frame_stack_current(cpu, insn_is_64(cpu));
  struct frame frame = {.size = insn->size};
  add_return(cpu, insn, &frame);
  frame_check(cpu, &stack, &frame);
  code_check_offset(cpu, code, target->offset);
  segment_mark_accessed(cpu, code);
  frame_write(cpu, &stack, &frame);
  frame_use(cpu, &stack);
  return enter(cpu, target, code, cpu->cpl, true);
}

/* ---- through a call gate ---- */

/* The stack contents for an inner level: the outer stack pointer, parameters, the return address. */
static void add_outer(struct cpu *cpu, const struct gate *gate, struct frame *frame)
{
  frame_add(frame, cpu->segment[SS].selector);
  frame_add(frame, cpu->r[RSP]);
  for (unsigned i = gate->parameters; i-- > 0;) {
    uint64_t offset = (cpu->r[RSP] + i * frame->size) & cpu->stack_mask;

    frame_add(frame, access_load(cpu, SS, offset, frame->size));
  }
}

static const struct insn *call_gate(struct cpu *cpu, const struct insn *insn, const struct gate *gate,
                                    struct descriptor *code)
{
  bool is_64 = far_is_long(cpu);
  bool is_inner = !code_is_conforming(code) && SEGMENT_DPL(code->access) < cpu->cpl;
  unsigned level = is_inner ? SEGMENT_DPL(code->access) : cpu->cpl;
  struct pointer target = {.offset = gate->offset, .selector = gate->selector};
  struct frame frame = {.size = gate->size};
  struct frame_stack stack = !is_inner ? frame_stack_current(cpu, is_64)
                             : is_64   ? frame_stack_inner_64(cpu, level, 0)
                                       : frame_stack_inner(cpu, level);

  if (is_inner)
    add_outer(cpu, gate, &frame);
  add_return(cpu, insn, &frame);
  frame_check(cpu, &stack, &frame);
  code_check_offset(cpu, code, target.offset);
  frame_mark(cpu, &stack, code);
  struct transfer transfer = transfer_begin(cpu);
  frame_write(cpu, &stack, &frame);
  frame_use(cpu, &stack);
  code_set(cpu, target.selector, code, level);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, target.offset, LB_BRANCH_FAR_CALL);
}

static const struct insn *go_gate(struct cpu *cpu, const struct insn *insn, const struct descriptor *descriptor,
                                  bool is_call)
{
  struct gate gate = gate_read(cpu, descriptor);
  struct descriptor code = code_fetch_by_gate(cpu, gate.selector);

  if (is_call)
    return call_gate(cpu, insn, &gate, &code);
  struct pointer target = {.offset = gate.offset, .selector = gate.selector};
  if (!code_is_conforming(&code) && SEGMENT_DPL(code.access) != cpu->cpl)
    fault_gp(cpu, gate.selector & ~3u);
  code_check_offset(cpu, &code, target.offset);
  segment_mark_accessed(cpu, &code);
  return enter(cpu, &target, &code, cpu->cpl, false);
}

/* ---- to a task ---- */

static const struct insn *go_task(struct cpu *cpu, const struct insn *insn, uint16_t selector, bool is_call)
{
  enum task_cause cause = is_call ? TASK_CALL : TASK_JUMP;
  struct descriptor tss = task_fetch(cpu, selector, cause);

  return task_switch(cpu, selector, &tss, cause, insn_next_rip(insn), flags_get(cpu), LB_BRANCH_TASK_SWITCH);
}

/* ---- dispatch ---- */

static const struct insn *go_system(struct cpu *cpu, const struct insn *insn, uint16_t selector, bool is_call)
{
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_GP, true);
  unsigned type = SEGMENT_TYPE(d.access);
  bool is_call_gate = type == SYSTEM_CALL_GATE_32 || type == SYSTEM_CALL_GATE_16;
  bool is_tss = type == SYSTEM_TSS_32 || type == SYSTEM_TSS_16;
  bool is_known = is_call_gate || is_tss || type == SYSTEM_TASK_GATE;

  if (far_is_long(cpu)) /* the second half of the gate must not look like a descriptor */
    is_known = type == SYSTEM_CALL_GATE_32 && !(d.raw_high >> 40 & 0x1F);
  unsigned dpl = SEGMENT_DPL(d.access);
  if (!is_known || dpl < cpu->cpl || dpl < (selector & 3u))
    fault_gp(cpu, selector & ~3u);
  if (!(d.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
  if (is_call_gate)
    return go_gate(cpu, insn, &d, is_call);
  return go_task(cpu, insn, is_tss ? selector : gate_read(cpu, &d).selector, is_call);
}

static const struct insn *go(struct cpu *cpu, const struct insn *insn, bool is_call)
{
  struct pointer target = load_pointer(cpu, insn);

  if (!segment_is_protected(cpu))
    return go_real(cpu, insn, &target, is_call);
  if (selector_is_null(target.selector))
    fault_gp(cpu, 0);
  struct descriptor d = segment_fetch(cpu, target.selector, EXCEPTION_GP, false);
  if (d.access & SEGMENT_S)
    return go_code(cpu, insn, &target, &d, is_call);
  return go_system(cpu, insn, target.selector, is_call);
}

const struct insn *far_jump(struct cpu *cpu, const struct insn *insn)
{
  return go(cpu, insn, false);
}

const struct insn *far_call(struct cpu *cpu, const struct insn *insn)
{
  return go(cpu, insn, true);
}
