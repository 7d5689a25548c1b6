/* SPDX-License-Identifier: Apache-2.0
 *
 * Delivery of interrupts and exceptions: determines the vector, then goes through the vector table of real mode or the
 * gates of the IDT. See interrupt.h; SDM vol. 2, INT n; vol. 3 chapter 6 and 20.3.
 */
#include "cpu/interrupt.h"

#include "cpu/far.h"
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/point.h"
#include "cpu/system.h"
#include "cpu/transfer.h"

struct event {
  uint64_t saved; /* instruction pointer and flags to push */
  uint32_t flags;
  uint32_t error;
  uint8_t vector;
  uint8_t kind; /* enum lb_branch_kind */
  bool has_error;
  bool is_software; /* INT n, INT3, INTO: the gate's DPL counts */
  bool is_debug;    /* #DB: not recorded */
};

#define REDIRECTION_SIZE 32 /* bytes of the interrupt redirection bit map */
#define TSS_IO_MAP 0x66

/* Bit 1 of an error code says that it names a gate of the IDT. interrupt_exception adds bit 0, EXT. */
static uint32_t gate_error(const struct event *event)
{
  return event->vector * 8u + 2;
}

/* The last step: the handler is entered. */
static void finish(struct cpu *cpu, const struct event *event, const struct transfer *transfer, uint64_t target)
{
  if (event->is_debug)
    transfer_debug(cpu, transfer, target);
  else
    transfer_event(cpu, transfer, event->saved, target, event->kind);
}

/* ---- the vector table of real mode, also used inside virtual-8086 mode ---- */

static void enter_by_table(struct cpu *cpu, const struct event *event, uint32_t entry, uint32_t cleared)
{
  struct frame_stack stack = frame_stack_current(cpu, false);
  struct frame frame = {.size = 2};

  frame_add(&frame, event->flags);
  frame_add(&frame, cpu->segment[CS].selector);
  frame_add(&frame, event->saved);
  frame_check(cpu, &stack, &frame);
  uint32_t target = entry & 0xFFFF;
  if (target > cpu->code_limit)
    fault_gp(cpu, 0);
  struct transfer transfer = transfer_begin(cpu);
  frame_write(cpu, &stack, &frame);
  frame_use(cpu, &stack);
  cpu->eflags &= ~cleared;
  segment_load_real(cpu, CS, (uint16_t)(entry >> 16));
  segment_update(cpu);
  finish(cpu, event, &transfer, target);
}

static void deliver_real(struct cpu *cpu, const struct event *event)
{
  uint32_t offset = event->vector * 4u;

  if (offset + 3 > cpu->idtr.limit)
    fault_gp(cpu, gate_error(event));
  uint32_t entry = (uint32_t)access_load_system(cpu, cpu->idtr.base + offset, 4);
  enter_by_table(cpu, event, entry, FLAG_IF | FLAG_TF | FLAG_AC | FLAG_RF);
}

/* Whether the TSS redirects this INT n of virtual-8086 mode to the program's own table: SDM vol. 3, 20.3.3. */
static bool is_redirected(struct cpu *cpu, uint8_t vector)
{
  const struct cpu_segment *tss = &cpu->segment[TR];

  if (!(cpu->cr4 & CR4_VME))
    return false;
  if (!(tss->access & SYSTEM_32) || tss->limit < TSS_IO_MAP + 1)
    fault_gp(cpu, 0);
  uint32_t map = (uint32_t)access_load_system(cpu, tss->base + TSS_IO_MAP, 2);
  uint32_t at = map - REDIRECTION_SIZE + vector / 8u;
  if (map < REDIRECTION_SIZE || at > tss->limit)
    fault_gp(cpu, 0);
  return !(access_load_system(cpu, tss->base + at, 1) >> (vector & 7) & 1);
}

/* Methods 5 and 6 of SDM vol. 3, table 20-2: the processor stays in virtual-8086 mode. A program without the right to
 * change IF sees and changes VIF instead. */
static void deliver_redirected(struct cpu *cpu, struct event *event)
{
  uint32_t entry = (uint32_t)access_load_linear(cpu, DS, event->vector * 4u, 4);
  bool is_virtual = (cpu->eflags & FLAG_IOPL) != FLAG_IOPL;

  if (is_virtual) {
    bool vif = event->flags & FLAG_VIF;

    event->flags = (event->flags & ~(uint32_t)FLAG_IF) | FLAG_IOPL | (vif ? FLAG_IF : 0u);
  }
  enter_by_table(cpu, event, entry, FLAG_TF | FLAG_RF | (is_virtual ? FLAG_VIF : FLAG_IF));
}

