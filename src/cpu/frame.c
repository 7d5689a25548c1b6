/* SPDX-License-Identifier: Apache-2.0
 *
 * The stack of a far transfer: finds it through the TSS or a popped selector, checks it for room, writes to it and
 * switches to it. All checks come first, so that a transfer that faults has changed nothing. SDM vol. 3, 5.8.5, 6.12.1,
 * 6.14 and 7.7.
 */
#include "cpu/far.h"

/* ---- which stack ---- */

static uint64_t pointer_mask(uint16_t access, bool is_64)
{
  return is_64 ? UINT64_MAX : access & SEGMENT_DB ? 0xFFFFFFFF : 0xFFFF;
}

struct frame_stack frame_stack_current(struct cpu *cpu, bool is_64)
{
  struct frame_stack stack = {.segment = cpu->segment[SS], .pointer = cpu->r[RSP], .is_64 = is_64};

  stack.mask = pointer_mask(stack.segment.access, is_64);
  stack.is_current = true;
  return stack;
}

/* A word of the current TSS; #TS(its selector) when its limit excludes it. */
static uint64_t load_tss(struct cpu *cpu, unsigned offset, unsigned size, unsigned last)
{
  const struct cpu_segment *tss = &cpu->segment[TR];

  if (last > tss->limit)
    fault_raise(cpu, EXCEPTION_TS, tss->selector & ~3u);
  uint64_t linear = tss->base + offset;
  return access_load_system(cpu, far_is_long(cpu) ? linear : linear & 0xFFFFFFFF, size);
}

static struct frame_stack stack_of(uint16_t selector, const struct descriptor *d)
{
  struct frame_stack stack = {.descriptor = *d, .has_descriptor = true, .error = selector & ~3u};

  stack.segment.selector = selector;
  stack.segment.base = d->base;
  stack.segment.limit = d->limit;
  stack.segment.access = d->access;
  stack.mask = pointer_mask(d->access, false);
  return stack;
}

struct frame_stack frame_stack_inner(struct cpu *cpu, unsigned dpl)
{
  bool is_32 = cpu->segment[TR].access & SYSTEM_32;
  unsigned offset = is_32 ? 8 * dpl + 4 : 4 * dpl + 2;
  unsigned size = is_32 ? 4 : 2;
  uint64_t pointer = load_tss(cpu, offset, size, offset + size + 1);
  uint16_t selector = (uint16_t)load_tss(cpu, offset + size, 2, offset + size + 1);

  if (selector_is_null(selector))
    fault_raise(cpu, EXCEPTION_TS, 0);
  struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_TS, false);
  segment_check_stack(cpu, selector, &d, dpl, EXCEPTION_TS);
  struct frame_stack stack = stack_of(selector, &d);
  stack.pointer = pointer;
  return stack;
}

static struct frame_stack null_stack(unsigned level)
{
  struct frame_stack stack = {.mask = UINT64_MAX, .is_64 = true};

  stack.segment.selector = (uint16_t)level;
  stack.segment.access = (uint16_t)(level << 5);
  stack.segment.limit = 0xFFFFFFFF;
  return stack;
}

struct frame_stack frame_stack_inner_64(struct cpu *cpu, unsigned dpl, unsigned ist)
{
  unsigned offset = ist ? 8 * ist + 28 : 8 * dpl + 4;
  uint64_t pointer = load_tss(cpu, offset, 8, offset + 7);

  if (!far_is_canonical(pointer))
    fault_raise(cpu, EXCEPTION_SS, 0);
  struct frame_stack stack = null_stack(dpl);
  if (dpl == cpu->cpl) { /* by IST alone: SS stays */
    stack.segment = cpu->segment[SS];
    stack.is_current = true;
  }
  stack.pointer = pointer;
  return stack;
}

struct frame_stack frame_stack_outer(struct cpu *cpu, uint16_t selector, uint64_t pointer, unsigned rpl, bool is_64)
{
  struct frame_stack stack;

