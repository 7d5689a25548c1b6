/* SPDX-License-Identifier: Apache-2.0
 *
 * x87 comparisons and FXAM: their results are C0, C2 and C3, or ZF, PF and CF. SDM vol. 1, 8.1.3.1 and 8.3.6.
 */
#include "cpu/flags.h"
#include "cpu/instruction.h"
#include "cpu/x87.h"

/* Condition codes and flags are set even by a comparison whose exception is unmasked, although the stack does not move.
 * Processors do this, contrary to the manual. The host compares with everything masked. */
typedef uint16_t host_compare(const struct x87_value *a, const struct x87_value *b, uint16_t control);
typedef uint16_t host_compare_memory(const struct x87_value *a, const uint64_t *operand, uint16_t control);

#define HOST_COMPARE(host)                                                                                             \
  static uint16_t host_##host(const struct x87_value *a, const struct x87_value *b, uint16_t control)                  \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[b]\n\tfldt %[a]\n\t" X87_BEFORE_ASM #host " %%st(1)" X87_AFTER_ASM "fstp %%st(0)\n\tfstp %%st(0)"  \
            : [status] "=m"(status)                                                                                    \
            : [a] "m"(*a), [b] "m"(*b), [control] "m"(control), [host_control] "m"(x87_host_control)                   \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

/* `code` may name the memory operand or not. */
#define HOST_COMPARE_MEMORY(name, code)                                                                                \
  static uint16_t host_##name(const struct x87_value *a, const uint64_t *operand, uint16_t control)                    \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[a]\n\t" X87_BEFORE_ASM code X87_AFTER_ASM "fstp %%st(0)"                                           \
            : [status] "=m"(status)                                                                                    \
            : [a] "m"(*a), [operand] "m"(*operand), [control] "m"(control), [host_control] "m"(x87_host_control)       \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

HOST_COMPARE(fcom)
HOST_COMPARE(fucom)
HOST_COMPARE_MEMORY(fcom_4, "fcoms %[operand]")
HOST_COMPARE_MEMORY(fcom_8, "fcoml %[operand]")
HOST_COMPARE_MEMORY(ficom_2, "ficoms %[operand]")
HOST_COMPARE_MEMORY(ficom_4, "ficoml %[operand]")
HOST_COMPARE_MEMORY(ftst, "ftst")
HOST_COMPARE_MEMORY(fxam, "fxam")

/* ST(0) is listed as the first operand of some of these, and not of others. */
static unsigned last_register(const struct insn *insn)
{
  return insn->op[insn->operands == 2 ? 1 : 0];
}

/* ---- into the condition codes ---- */

static bool compare_settle(struct cpu *cpu, const struct insn *insn, uint16_t status)
{
  const unsigned answer = X87_C0 | X87_C2 | X87_C3;

  cpu->fpu.status = (uint16_t)((cpu->fpu.status & ~answer) | (status & answer));
  return x87_settle(cpu, insn, status, X87_C1, X87_BEFORE);
}

/* Ends a comparison: moves the stack, if it may. */
static void compare_end(struct cpu *cpu, bool is_done, bool was_empty, unsigned pops)
{
  if (was_empty)
    cpu->fpu.status |= X87_C0 | X87_C2 | X87_C3; /* unordered */
  while (is_done && pops--)
    x87_pop(&cpu->fpu);
}

/* With two pops, ST(1) is the other operand. */
static const struct insn *compare_reg(struct cpu *cpu, const struct insn *insn, host_compare *run, unsigned pops)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  unsigned other = pops == 2 ? 1 : last_register(insn);
  bool is_empty = x87_is_empty(fpu, 0) || x87_is_empty(fpu, other), is_done;
  if (is_empty) {
    is_done = x87_underflow(cpu, insn);
  } else {
    struct x87_value a = x87_get(fpu, 0), b = x87_get(fpu, other);
    is_done = compare_settle(cpu, insn, run(&a, &b, fpu->control | X87_EXCEPTIONS));
  }
  compare_end(cpu, is_done, is_empty, pops);
  return insn + 1;
}