/* ---- interrupt and trap gates ---- */

static void add_v8086_segments(const struct cpu *cpu, struct frame *frame)
{
  static const uint8_t order[] = {GS, FS, DS, ES};

  for (unsigned i = 0; i < sizeof(order); i++)
    frame_add(frame, cpu->segment[order[i]].selector);
}

static struct frame frame_of(const struct cpu *cpu, const struct event *event, const struct gate *gate, bool is_inner)
{
  struct frame frame = {.size = gate->size};

  if (cpu->eflags & FLAG_VM)
    add_v8086_segments(cpu, &frame);
  if (is_inner || gate->size == 8) {
    frame_add(&frame, cpu->segment[SS].selector);
    frame_add(&frame, cpu->r[RSP]);
  }
  frame_add(&frame, event->flags);
  frame_add(&frame, cpu->segment[CS].selector);
  frame_add(&frame, event->saved);
  if (event->has_error)
    frame_add(&frame, event->error);
  return frame;
}

static struct frame_stack stack_of(struct cpu *cpu, const struct gate *gate, unsigned level)
{
  bool is_inner = level < cpu->cpl;

  if (gate->size != 8)
    return is_inner ? frame_stack_inner(cpu, level) : frame_stack_current(cpu, false);
  struct frame_stack stack =
    is_inner || gate->stack ? frame_stack_inner_64(cpu, level, gate->stack) : frame_stack_current(cpu, true);
  stack.pointer &= ~UINT64_C(0xF); /* SDM vol. 3, 6.14.2 */
  return stack;
}

static void leave_v8086(struct cpu *cpu)
{
  static const uint8_t numbers[] = {ES, DS, FS, GS};

  if (!(cpu->eflags & FLAG_VM))
    return;
  for (unsigned i = 0; i < sizeof(numbers); i++)
    segment_set_null(cpu, numbers[i], 0);
}

static void deliver_gate(struct cpu *cpu, const struct event *event, const struct gate *gate)
{
  struct descriptor code = code_fetch_by_gate(cpu, gate->selector);
  bool is_conforming = code_is_conforming(&code);

  if ((cpu->eflags & FLAG_VM) && (is_conforming || SEGMENT_DPL(code.access) != 0))
    fault_gp(cpu, gate->selector & ~3u);
  unsigned level = is_conforming ? cpu->cpl : SEGMENT_DPL(code.access);
  struct frame_stack stack = stack_of(cpu, gate, level);
  struct frame frame = frame_of(cpu, event, gate, level < cpu->cpl);
  frame_check(cpu, &stack, &frame);
  code_check_offset(cpu, &code, gate->offset);
  frame_mark(cpu, &stack, &code);
  struct transfer transfer = transfer_begin(cpu);
  frame_write(cpu, &stack, &frame);
  frame_use(cpu, &stack);
  leave_v8086(cpu);
  code_set(cpu, gate->selector, &code, level);
  bool is_interrupt_gate = !(gate->type & 1);
  cpu->eflags &= ~(uint32_t)(FLAG_TF | FLAG_VM | FLAG_RF | FLAG_NT | (is_interrupt_gate ? FLAG_IF : 0));
  segment_update(cpu);
  finish(cpu, event, &transfer, gate->offset);
}

/* ---- task gates ---- */

static void push_error(struct cpu *cpu, uint32_t error, unsigned size)
{
  struct frame_stack stack = frame_stack_current(cpu, false);
  struct frame frame = {.size = size};

  frame_add(&frame, error);
  frame_check(cpu, &stack, &frame);
  frame_write(cpu, &stack, &frame);
  frame_use(cpu, &stack);
  segment_update(cpu);
}

static void deliver_task(struct cpu *cpu, const struct event *event, uint16_t selector)
{
  struct descriptor tss = task_fetch(cpu, selector, TASK_EVENT);

  task_switch(cpu, selector, &tss, TASK_EVENT, event->saved, event->flags,
              event->is_debug ? LB_BRANCH_KINDS : LB_BRANCH_TASK_SWITCH);
  if (event->has_error)
    push_error(cpu, event->error, tss.access & SYSTEM_32 ? 4 : 2);
}

/* ---- the IDT ---- */

