/* SPDX-License-Identifier: Apache-2.0
 *
 * Hardware task switches, between 16- and 32-bit task state segments: SDM vol. 3 chapter 7. Up to the point of no
 * return (end of 7.3, step 11) everything is checked and nothing is changed. After it, faults occur in the new task, at
 * its first instruction.
 */
#include "cpu/far.h"
#include "cpu/flags.h"
#include "cpu/paging.h"
#include "cpu/system.h"
#include "cpu/transfer.h"

#define TSS_REGISTERS 8
#define TSS_SEGMENTS 6
#define DR7_LOCAL 0x155u /* L0 to L3 and LE: a task's own breakpoints end with it (SDM vol. 3, 17.2.4) */

/* Offsets in a TSS: SDM vol. 3, figures 7-2 and 7-10. */
struct tss_layout {
  uint8_t last; /* byte that its limit must include */
  uint8_t width;
  uint8_t cr3; /* 0: none */
  uint8_t ip, flags, registers, segments, segment_count, ldt;
  uint8_t trap; /* 0: none */
};

static const struct tss_layout layout_16 = {.last = 0x2B,
                                            .width = 2,
                                            .ip = 0x0E,
                                            .flags = 0x10,
                                            .registers = 0x12,
                                            .segments = 0x22,
                                            .segment_count = 4,
                                            .ldt = 0x2A};

static const struct tss_layout layout_32 = {.last = 0x67,
                                            .width = 4,
                                            .cr3 = 0x1C,
                                            .ip = 0x20,
                                            .flags = 0x24,
                                            .registers = 0x28,
                                            .segments = 0x48,
                                            .segment_count = 6,
                                            .ldt = 0x60,
                                            .trap = 0x64};

struct tss_state {
  uint32_t cr3, ip, flags;
  uint32_t registers[TSS_REGISTERS];
  uint16_t segments[TSS_SEGMENTS]; /* FS and GS of a 16-bit task are null */
  uint16_t ldt;
  bool has_trap;
};

static const struct tss_layout *layout_of(uint16_t access)
{
  return access & SYSTEM_32 ? &layout_32 : &layout_16;
}

/* ---- reading and writing ---- */

static uint64_t tss_linear(uint64_t base, unsigned offset)
{
  return (base + offset) & 0xFFFFFFFF;
}

static uint32_t tss_load(struct cpu *cpu, uint64_t base, unsigned offset, unsigned size)
{
  return (uint32_t)access_load_system(cpu, tss_linear(base, offset), size);
}

static struct tss_state tss_read(struct cpu *cpu, uint64_t base, const struct tss_layout *layout)
{
  struct tss_state state = {.cr3 = layout->cr3 ? tss_load(cpu, base, layout->cr3, 4) : 0};

  state.ip = tss_load(cpu, base, layout->ip, layout->width);
  state.flags = tss_load(cpu, base, layout->flags, layout->width);
  for (unsigned i = 0; i < TSS_REGISTERS; i++)
    state.registers[i] = tss_load(cpu, base, layout->registers + i * layout->width, layout->width);
  for (unsigned i = 0; i < layout->segment_count; i++)
    state.segments[i] = (uint16_t)tss_load(cpu, base, layout->segments + i * layout->width, 2);
  state.ldt = (uint16_t)tss_load(cpu, base, layout->ldt, 2);
  state.has_trap = layout->trap && (tss_load(cpu, base, layout->trap, 2) & 1);
  return state;
}

/* Writes the dynamic fields, which are contiguous from the instruction pointer to the last segment. */
static void tss_write(struct cpu *cpu, uint32_t eip, uint32_t eflags)
{
  const struct tss_layout *layout = layout_of(cpu->segment[TR].access);
  uint64_t base = cpu->segment[TR].base;

  access_store_system(cpu, tss_linear(base, layout->ip), layout->width, eip);
  access_store_system(cpu, tss_linear(base, layout->flags), layout->width, eflags);
  for (unsigned i = 0; i < TSS_REGISTERS; i++)
    access_store_system(cpu, tss_linear(base, layout->registers + i * layout->width), layout->width, cpu->r[i]);
  for (unsigned i = 0; i < layout->segment_count; i++)
    access_store_system(cpu, tss_linear(base, layout->segments + i * layout->width), 2, cpu->segment[i].selector);
}

static void check_write_old(struct cpu *cpu)
{
  const struct cpu_segment *tr = &cpu->segment[TR];
  const struct tss_layout *layout = layout_of(tr->access);

  if (tr->limit < layout->last)
    fault_raise(cpu, EXCEPTION_TS, tr->selector & ~3u);
  unsigned end = layout->segments + layout->segment_count * layout->width;
  for (unsigned offset = layout->ip; offset < end; offset += layout->width)
    access_check_write_system(cpu, tss_linear(tr->base, offset), layout->width);
}