/* With `size` 0 there is no operand. */
static const struct insn *compare_memory(struct cpu *cpu, const struct insn *insn, host_compare_memory *run,
                                         unsigned size, unsigned pops)
{
  x87_begin(cpu);
  uint64_t operand = size ? insn_load(cpu, insn, size) : 0;
  if (size)
    x87_note_memory(cpu, insn);
  else
    x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  bool is_empty = x87_is_empty(fpu, 0), is_done;
  if (is_empty) {
    is_done = x87_underflow(cpu, insn);
  } else {
    struct x87_value a = x87_get(fpu, 0);
    is_done = compare_settle(cpu, insn, run(&a, &operand, fpu->control | X87_EXCEPTIONS));
  }
  compare_end(cpu, is_done, is_empty, pops);
  return insn + 1;
}

#define FCOM_FORMS(name, pops)                                                                                         \
  static HANDLER(name##_reg, compare_reg, host_fcom, pops);                                                            \
  static HANDLER(name##_4, compare_memory, host_fcom_4, 4, pops);                                                      \
  static HANDLER(name##_8, compare_memory, host_fcom_8, 8, pops);                                                      \
  insn_handler *x87_##name(const struct insn *insn)                                                                    \
  {                                                                                                                    \
    return insn->form != FORM_MEM ? name##_reg : insn->memory_size == 4 ? name##_4 : name##_8;                         \
  }

#define FICOM_FORMS(name, pops)                                                                                        \
  static HANDLER(name##_2, compare_memory, host_ficom_2, 2, pops);                                                     \
  static HANDLER(name##_4, compare_memory, host_ficom_4, 4, pops);                                                     \
  insn_handler *x87_##name(const struct insn *insn)                                                                    \
  {                                                                                                                    \
    return insn->memory_size == 2 ? name##_2 : name##_4;                                                               \
  }

FCOM_FORMS(fcom, 0)
FCOM_FORMS(fcomp, 1)
FICOM_FORMS(ficom, 0)
FICOM_FORMS(ficomp, 1)
HANDLER(x87_fcompp, compare_reg, host_fcom, 2);
HANDLER(x87_fucom, compare_reg, host_fucom, 0);
HANDLER(x87_fucomp, compare_reg, host_fucom, 1);
HANDLER(x87_fucompp, compare_reg, host_fucom, 2);
HANDLER(x87_ftst, compare_memory, host_ftst, 0, 0);

/* An empty register is not a fault here but a result: C3 and C0, with the sign of the register's contents. */
const struct insn *x87_fxam(struct cpu *cpu, const struct insn *insn)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  struct x87_value a = x87_get(fpu, 0);
  uint64_t none = 0;
  uint16_t status = host_fxam(&a, &none, fpu->control);
  if (x87_is_empty(fpu, 0))
    status = (uint16_t)((status & X87_C1) | X87_C3 | X87_C0);
  x87_settle(cpu, insn, status, X87_CONDITIONS, 0);
  return insn + 1;
}

/* ---- into the flags ---- */

static const struct insn *compare_flags(struct cpu *cpu, const struct insn *insn, host_compare *run, bool does_pop)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  uint16_t status = X87_C0 | X87_C2 | X87_C3;
  bool is_done;
  if (x87_is_empty(fpu, 0) || x87_is_empty(fpu, last_register(insn))) {
    is_done = x87_underflow(cpu, insn);
  } else {
    struct x87_value a = x87_get(fpu, 0), b = x87_get(fpu, last_register(insn));
    status = run(&a, &b, fpu->control | X87_EXCEPTIONS);
    is_done = x87_settle(cpu, insn, status, X87_C1, X87_BEFORE);
  }
  flags_set_arithmetic(cpu, (status & X87_C0 ? FLAG_CF : 0u) | (status & X87_C2 ? FLAG_PF : 0u) |
                              (status & X87_C3 ? FLAG_ZF : 0u));
  if (does_pop && is_done)
    x87_pop(fpu);
  return insn + 1;
}

HANDLER(x87_fcomi, compare_flags, host_fcom, false);
HANDLER(x87_fcomip, compare_flags, host_fcom, true);
HANDLER(x87_fucomi, compare_flags, host_fucom, false);
HANDLER(x87_fucomip, compare_flags, host_fucom, true);
