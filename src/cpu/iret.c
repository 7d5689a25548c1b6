/* SPDX-License-Identifier: Apache-2.0
 *
 * IRET, IRETD and IRETQ: return from an interrupt, in every mode: to the same or an outer level, to virtual-8086 mode,
 * or to the interrupted task. SDM vol. 2, IRET; vol. 3, 6.7.1, 6.14.3 and 20.2.
 */
#include "cpu/far.h"
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/transfer.h"

/* Flags that any IRET may change, and those that only its wider forms pop. */
#define FLAGS_POPPED (FLAGS_ARITHMETIC | FLAG_TF | FLAG_DF | FLAG_NT)
#define FLAGS_POPPED_WIDE (FLAG_RF | FLAG_AC | FLAG_ID)

struct image {
  uint64_t offset;
  uint64_t pointer; /* with the stack of an outer level */
  uint32_t flags;
  uint16_t selector, stack;
};

static uint64_t peek(struct cpu *cpu, const struct insn *insn, unsigned number)
{
  return access_load(cpu, SS, (cpu->r[RSP] + number * insn->size) & cpu->stack_mask, insn->size);
}

static void set_pointer(struct cpu *cpu, uint64_t bytes)
{
  uint64_t moved = (cpu->r[RSP] + bytes) & cpu->stack_mask;

  cpu->r[RSP] = cpu->stack_mask == 0xFFFF ? (cpu->r[RSP] & ~UINT64_C(0xFFFF)) | moved : moved;
}

static void set_flags(struct cpu *cpu, uint32_t popped, uint32_t changed)
{
  flags_set(cpu, (flags_get(cpu) & ~changed) | (popped & changed));
}

/* ---- real and virtual-8086 mode ---- */

static const struct insn *return_real(struct cpu *cpu, const struct insn *insn, const struct image *image,
                                      uint32_t changed)
{
  if (image->offset > cpu->code_limit)
    fault_gp(cpu, 0);
  struct transfer transfer = transfer_begin(cpu);
  set_pointer(cpu, 3 * insn->size);
  set_flags(cpu, image->flags, changed);
  segment_load_real(cpu, CS, image->selector);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, image->offset, LB_BRANCH_IRET);
}

/* With CR4.VME and IOPL < 3 the popped IF goes to VIF: SDM vol. 3, 20.3.3.4. */
static const struct insn *return_virtual_if(struct cpu *cpu, const struct insn *insn, struct image *image)
{
  bool is_if = image->flags & FLAG_IF;
  bool is_bad = insn->size != 2 || (image->flags & FLAG_TF) || (is_if && (cpu->eflags & FLAG_VIP));

  if (!(cpu->cr4 & CR4_VME) || is_bad)
    fault_gp(cpu, 0);
  image->flags = (image->flags & 0xFFFF) | (is_if ? FLAG_VIF : 0u);
  return return_real(cpu, insn, image, FLAGS_POPPED | FLAG_VIF);
}

static const struct insn *return_v8086(struct cpu *cpu, const struct insn *insn, struct image *image)
{
  if ((cpu->eflags & FLAG_IOPL) != FLAG_IOPL)
    return return_virtual_if(cpu, insn, image);
  uint32_t changed = FLAGS_POPPED | FLAG_IF | (insn->size > 2 ? FLAGS_POPPED_WIDE : 0u);
  return return_real(cpu, insn, image, changed);
}

/* ---- protected mode ---- */

static uint32_t changed_flags(const struct cpu *cpu, const struct insn *insn)
{
  bool is_wide = insn->size > 2;
  uint32_t changed = FLAGS_POPPED | (is_wide ? FLAGS_POPPED_WIDE : 0u);

  if (cpu->cpl <= (cpu->eflags & FLAG_IOPL) >> 12)
    changed |= FLAG_IF;
  if (cpu->cpl == 0)
    changed |= FLAG_IOPL | (is_wide ? FLAG_VIF | FLAG_VIP : 0u);
  return changed;
}

static const struct insn *return_task(struct cpu *cpu, const struct insn *insn)
{
  if (far_is_long(cpu))
    fault_gp(cpu, 0);
  uint16_t selector = (uint16_t)access_load_system(cpu, cpu->segment[TR].base, 2);
  struct descriptor tss = task_fetch(cpu, selector, TASK_RETURN);
  return task_switch(cpu, selector, &tss, TASK_RETURN, insn_next_rip(insn), flags_get(cpu), LB_BRANCH_TASK_SWITCH);
}

