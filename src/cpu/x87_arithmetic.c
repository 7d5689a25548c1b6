/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers for x87_arithmetic.def. Each handler checks that the register is not empty, runs the host's instruction on
 * copies, handles the exceptions, and only then changes the result and the stack.
 */
#include "cpu/instruction.h"
#include "cpu/x87.h"

/* The host's instruction on `a`, with a second register or memory operand. Returns its status word. */
typedef uint16_t host_unary(struct x87_value *a, uint16_t control);
typedef uint16_t host_binary(struct x87_value *a, const struct x87_value *b, uint16_t control);
typedef uint16_t host_memory(struct x87_value *a, const uint64_t *operand, uint16_t control);

/* ---- engines ---- */

/* ST(destination) = ST(destination) op ST(source) */
static const struct insn *arithmetic_run(struct cpu *cpu, const struct insn *insn, host_binary *run, bool does_pop)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  unsigned destination = insn->op[0], source = insn->op[1];
  struct x87_value a = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, destination) || x87_is_empty(fpu, source)) {
    is_done = x87_underflow(cpu, insn);
  } else {
    a = x87_get(fpu, destination);
    struct x87_value b = x87_get(fpu, source);
    is_done = x87_settle(cpu, insn, run(&a, &b, fpu->control), X87_C1, X87_BEFORE);
  }
  if (!is_done)
    return insn + 1;
  x87_set(fpu, destination, &a);
  if (does_pop)
    x87_pop(fpu);
  return insn + 1;
}

static const struct insn *arithmetic_memory(struct cpu *cpu, const struct insn *insn, host_memory *run, unsigned size)
{
  x87_begin(cpu);
  uint64_t operand = insn_load(cpu, insn, size);
  x87_note_memory(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  struct x87_value a = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, 0)) {
    is_done = x87_underflow(cpu, insn);
  } else {
    a = x87_get(fpu, 0);
    is_done = x87_settle(cpu, insn, run(&a, &operand, fpu->control), X87_C1, X87_BEFORE);
  }
  if (is_done)
    x87_set(fpu, 0, &a);
  return insn + 1;
}

/* C2, where an instruction has it, is 0 after a fault. */
static const struct insn *unary_run(struct cpu *cpu, const struct insn *insn, host_unary *run, unsigned conditions)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  fpu->status &= (uint16_t) ~(conditions & X87_C2);
  struct x87_value a = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, 0)) {
    is_done = x87_underflow(cpu, insn);
  } else {
    a = x87_get(fpu, 0);
    is_done = x87_settle(cpu, insn, run(&a, fpu->control), conditions, X87_BEFORE);
  }
  if (is_done)
    x87_set(fpu, 0, &a);
  return insn + 1;
}

/* ST(0) = ST(0) op ST(1); or ST(1) = ST(0) op ST(1) and pop, after which that result is the new top. */
static const struct insn *binary_run(struct cpu *cpu, const struct insn *insn, host_binary *run, bool does_pop)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  struct x87_value a = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, 0) || x87_is_empty(fpu, 1)) {
    is_done = x87_underflow(cpu, insn);
  } else {
    a = x87_get(fpu, 0);
    struct x87_value b = x87_get(fpu, 1);
    is_done = x87_settle(cpu, insn, run(&a, &b, fpu->control), X87_C1, X87_BEFORE);
  }
  if (!is_done)
    return insn + 1;
  if (does_pop)
    x87_pop(fpu);
  x87_set(fpu, 0, &a);
  return insn + 1;
}

/* The operand of FLDENV: here a control word, condition codes and an empty stack. */
struct host_environment {
  uint32_t control, status, tags, unused[4];
};

static const struct insn *remainder_run(struct cpu *cpu, const struct insn *insn,
                                        uint16_t (*run)(struct x87_value *a, const struct x87_value *b,
                                                        const struct host_environment *start))
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  fpu->status &= (uint16_t)~X87_C2;
  struct x87_value a = x87_indefinite;
  bool is_done;
  if (x87_is_empty(fpu, 0) || x87_is_empty(fpu, 1)) {
    is_done = x87_underflow(cpu, insn);
  } else {
    a = x87_get(fpu, 0);
    struct x87_value b = x87_get(fpu, 1);
    struct host_environment start = {fpu->control, fpu->status & X87_CONDITIONS, 0xFFFF, {0}};
    is_done = x87_settle(cpu, insn, run(&a, &b, &start), X87_CONDITIONS, X87_BEFORE);
  }
  if (is_done)
    x87_set(fpu, 0, &a);
  return insn + 1;
}