/* ---- the point of no return ---- */

struct descriptor task_fetch(struct cpu *cpu, uint16_t selector, enum task_cause cause)
{
  bool is_return = cause == TASK_RETURN;
  unsigned exception = is_return ? EXCEPTION_TS : EXCEPTION_GP;

  if (selector & 4)
    fault_raise(cpu, exception, selector & ~3u);
  struct descriptor d = segment_fetch(cpu, selector, exception, false);
  unsigned busy = is_return ? SYSTEM_BUSY : 0;
  unsigned type = d.access & (SEGMENT_S | 0xF);
  if (type != (SYSTEM_TSS_32 | busy) && type != (SYSTEM_TSS_16 | busy))
    fault_raise(cpu, exception, selector & ~3u);
  if (!(d.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
  return d;
}

/* Finds the old task's descriptor, if its busy bit is to be cleared. */
static bool find_old(struct cpu *cpu, enum task_cause cause, struct descriptor *ret_old)
{
  bool is_left = cause == TASK_JUMP || cause == TASK_RETURN;

  return is_left && segment_look(cpu, cpu->segment[TR].selector & ~7u, false, ret_old);
}

/* PAE paging reads four entries with CR3; invalid ones make the load fail. The old entries stay for now. */
static void check_cr3(struct cpu *cpu, const struct tss_layout *layout, uint32_t cr3)
{
  if (!layout->cr3 || !(cpu->cr0 & CR0_PG) || !(cpu->cr4 & CR4_PAE))
    return;
  uint64_t old[4];
  memcpy(old, cpu->pdpte, sizeof(old));
  bool is_good = paging_load_pdptes(cpu, cr3);
  memcpy(cpu->pdpte, old, sizeof(old));
  if (!is_good)
    fault_gp(cpu, 0);
}

static void check_all(struct cpu *cpu, uint16_t selector, const struct descriptor *tss, enum task_cause cause)
{
  const struct tss_layout *layout = layout_of(tss->access);

  if (tss->limit < layout->last)
    fault_raise(cpu, EXCEPTION_TS, selector & ~3u);
  struct descriptor old;
  check_write_old(cpu);
  if (find_old(cpu, cause, &old))
    access_check_write_system(cpu, old.linear + 5, 1);
  if (cause != TASK_RETURN)
    access_check_write_system(cpu, tss->linear + 5, 1);
  if (cause == TASK_CALL || cause == TASK_EVENT)
    access_check_write_system(cpu, tss_linear(tss->base, 0), 2);
  struct tss_state state = tss_read(cpu, tss->base, layout);
  check_cr3(cpu, layout, state.cr3);
}

static void leave_old(struct cpu *cpu, struct descriptor *tss, enum task_cause cause, uint32_t eip, uint32_t eflags)
{
  struct descriptor old;

  if (find_old(cpu, cause, &old))
    access_store_system(cpu, old.linear + 5, 1, old.access & 0xFF & ~(unsigned)SYSTEM_BUSY);
  tss_write(cpu, eip, cause == TASK_RETURN ? eflags & ~(uint32_t)FLAG_NT : eflags);
  if (cause == TASK_CALL || cause == TASK_EVENT)
    access_store_system(cpu, tss_linear(tss->base, 0), 2, cpu->segment[TR].selector);
  if (cause != TASK_RETURN) {
    tss->access |= SYSTEM_BUSY;
    access_store_system(cpu, tss->linear + 5, 1, tss->access & 0xFF);
  }
}

/* ---- the new task ---- */

/* Registers, and CS without its descriptor: selectors are loaded, hidden parts are not yet. SS.DPL already holds the
 * new privilege level. */
static void enter_new(struct cpu *cpu, const struct tss_state *state, const struct tss_layout *layout)
{
  unsigned cpl = state->segments[CS] & 3u;
  struct descriptor d;

  if (layout->cr3 && (cpu->cr0 & CR0_PG))
    system_set_cr3(cpu, state->cr3);
  cpu->cr0 |= CR0_TS;
  cpu->dr[7] &= ~(uint64_t)DR7_LOCAL;
  system_update_debug(cpu);
  flags_set(cpu, state->flags);
  for (unsigned i = 0; i < TSS_REGISTERS; i++)
    cpu->r[i] = state->registers[i];
  for (unsigned i = 0; i < TSS_SEGMENTS; i++)
    segment_set_null(cpu, i, state->segments[i]);
  cpu->segment[SS].access = (uint16_t)(cpl << 5);
  segment_set_null(cpu, LDTR, state->ldt);
  struct cpu_segment ldt = {.access = 0};
  if (!selector_is_null(state->ldt) && !(state->ldt & 4) && segment_peek(cpu, state->ldt, &ldt, &d))
    ldt = (struct cpu_segment){.base = d.base, .limit = d.limit, .access = d.access};
  if (segment_peek(cpu, state->segments[CS], &ldt, &d))
    segment_set(cpu, CS, state->segments[CS], &d);
}

static void load_ldt(struct cpu *cpu, uint16_t selector)
{
  if (selector_is_null(selector))
    return;
  if (selector & 4)
    fault_raise(cpu, EXCEPTION_TS, selector & ~3u);
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_TS, false);
  if ((d.access & (SEGMENT_S | SEGMENT_P | 0xF)) != (SEGMENT_P | SYSTEM_LDT))
    fault_raise(cpu, EXCEPTION_TS, selector & ~3u);
  segment_set(cpu, LDTR, selector, &d);
}

static void load_code(struct cpu *cpu, uint16_t selector)
{
  if (selector_is_null(selector))
    fault_raise(cpu, EXCEPTION_TS, 0);
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_TS, false);
  unsigned dpl = SEGMENT_DPL(d.access), rpl = selector & 3u;
  if (!code_is(&d) || (code_is_conforming(&d) ? dpl > rpl : dpl != rpl))
    fault_raise(cpu, EXCEPTION_TS, selector & ~3u);
  if (!(d.access & SEGMENT_P))
    fault_raise(cpu, EXCEPTION_NP, selector & ~3u);
  segment_mark_accessed(cpu, &d);
  segment_set(cpu, CS, selector, &d);
  segment_update(cpu);
}