static bool is_gate_type(const struct cpu *cpu, uint16_t access)
{
  switch (access & (SEGMENT_S | 0xFu)) {
  case SYSTEM_INTERRUPT_GATE_32:
  case SYSTEM_TRAP_GATE_32:
    return true;
  case SYSTEM_TASK_GATE:
  case SYSTEM_INTERRUPT_GATE_16:
  case SYSTEM_TRAP_GATE_16:
    return !far_is_long(cpu);
  default:
    return false;
  }
}

static struct gate fetch_gate(struct cpu *cpu, const struct event *event)
{
  unsigned size = far_is_long(cpu) ? 16 : 8;
  uint32_t offset = event->vector * size;

  if (offset + size - 1 > cpu->idtr.limit)
    fault_gp(cpu, gate_error(event));
  struct descriptor d = {.linear = cpu->idtr.base + offset};
  d.raw = access_load_system(cpu, d.linear, 8);
  d.raw_high = size == 16 ? access_load_system(cpu, d.linear + 8, 8) : 0;
  d.access = d.raw >> 40 & 0xFF;
  if (!is_gate_type(cpu, d.access) || (event->is_software && SEGMENT_DPL(d.access) < cpu->cpl))
    fault_gp(cpu, gate_error(event));
  if (!(d.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, gate_error(event));
  return gate_read(cpu, &d);
}

static void deliver_protected(struct cpu *cpu, const struct event *event)
{
  struct gate gate = fetch_gate(cpu, event);

  if (gate.type == SYSTEM_TASK_GATE)
    deliver_task(cpu, event, gate.selector);
  else
    deliver_gate(cpu, event, &gate);
}

/* Marks that an event is being delivered. If delivery faults, interrupt_exception reads these marks. An external
 * interrupt is benign whatever its vector, like an NMI. */
static void begin(struct cpu *cpu, const struct event *event)
{
  cpu->fault.is_delivering = true;
  cpu->fault.is_delivering_soft = event->is_software;
  cpu->fault.delivering = event->kind == LB_BRANCH_INTERRUPT ? EXCEPTION_NMI : event->vector;
}

static void end(struct cpu *cpu, const struct event *event)
{
  cpu->fault.is_delivering = cpu->fault.is_delivering_soft = false;
  if (event->is_debug)
    cpu->debug_due &= ~(uint32_t)DR6_B; /* a breakpoint on #DB's own stack would never end */
}

static void deliver(struct cpu *cpu, const struct event *event)
{
  begin(cpu, event);
  if (cpu->cr0 & CR0_PE)
    deliver_protected(cpu, event);
  else
    deliver_real(cpu, event);
  end(cpu, event);
}

/* ---- exceptions ---- */

static bool is_contributory(unsigned vector)
{
  return vector == EXCEPTION_DE || (vector >= EXCEPTION_TS && vector <= EXCEPTION_GP);
}

/* SDM vol. 3, table 6-5. #AC during the delivery of an exception (a misaligned stack of CPL 3) is benign in that table
 * and may repeat forever on hardware; here it becomes a double fault. */
static bool is_double(const struct cpu *cpu, unsigned second)
{
  unsigned first = cpu->fault.delivering;

  if (cpu->fault.is_delivering_soft)
    return false;
  if (second == EXCEPTION_AC)
    return first != EXCEPTION_NMI;
  if (first == EXCEPTION_PF)
    return second == EXCEPTION_PF || is_contributory(second);
  return is_contributory(first) && is_contributory(second);
}

/* A fault occurred while another event was delivered. Returns false for one during the delivery of #DF. */
static bool combine(const struct cpu *cpu, struct event *event)
{
  if (cpu->fault.delivering == EXCEPTION_DF && !cpu->fault.is_delivering_soft)
    return false;
  bool names_selector = event->vector >= EXCEPTION_TS && event->vector <= EXCEPTION_GP;
  if (is_double(cpu, event->vector)) {
    event->vector = EXCEPTION_DF;
    event->has_error = true;
    event->error = 0;
  } else if (names_selector && !cpu->fault.is_delivering_soft) {
    event->error |= 1; /* EXT: SDM vol. 3, 6.13 */
  }
  return true;
}

/* DR6 is changed and DR7.GD is cleared before the handler is entered. SDM vol. 3, 17.2. */
static void note_debug(struct cpu *cpu, uint32_t bits)
{
  cpu->dr[6] = (cpu->dr[6] & ~(uint64_t)DR6_B) | bits;
  if (cpu->dr[7] & DR7_GD) {
    cpu->dr[7] &= ~(uint64_t)DR7_GD;
    system_update_debug(cpu);
  }
}

bool interrupt_exception(struct cpu *cpu)
{
  struct event event = {.vector = cpu->fault.vector, .has_error = cpu->fault.has_error, .error = cpu->fault.error};

  if (cpu->fault.is_delivering && !combine(cpu, &event))
    return false;
  event.kind = event.vector == EXCEPTION_MC ? LB_BRANCH_MACHINE_CHECK : LB_BRANCH_FAULT;
  event.saved = transfer_begin(cpu).from;
  event.flags = flags_get(cpu) | FLAG_RF;
  if (event.vector == EXCEPTION_DB) {
    uint32_t bits = cpu->debug_due;

    event.is_debug = true;
    if (!(bits & DR6_BD)) /* an instruction breakpoint: the handler sets RF itself */
      event.flags = flags_get(cpu);
    cpu->debug_due = 0;
    note_debug(cpu, bits);
  }
  deliver(cpu, &event);
  return true;
}

/* ---- between instructions ---- */

static struct event event_between(const struct cpu *cpu, uint8_t vector, enum lb_branch_kind kind)
{
  return (struct event){.vector = vector, .kind = (uint8_t)kind, .saved = cpu->rip, .flags = flags_get(cpu)};
}

void interrupt_external(struct cpu *cpu, uint8_t vector)
{
  struct event event = event_between(cpu, vector, LB_BRANCH_INTERRUPT);

  deliver(cpu, &event);
}

void interrupt_nmi(struct cpu *cpu)
{
  struct event event = event_between(cpu, EXCEPTION_NMI, LB_BRANCH_NMI);

  cpu->is_nmi_blocked = true;
  deliver(cpu, &event);
}

void interrupt_debug(struct cpu *cpu, uint32_t bits)
{
  struct event event = event_between(cpu, EXCEPTION_DB, LB_BRANCH_TRAP);

  event.is_debug = true;
  note_debug(cpu, bits);
  deliver(cpu, &event);
}

/* ---- INT n and similar instructions ---- */

const struct insn *interrupt_software(struct cpu *cpu, const struct insn *insn, uint8_t vector,
                                      enum lb_branch_kind kind)
{
  struct event event = {.vector = vector, .kind = (uint8_t)kind, .is_software = true, .saved = insn_next_rip(insn)};