/* Two results: `b` replaces ST(0) and `a` is pushed. An operand out of range (C2) leaves everything unchanged. */
static const struct insn *pushing_run(struct cpu *cpu, const struct insn *insn,
                                      uint16_t (*run)(struct x87_value *a, struct x87_value *b, uint16_t control),
                                      unsigned conditions)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  fpu->status &= (uint16_t) ~(conditions & X87_C2);
  struct x87_value a = x87_indefinite, b = x87_indefinite;
  bool is_done;
  uint16_t status = 0;
  if (x87_is_empty(fpu, 0)) {
    is_done = x87_underflow(cpu, insn);
  } else if (!x87_is_empty(fpu, 7)) {
    is_done = x87_overflow(cpu, insn);
  } else {
    a = x87_get(fpu, 0);
    status = run(&a, &b, fpu->control);
    is_done = x87_settle(cpu, insn, status, conditions, X87_BEFORE);
  }
  if (!is_done || status & conditions & X87_C2)
    return insn + 1;
  x87_set(fpu, 0, &b);
  x87_push(fpu, &a);
  return insn + 1;
}

static const struct insn *constant_run(struct cpu *cpu, const struct insn *insn, host_unary *run)
{
  x87_begin(cpu);
  x87_note(cpu, insn);
  struct fpu *fpu = &cpu->fpu;
  struct x87_value a = x87_indefinite;
  bool is_done =
    x87_is_empty(fpu, 7) ? x87_settle(cpu, insn, run(&a, fpu->control), X87_C1, 0) : x87_overflow(cpu, insn);
  if (is_done)
    x87_push(fpu, &a);
  return insn + 1;
}

/* ---- one set of handlers per row ---- */

#define HOST_BINARY(name, code)                                                                                        \
  static uint16_t name(struct x87_value *a, const struct x87_value *b, uint16_t control)                               \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[b]\n\tfldt %[a]\n\t" X87_BEFORE_ASM code X87_AFTER_ASM "fstpt %[a]\n\tfstp %%st(0)"                \
            : [a] "+m"(*a), [status] "=m"(status)                                                                      \
            : [b] "m"(*b), [control] "m"(control), [host_control] "m"(x87_host_control)                                \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

#define HOST_MEMORY(name, code)                                                                                        \
  static uint16_t name(struct x87_value *a, const uint64_t *operand, uint16_t control)                                 \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[a]\n\t" X87_BEFORE_ASM code " %[operand]" X87_AFTER_ASM "fstpt %[a]"                               \
            : [a] "+m"(*a), [status] "=m"(status)                                                                      \
            : [operand] "m"(*operand), [control] "m"(control), [host_control] "m"(x87_host_control)                    \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

/* With NaNs and similar operands a remainder leaves the condition codes unchanged, so the host must start with the
 * guest's. */
#define HOST_REMAINDER(name, code)                                                                                     \
  static uint16_t name(struct x87_value *a, const struct x87_value *b, const struct host_environment *start)           \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldenv %[start]\n\tfldt %[b]\n\tfldt %[a]\n\t" code X87_AFTER_ASM "fstpt %[a]\n\tfninit"                  \
            : [a] "+m"(*a), [status] "=m"(status)                                                                      \
            : [b] "m"(*b), [start] "m"(*start), [host_control] "m"(x87_host_control)                                   \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }

