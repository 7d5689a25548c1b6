/* SPDX-License-Identifier: Apache-2.0
 *
 * x87 exceptions and status. See x87.h.
 */
#include "cpu/x87.h"

const struct x87_value x87_indefinite = {{0, 0, 0, 0, 0, 0, 0, 0xC0, 0xFF, 0xFF}};
const uint16_t x87_host_control = X87_CONTROL_DEFAULT;

void x87_deliver(struct cpu *cpu)
{
  if (cpu->cr0 & CR0_NE)
    fault_raise(cpu, EXCEPTION_MF, 0);
  /* The board makes IRQ 13 of it. A real processor would wait here for the interrupt or IGNNE#. This one continues, as
   * with IGNNE# asserted, so that a handler's own x87 instructions run. */
  cpu->bus.ferr(cpu->bus.data);
}

/* Stores the eleven variable bits of the opcode, from the instruction's bytes. */
static void note_opcode(struct cpu *cpu, const struct insn *insn)
{
  uint8_t bytes[16] = {0};

  cpu_peek(cpu, cpu->segment[CS].linear_base + insn->rip, bytes, insn->length < 15 ? insn->length : 15);
  for (unsigned i = 0; i + 1 < sizeof(bytes); i++)
    if ((bytes[i] & 0xF8) == 0xD8) {
      cpu->fpu.opcode = (uint16_t)((bytes[i] & 7) << 8 | bytes[i + 1]);
      return;
    }
}

bool x87_settle(struct cpu *cpu, const struct insn *insn, uint16_t host, unsigned conditions, unsigned blocking)
{
  struct fpu *fpu = &cpu->fpu;
  unsigned unmasked = host & ~fpu->control & X87_EXCEPTIONS;
  bool is_blocked = unmasked & blocking;

  if (is_blocked)
    conditions = X87_C1;
  fpu->status = (uint16_t)((fpu->status & ~conditions) | (host & (conditions | X87_EXCEPTIONS)));
  if (unmasked) {
    fpu->status |= X87_ES | X87_B;
    note_opcode(cpu, insn);
  }
  return !is_blocked;
}

static bool stack_fault(struct cpu *cpu, const struct insn *insn, unsigned c1)
{
  cpu->fpu.status |= X87_SF;
  return x87_settle(cpu, insn, (uint16_t)(X87_IE | c1), X87_C1, X87_IE);
}

bool x87_underflow(struct cpu *cpu, const struct insn *insn)
{
  return stack_fault(cpu, insn, 0);
}

bool x87_overflow(struct cpu *cpu, const struct insn *insn)
{
  return stack_fault(cpu, insn, X87_C1);
}

void x87_update_summary(struct fpu *fpu)
{
  fpu->status &= (uint16_t) ~(X87_ES | X87_B);
  if (fpu->status & ~fpu->control & X87_EXCEPTIONS)
    fpu->status |= X87_ES | X87_B;
}

void x87_init(struct fpu *fpu)
{
  fpu->control = X87_CONTROL_DEFAULT;
  fpu->status = 0;
  fpu->top = 0;
  fpu->tags = 0;
  fpu->opcode = fpu->instruction_selector = fpu->data_selector = 0;
  fpu->instruction = fpu->data = 0;
}

uint16_t x87_status(const struct fpu *fpu)
{
  return (uint16_t)((fpu->status & ~(7u << X87_TOP_SHIFT)) | (unsigned)(fpu->top & 7) << X87_TOP_SHIFT);
}

void x87_set_status(struct fpu *fpu, uint16_t status)
{
  fpu->top = status >> X87_TOP_SHIFT & 7;
  fpu->status = (uint16_t)(status & ~(7u << X87_TOP_SHIFT));
  x87_update_summary(fpu);
}

void x87_set_control(struct fpu *fpu, uint16_t control)
{
  fpu->control = (control & X87_CONTROL_VALID) | X87_CONTROL_FIXED;
  x87_update_summary(fpu);
}
