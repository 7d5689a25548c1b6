/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that the x87 files share: the register stack, exceptions, and how the host's x87 unit computes for the guest.
 * The host gets the guest's control word, including unmasked exceptions. Such an exception only waits in the host's
 * status word until FNCLEX, and its effect on the operands is exactly what the guest must see. SDM vol. 1, chapter 8.
 */
#ifndef CPU_X87_H
#define CPU_X87_H

#include "cpu/fault.h"
#include "cpu/insn.h"

enum {
  X87_IE = 1u << 0,
  X87_DE = 1u << 1,
  X87_ZE = 1u << 2,
  X87_OE = 1u << 3,
  X87_UE = 1u << 4,
  X87_PE = 1u << 5,
  X87_EXCEPTIONS = 0x3Fu,
  X87_SF = 1u << 6,
  X87_ES = 1u << 7,
  X87_C0 = 1u << 8,
  X87_C1 = 1u << 9,
  X87_C2 = 1u << 10,
  X87_TOP_SHIFT = 11,
  X87_C3 = 1u << 14,
  X87_B = 1u << 15,
  X87_CONDITIONS = X87_C0 | X87_C1 | X87_C2 | X87_C3,
  /* Exceptions that are found before the operation: if unmasked, they leave the operands unchanged. The others come
   * with a result. */
  X87_BEFORE = X87_IE | X87_DE | X87_ZE,
  X87_CONTROL_DEFAULT = 0x37F,
  X87_CONTROL_FIXED = 0x40,
  X87_CONTROL_VALID = 0x1F3F,
};

/* A register's 80 bits, as the host loads and stores them. */
struct x87_value {
  uint8_t bytes[10];
};

extern const struct x87_value x87_indefinite; /* the quiet NaN of masked responses */

/* ---- before and after ---- */

/* #MF, or FERR# to the board: SDM vol. 1, 8.7. */
void x87_deliver(struct cpu *cpu);

static inline void x87_check_pending(struct cpu *cpu)
{
  if (__builtin_expect(cpu->fpu.status & X87_ES, 0))
    x87_deliver(cpu);
}

/* Instructions that do not wait check only this. */
static inline void x87_check_available(struct cpu *cpu)
{
  if (__builtin_expect(cpu->cr0 & (CR0_EM | CR0_TS), 0))
    fault_raise(cpu, EXCEPTION_NM, 0);
}

static inline void x87_begin(struct cpu *cpu)
{
  x87_check_available(cpu);
  x87_check_pending(cpu);
}

/* Notes the instruction as the last one, once it has its operands. The opcode is noted only with an unmasked exception,
 * as on processors since the Pentium 4 (SDM vol. 1, 8.1.9.1). */
static inline void x87_note(struct cpu *cpu, const struct insn *insn)
{
  cpu->fpu.instruction = insn->rip;
  cpu->fpu.instruction_selector = cpu->segment[CS].selector;
}

static inline void x87_note_memory(struct cpu *cpu, const struct insn *insn)
{
  x87_note(cpu, insn);
  cpu->fpu.data = insn_address(cpu, insn);
  cpu->fpu.data_selector = cpu->segment[insn->segment].selector;
}

/* Merges the host's status word: all exceptions, and those of C0 to C3 that are in `conditions`. Returns false if an
 * unmasked exception in `blocking` keeps the result from being stored and the stack from moving. */
bool x87_settle(struct cpu *cpu, const struct insn *insn, uint16_t host, unsigned conditions, unsigned blocking);

/* Called when a register is empty (underflow) or full (overflow) that must not be. Return true if that is masked: the
 * indefinite is then stored in place of the result. */
bool x87_underflow(struct cpu *cpu, const struct insn *insn);
bool x87_overflow(struct cpu *cpu, const struct insn *insn);

/* Updates ES and B from flags and masks. */
void x87_update_summary(struct fpu *fpu);
/* The state after FNINIT. */
void x87_init(struct fpu *fpu);
/* Get and set the status word with TOP. */
uint16_t x87_status(const struct fpu *fpu);
void x87_set_status(struct fpu *fpu, uint16_t status);
void x87_set_control(struct fpu *fpu, uint16_t control);

/* ---- stack ---- */

static inline unsigned x87_number(const struct fpu *fpu, unsigned i)
{
  return (fpu->top + i) & 7;
}

static inline bool x87_is_empty(const struct fpu *fpu, unsigned i)
{
  return !(fpu->tags >> x87_number(fpu, i) & 1);
}

static inline struct x87_value x87_get(const struct fpu *fpu, unsigned i)
{
  struct x87_value value;

  memcpy(value.bytes, fpu->st[x87_number(fpu, i)], sizeof(value.bytes));
  return value;
}

static inline void x87_set(struct fpu *fpu, unsigned i, const struct x87_value *value)
{
  memcpy(fpu->st[x87_number(fpu, i)], value->bytes, sizeof(value->bytes));
  fpu->tags |= (uint8_t)(1u << x87_number(fpu, i));
}

static inline void x87_push(struct fpu *fpu, const struct x87_value *value)
{
  fpu->top = (fpu->top - 1) & 7;
  x87_set(fpu, 0, value);
}

static inline void x87_free(struct fpu *fpu, unsigned i)
{
  fpu->tags &= (uint8_t) ~(1u << x87_number(fpu, i));
}

static inline void x87_pop(struct fpu *fpu)
{
  x87_free(fpu, 0);
  fpu->top = (fpu->top + 1) & 7;
}

/* ---- the host's unit ---- */

extern const uint16_t x87_host_control;

/* An operation is one asm statement. It loads the operands, sets the guest's control word, runs the operation, stores
 * its status and restores the host's control word. */
#define X87_BEFORE_ASM "fnclex\n\tfldcw %[control]\n\t" /* flags that the host left are not the guest's */
#define X87_AFTER_ASM "\n\tfnstsw %[status]\n\tfnclex\n\tfldcw %[host_control]\n\t"
#define X87_CLOBBERS "st", "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"

#endif