  if (selector_is_null(selector)) {
    bool is_allowed = is_64 && rpl != 3 && (selector & 3u) == rpl;

    if (!is_allowed)
      fault_gp(cpu, 0);
    stack = null_stack(rpl);
  } else {
    struct descriptor d = segment_fetch(cpu, selector, EXCEPTION_GP, false);
    segment_check_stack(cpu, selector, &d, rpl, EXCEPTION_GP);
    stack = stack_of(selector, &d);
    stack.mask = pointer_mask(d.access, is_64);
    stack.is_64 = is_64;
  }
  /* A 16-bit stack sets SP alone; the upper half keeps its value. */
  bool is_16 = stack.mask == 0xFFFF;
  stack.pointer = is_16 ? (cpu->r[RSP] & ~stack.mask) | (pointer & stack.mask) : pointer & stack.mask;
  return stack;
}

/* ---- pushing ---- */

/* True when [offset, offset + size) may be written. */
static bool stack_holds(const struct cpu_segment *s, uint64_t offset, unsigned size)
{
  uint64_t last = offset + size - 1;

  if (!(s->access & SEGMENT_P))
    return false;
  if ((s->access & (SEGMENT_CODE | SEGMENT_EXPAND_DOWN)) == SEGMENT_EXPAND_DOWN)
    return offset > s->limit && last <= (s->access & SEGMENT_DB ? 0xFFFFFFFF : 0xFFFF);
  return last <= s->limit || s->limit == 0xFFFFFFFF;
}

static uint64_t stack_offset(const struct frame_stack *stack, unsigned bytes)
{
  return (stack->pointer - bytes) & stack->mask;
}

static uint64_t stack_linear(struct cpu *cpu, const struct frame_stack *stack, unsigned bytes, unsigned size)
{
  uint64_t offset = stack_offset(stack, bytes);
  bool is_good = stack->is_64 ? far_is_canonical(offset) && far_is_canonical(offset + size - 1)
                              : stack_holds(&stack->segment, offset, size);

  if (!is_good)
    fault_raise(cpu, EXCEPTION_SS, stack->error);
  return stack->is_64 ? offset : (stack->segment.base + offset) & 0xFFFFFFFF;
}

void frame_check(struct cpu *cpu, const struct frame_stack *stack, const struct frame *frame)
{
  for (unsigned i = 1; i <= frame->count; i++) {
    uint64_t linear = stack_linear(cpu, stack, i * frame->size, frame->size);

    if (stack->is_current)
      access_load_slow(cpu, SS, linear, frame->size, true);
    else
      access_check_write_system(cpu, linear, frame->size);
  }
}

void frame_mark(struct cpu *cpu, struct frame_stack *stack, struct descriptor *code)
{
  segment_mark_accessed(cpu, code);
  if (!stack || !stack->has_descriptor)
    return;
  segment_mark_accessed(cpu, &stack->descriptor);
  stack->segment.access = stack->descriptor.access;
}

void frame_write(struct cpu *cpu, struct frame_stack *stack, const struct frame *frame)
{
  for (unsigned i = 0; i < frame->count; i++) {
    uint64_t linear = stack_linear(cpu, stack, (i + 1) * frame->size, frame->size);

    if (stack->is_current)
      access_store_linear(cpu, SS, linear, frame->size, frame->values[i]);
    else
      access_store_system(cpu, linear, frame->size, frame->values[i]);
  }
  uint64_t pointer = stack_offset(stack, frame->count * frame->size);
  stack->pointer = stack->mask == 0xFFFF ? (stack->pointer & ~stack->mask) | pointer : pointer;
}

void frame_use(struct cpu *cpu, const struct frame_stack *stack)
{
  cpu->segment[SS] = stack->segment;
  cpu->r[RSP] = stack->pointer;
}

void frame_drop_segments(struct cpu *cpu, unsigned cpl)
{
  static const uint8_t numbers[] = {ES, DS, FS, GS};

  for (unsigned i = 0; i < sizeof(numbers); i++) {
    struct cpu_segment *s = &cpu->segment[numbers[i]];
    bool is_conforming = (s->access & (SEGMENT_CODE | SEGMENT_CONFORMING)) == (SEGMENT_CODE | SEGMENT_CONFORMING);

    if ((s->access & SEGMENT_S) && !is_conforming && SEGMENT_DPL(s->access) < cpl) {
      s->selector = 0; /* the base stays: FS and GS have one of their own in 64-bit mode */
      s->access = 0;
    }
  }
}
