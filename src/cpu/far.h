/* SPDX-License-Identifier: Apache-2.0
 *
 * Declarations that the far transfers share: gates, code segments that are about to be entered, stacks that are about
 * to be switched to, task switches. SDM vol. 3 chapters 5 to 7. Everything named `_check` or `_fetch` may raise a fault
 * and changes nothing; functions that commit cannot fault.
 */
#ifndef CPU_FAR_H
#define CPU_FAR_H

#include "cpu/fault.h"
#include "cpu/insn.h"
#include "cpu/segment.h"

/* The far forms of JMP, CALL and RET, which share their mnemonics with the near ones. */
insn_handler far_jump, far_call, far_return;

/* Types of system descriptors: SDM vol. 3, table 3-2. Bit 1 of a TSS' type says busy, bit 3 of any says 32 bits. */
enum {
  SYSTEM_TSS_16 = 1,
  SYSTEM_LDT = 2,
  SYSTEM_TSS_16_BUSY = 3,
  SYSTEM_CALL_GATE_16 = 4,
  SYSTEM_TASK_GATE = 5,
  SYSTEM_INTERRUPT_GATE_16 = 6,
  SYSTEM_TRAP_GATE_16 = 7,
  SYSTEM_TSS_32 = 9,
  SYSTEM_TSS_32_BUSY = 11,
  SYSTEM_CALL_GATE_32 = 12,
  SYSTEM_INTERRUPT_GATE_32 = 14,
  SYSTEM_TRAP_GATE_32 = 15,
  SYSTEM_BUSY = 2,
  SYSTEM_32 = 8,
};

static inline bool selector_is_null(uint16_t selector)
{
  return (selector & ~3u) == 0;
}

static inline bool far_is_canonical(uint64_t address)
{
  return (uint64_t)((int64_t)(address << 16) >> 16) == address;
}

static inline bool far_is_long(const struct cpu *cpu) /* IA-32e mode */
{
  return cpu->efer & EFER_LMA;
}

/* ---- gates ---- */

struct gate {
  uint64_t offset;
  uint16_t selector;
  uint8_t type;       /* SYSTEM_ */
  uint8_t size;       /* of what it pushes: 2, 4 or 8 bytes */
  uint8_t parameters; /* call gates outside IA-32e mode */
  uint8_t stack;      /* IST of IA-32e mode's interrupt gates */
};

struct gate gate_read(const struct cpu *cpu, const struct descriptor *descriptor);

/* ---- code segments ---- */

static inline bool code_is(const struct descriptor *descriptor)
{
  return (descriptor->access & (SEGMENT_S | SEGMENT_CODE)) == (SEGMENT_S | SEGMENT_CODE);
}

static inline bool code_is_conforming(const struct descriptor *descriptor)
{
  return descriptor->access & SEGMENT_CONFORMING;
}

/* Code that runs in 64-bit mode. */
static inline bool code_is_64(const struct cpu *cpu, const struct descriptor *descriptor)
{
  return far_is_long(cpu) && (descriptor->access & SEGMENT_L);
}

/* #GP(0) when the offset is outside the limit, or not canonical for 64-bit code. */
void code_check_offset(struct cpu *cpu, const struct descriptor *code, uint64_t offset);

/* Fetches the code segment of a gate, which must be: not null, in its table, code, not less privileged, 64-bit in
 * IA-32e mode, present. */
struct descriptor code_fetch_by_gate(struct cpu *cpu, uint16_t selector);

/* Fetches the code segment that RETF or IRET returns to, by the selector's RPL. */
struct descriptor code_fetch_to_return(struct cpu *cpu, uint16_t selector);

/* Loads CS; its RPL becomes the new privilege level. */
void code_set(struct cpu *cpu, uint16_t selector, const struct descriptor *code, unsigned cpl);

/* ---- stacks that are not in use yet ---- */

struct frame_stack {
  struct cpu_segment segment; /* SS as it will be */
  struct descriptor descriptor;
  uint64_t pointer;
  uint64_t mask;       /* of the pointer: by SS.B, or all ones for 64-bit code */
  uint32_t error;      /* of #SS when there is no room */
  bool is_64;          /* no limit, and addresses must be canonical */
  bool is_current;     /* of the current privilege level: accessed with its rights, else as the system */
  bool has_descriptor; /* whose accessed bit is to be set */
};

/* Values in the order in which they are pushed. */
struct frame {
  uint64_t values[48];
  unsigned count;
  unsigned size; /* of each, in bytes */
};

static inline void frame_add(struct frame *frame, uint64_t value)
{
  frame->values[frame->count++] = value;
}

/* The stack in use, for code that stays at this privilege level. */
struct frame_stack frame_stack_current(struct cpu *cpu, bool is_64);
/* The stack of a more privileged level, from the TSS; in IA-32e mode also by IST. Raises #TS, #SS. */
struct frame_stack frame_stack_inner(struct cpu *cpu, unsigned dpl);
struct frame_stack frame_stack_inner_64(struct cpu *cpu, unsigned dpl, unsigned ist);
/* The stack that RETF or IRET to privilege level `rpl` switches to. Raises #GP, #SS. */
struct frame_stack frame_stack_outer(struct cpu *cpu, uint16_t selector, uint64_t pointer, unsigned rpl, bool is_64);

/* Raises #SS or #PF when the frame cannot be written. */
void frame_check(struct cpu *cpu, const struct frame_stack *stack, const struct frame *frame);
/* Sets the accessed bits of the descriptors that are about to be loaded; this is the last step that may fault (a GDT
 * that cannot be written). */
void frame_mark(struct cpu *cpu, struct frame_stack *stack, struct descriptor *code);
/* frame_write writes a frame that was checked. frame_use then switches to the stack. */
void frame_write(struct cpu *cpu, struct frame_stack *stack, const struct frame *frame);
void frame_use(struct cpu *cpu, const struct frame_stack *stack);

/* Makes those of ES, DS, FS and GS null that the new, less privileged level may not use. */
void frame_drop_segments(struct cpu *cpu, unsigned cpl);

/* ---- tasks ---- */

enum task_cause { TASK_JUMP, TASK_CALL, TASK_RETURN, TASK_EVENT };

/* Fetches the TSS that a JMP, CALL or task gate names. It must be available (for IRET: busy) and present, else
 * `exception` is raised. */
struct descriptor task_fetch(struct cpu *cpu, uint16_t selector, enum task_cause cause);

/* Leaves the task, saving its state with `eip` and `eflags` in the TSS, and enters the other. `kind` is
 * LB_BRANCH_TASK_SWITCH, or LB_BRANCH_KINDS for #DB, which is not recorded. Faults after the point of no return belong
 * to the new task. */
const struct insn *task_switch(struct cpu *cpu, uint16_t selector, struct descriptor *tss, enum task_cause cause,
                               uint64_t eip, uint32_t eflags, enum lb_branch_kind kind);

#endif