  event.flags = flags_get(cpu) & ~(uint32_t)FLAG_RF;
  bool is_v8086 = kind == LB_BRANCH_INT && (cpu->cr0 & CR0_PE) && (cpu->eflags & FLAG_VM);
  if (is_v8086 && is_redirected(cpu, vector)) {
    begin(cpu, &event);
    deliver_redirected(cpu, &event);
    end(cpu, &event);
    return NULL;
  }
  if (is_v8086 && (cpu->eflags & FLAG_IOPL) != FLAG_IOPL)
    fault_gp(cpu, 0);
  deliver(cpu, &event);
  return NULL;
}

const struct insn *interrupt_int(struct cpu *cpu, const struct insn *insn)
{
  return interrupt_software(cpu, insn, (uint8_t)insn->imm, LB_BRANCH_INT);
}

const struct insn *interrupt_int3(struct cpu *cpu, const struct insn *insn)
{
  if (point_catches(cpu, EXCEPTION_BP))
    return insn_before(cpu, insn);
  return interrupt_software(cpu, insn, EXCEPTION_BP, LB_BRANCH_INT3);
}

const struct insn *interrupt_into(struct cpu *cpu, const struct insn *insn)
{
  if (flags_of(cpu) && point_catches(cpu, EXCEPTION_OF))
    return insn_before(cpu, insn);
  return flags_of(cpu) ? interrupt_software(cpu, insn, EXCEPTION_OF, LB_BRANCH_INTO) : insn + 1;
}

/* ICEBP is #DB: no DPL is checked, DR6 stays as it is. SDM vol. 2, INT1. */
const struct insn *interrupt_int1(struct cpu *cpu, const struct insn *insn)
{
  struct event event = {.vector = EXCEPTION_DB, .kind = LB_BRANCH_TRAP, .is_debug = true};

  if (point_catches(cpu, EXCEPTION_DB))
    return insn_before(cpu, insn);
  event.saved = insn_next_rip(insn);
  event.flags = flags_get(cpu) & ~(uint32_t)FLAG_RF;
  note_debug(cpu, cpu->dr[6] & DR6_B);
  deliver(cpu, &event);
  return NULL;
}