#define ARITHMETIC(name, name_pop, name_integer, host, host_pop, host_integer)                                         \
  HOST_BINARY(host_##host, #host " %%st(1), %%st")                                                                     \
  HOST_MEMORY(host_##host##_4, #host "s")                                                                              \
  HOST_MEMORY(host_##host##_8, #host "l")                                                                              \
  HOST_MEMORY(host_##host_integer##_2, #host_integer "s")                                                              \
  HOST_MEMORY(host_##host_integer##_4, #host_integer "l")                                                              \
  static HANDLER(host##_reg, arithmetic_run, host_##host, false);                                                      \
  static HANDLER(host##_4, arithmetic_memory, host_##host##_4, 4);                                                     \
  static HANDLER(host##_8, arithmetic_memory, host_##host##_8, 8);                                                     \
  static HANDLER(host_integer##_2, arithmetic_memory, host_##host_integer##_2, 2);                                     \
  static HANDLER(host_integer##_4, arithmetic_memory, host_##host_integer##_4, 4);                                     \
  HANDLER(x87_##host_pop, arithmetic_run, host_##host, true);                                                          \
  insn_handler *x87_##host(const struct insn *insn)                                                                    \
  {                                                                                                                    \
    return insn->form != FORM_MEM ? host##_reg : insn->memory_size == 4 ? host##_4 : host##_8;                         \
  }                                                                                                                    \
  insn_handler *x87_##host_integer(const struct insn *insn)                                                            \
  {                                                                                                                    \
    return insn->memory_size == 2 ? host_integer##_2 : host_integer##_4;                                               \
  }

#define UNARY(name, host, conditions)                                                                                  \
  static uint16_t host_##host(struct x87_value *a, uint16_t control)                                                   \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[a]\n\t" X87_BEFORE_ASM #host X87_AFTER_ASM "fstpt %[a]"                                            \
            : [a] "+m"(*a), [status] "=m"(status)                                                                      \
            : [control] "m"(control), [host_control] "m"(x87_host_control)                                             \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }                                                                                                                    \
  HANDLER(x87_##host, unary_run, host_##host, conditions);

#define BINARY(name, host)                                                                                             \
  HOST_BINARY(host_##host, #host)                                                                                      \
  HANDLER(x87_##host, binary_run, host_##host, false);

#define REMAINDER(name, host)                                                                                          \
  HOST_REMAINDER(host_##host, #host)                                                                                   \
  HANDLER(x87_##host, remainder_run, host_##host);

/* Exceptions decide whether these move the host's stack, so FNINIT cleans it up. */
#define BINARY_POP(name, host)                                                                                         \
  static uint16_t host_##host(struct x87_value *a, const struct x87_value *b, uint16_t control)                        \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[b]\n\tfldt %[a]\n\t" X87_BEFORE_ASM #host X87_AFTER_ASM "fstpt %[a]\n\tfninit"                     \
            : [a] "+m"(*a), [status] "=m"(status)                                                                      \
            : [b] "m"(*b), [control] "m"(control), [host_control] "m"(x87_host_control)                                \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }                                                                                                                    \
  HANDLER(x87_##host, binary_run, host_##host, true);

#define PUSHING(name, host, conditions)                                                                                \
  static uint16_t host_##host(struct x87_value *a, struct x87_value *b, uint16_t control)                              \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__("fldt %[a]\n\t" X87_BEFORE_ASM #host X87_AFTER_ASM "fstpt %[a]\n\tfstpt %[b]\n\tfninit"                    \
            : [a] "+m"(*a), [b] "=m"(*b), [status] "=m"(status)                                                        \
            : [control] "m"(control), [host_control] "m"(x87_host_control)                                             \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }                                                                                                                    \
  HANDLER(x87_##host, pushing_run, host_##host, conditions);

#define CONSTANT(name, host)                                                                                           \
  static uint16_t host_##host(struct x87_value *a, uint16_t control)                                                   \
  {                                                                                                                    \
    uint16_t status;                                                                                                   \
    __asm__(X87_BEFORE_ASM #host X87_AFTER_ASM "fstpt %[a]"                                                            \
            : [a] "=m"(*a), [status] "=m"(status)                                                                      \
            : [control] "m"(control), [host_control] "m"(x87_host_control)                                             \
            : X87_CLOBBERS);                                                                                           \
    return status;                                                                                                     \
  }                                                                                                                    \
  HANDLER(x87_##host, constant_run, host_##host);

#include "cpu/x87_arithmetic.def"