static void load_data(struct cpu *cpu, unsigned number, uint16_t selector, unsigned level)
{
  if (number != SS && selector_is_null(selector))
    return;
  if (selector_is_null(selector))
    fault_raise(cpu, EXCEPTION_TS, 0);
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_TS, false);
  if (number == SS)
    segment_check_stack(cpu, selector, &d, level, EXCEPTION_TS);
  else
    segment_check_data(cpu, selector, &d, level, EXCEPTION_TS);
  segment_mark_accessed(cpu, &d);
  segment_set(cpu, number, selector, &d);
  segment_update(cpu);
}

/* Loads the hidden parts, in the order of SDM vol. 3, table 7-1. */
static void load_segments(struct cpu *cpu, const struct tss_state *state)
{
  static const uint8_t order[] = {SS, DS, ES, FS, GS};
  unsigned level = state->segments[CS] & 3u;

  load_ldt(cpu, state->ldt);
  if (cpu->eflags & FLAG_VM)
    return; /* enter_v8086 did it */
  load_code(cpu, state->segments[CS]);
  for (unsigned i = 0; i < sizeof(order); i++)
    load_data(cpu, order[i], state->segments[order[i]], level);
}

static void enter_v8086(struct cpu *cpu, const struct tss_state *state)
{
  for (unsigned i = 0; i < TSS_SEGMENTS; i++)
    segment_load_real(cpu, i, state->segments[i]);
}

const struct insn *task_switch(struct cpu *cpu, uint16_t selector, struct descriptor *tss, enum task_cause cause,
                               uint64_t eip, uint32_t eflags, enum lb_branch_kind kind)
{
  const struct tss_layout *layout = layout_of(tss->access);

  check_all(cpu, selector, tss, cause);
  struct transfer transfer = transfer_begin(cpu);
  leave_old(cpu, tss, cause, (uint32_t)eip, eflags);
  struct tss_state state = tss_read(cpu, tss->base, layout);
  if (cause == TASK_CALL || cause == TASK_EVENT)
    state.flags |= FLAG_NT;
  segment_set(cpu, TR, selector, tss);
  enter_new(cpu, &state, layout);
  if (cpu->eflags & FLAG_VM)
    enter_v8086(cpu, &state);
  segment_update(cpu);
  if (kind == LB_BRANCH_TASK_SWITCH)
    transfer_far(cpu, &transfer, state.ip, kind);
  else
    transfer_debug(cpu, &transfer, state.ip);
  cpu->was_event = true; /* TF traps no task switch: SDM vol. 3, 17.3.1.4 */
  cpu->at = NULL;        /* faults are the new task's from here on */
  load_segments(cpu, &state);
  if (state.ip > cpu->code_limit)
    fault_gp(cpu, 0);
  if (state.has_trap)
    cpu->debug_due |= DR6_BT;
  return NULL;
}