/* Only level 0 may set VM. Six more words are on its stack. */
static const struct insn *enter_v8086(struct cpu *cpu, const struct insn *insn, const struct image *image)
{
  static const uint8_t order[] = {SS, ES, DS, FS, GS};
  uint16_t selectors[sizeof(order)];
  uint32_t pointer = (uint32_t)peek(cpu, insn, 3);

  for (unsigned i = 0; i < sizeof(order); i++)
    selectors[i] = (uint16_t)peek(cpu, insn, 4 + i);
  if (image->offset > 0xFFFF)
    fault_gp(cpu, 0);
  struct transfer transfer = transfer_begin(cpu);
  flags_set(cpu, image->flags);
  cpu->r[RSP] = pointer;
  segment_load_real(cpu, CS, image->selector);
  for (unsigned i = 0; i < sizeof(order); i++)
    segment_load_real(cpu, order[i], selectors[i]);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, image->offset, LB_BRANCH_IRET);
}

static const struct insn *return_with_stack(struct cpu *cpu, const struct insn *insn, struct image *image,
                                            struct descriptor *code)
{
  unsigned rpl = image->selector & 3u;

  image->pointer = peek(cpu, insn, 3);
  image->stack = (uint16_t)peek(cpu, insn, 4);
  struct frame_stack stack = frame_stack_outer(cpu, image->stack, image->pointer, rpl, code_is_64(cpu, code));
  code_check_offset(cpu, code, image->offset);
  frame_mark(cpu, &stack, code);
  struct transfer transfer = transfer_begin(cpu);
  set_flags(cpu, image->flags, changed_flags(cpu, insn));
  frame_use(cpu, &stack);
  code_set(cpu, image->selector, code, rpl);
  if (rpl > transfer.from_cpl)
    frame_drop_segments(cpu, rpl);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, image->offset, LB_BRANCH_IRET);
}

static const struct insn *return_same(struct cpu *cpu, const struct insn *insn, const struct image *image,
                                      struct descriptor *code)
{
  code_check_offset(cpu, code, image->offset);
  segment_mark_accessed(cpu, code);
  struct transfer transfer = transfer_begin(cpu);
  set_flags(cpu, image->flags, changed_flags(cpu, insn));
  set_pointer(cpu, 3 * insn->size);
  code_set(cpu, image->selector, code, cpu->cpl);
  segment_update(cpu);
  return transfer_far(cpu, &transfer, image->offset, LB_BRANCH_IRET);
}

static const struct insn *return_protected(struct cpu *cpu, const struct insn *insn, struct image *image)
{
  bool sets_vm = insn->size == 4 && (image->flags & FLAG_VM) && cpu->cpl == 0 && !far_is_long(cpu);

  if (sets_vm)
    return enter_v8086(cpu, insn, image);
  struct descriptor code = code_fetch_to_return(cpu, image->selector);
  bool pops_stack = (image->selector & 3u) > cpu->cpl || insn_is_64(cpu);
  return pops_stack ? return_with_stack(cpu, insn, image, &code) : return_same(cpu, insn, image, &code);
}

const struct insn *iret_run(struct cpu *cpu, const struct insn *insn)
{
  bool is_protected = segment_is_protected(cpu);

  cpu->is_nmi_blocked = false; /* also when it faults: SDM vol. 3, 27.2.3, "NMI unblocking due to IRET" */
  if (is_protected && (cpu->eflags & FLAG_NT))
    return return_task(cpu, insn);
  struct image image = {.offset = peek(cpu, insn, 0)};
  image.selector = (uint16_t)peek(cpu, insn, 1);
  image.flags = (uint32_t)peek(cpu, insn, 2);
  if (is_protected)
    return return_protected(cpu, insn, &image);
  if (cpu->cr0 & CR0_PE)
    return return_v8086(cpu, insn, &image);
  uint32_t changed = FLAGS_POPPED | FLAG_IF | FLAG_IOPL | (insn->size > 2 ? FLAGS_POPPED_WIDE : 0u);
  return return_real(cpu, insn, &image, changed);
}
