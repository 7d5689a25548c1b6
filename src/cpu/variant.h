/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers per form and size, made of one always-inline function. `call` is an expression in which `cpu` and `insn` are
 * the handler's parameters and `form` and `size` are constants:
 *
 *   FORMS_ANY(alu_add, alu_run(cpu, insn, form, size, long_way, ALU_ADD));
 *
 * makes twenty handlers and the chooser alu_add for them. A form that is not in the set has no handler.
 *
 * `long_way` is for functions that take a short way where they can (operand.h): the handler to go to where they cannot,
 * which is made of the same call with a `long_way` of NULL.
 */
#ifndef CPU_VARIANT_H
#define CPU_VARIANT_H

#include "cpu/instruction.h"

/* Sizes 1, 2, 4, 8 are columns 0 to 3; no other size gets out of the table. */
static inline unsigned size_column(unsigned size)
{
  return size >= 8 ? 3 : size >> 1;
}

#define VARIANT(name, the_form, the_size, call)                                                                        \
  static __attribute__((noinline)) const struct insn *name##_long(struct cpu *cpu, const struct insn *insn)            \
  {                                                                                                                    \
    enum { form = the_form, size = the_size };                                                                         \
    insn_handler *const long_way = NULL;                                                                               \
    (void)long_way;                                                                                                    \
    return call;                                                                                                       \
  }                                                                                                                    \
  static const struct insn *name(struct cpu *cpu, const struct insn *insn)                                             \
  {                                                                                                                    \
    enum { form = the_form, size = the_size };                                                                         \
    insn_handler *const long_way = name##_long;                                                                        \
    (void)long_way;                                                                                                    \
    return call;                                                                                                       \
  }

#define VARIANT_SIZES(name, the_form, call)                                                                            \
  VARIANT(name##_1, the_form, 1, call)                                                                                 \
  VARIANT(name##_2, the_form, 2, call)                                                                                 \
  VARIANT(name##_4, the_form, 4, call)                                                                                 \
  VARIANT(name##_8, the_form, 8, call)

#define VARIANT_ROW(name)                                                                                              \
  {                                                                                                                    \
    name##_1, name##_2, name##_4, name##_8                                                                             \
  }

#define VARIANT_CHOOSER(chooser, ...)                                                                                  \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[FORM_OTHER + 1][4] = {__VA_ARGS__};                                               \
    return table[insn->form][size_column(insn->size)];                                                                 \
  }                                                                                                                    \
  insn_chooser chooser

/* Two operands of any kind. */
#define FORMS_ANY(chooser, call)                                                                                       \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_reg_mem, FORM_REG_MEM, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_reg_imm, FORM_REG_IMM, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_imm, FORM_MEM_IMM, call)                                                                 \
  VARIANT_CHOOSER(chooser, [FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                            \
                  [FORM_REG_MEM] = VARIANT_ROW(chooser##_reg_mem), [FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg),    \
                  [FORM_REG_IMM] = VARIANT_ROW(chooser##_reg_imm), [FORM_MEM_IMM] = VARIANT_ROW(chooser##_mem_imm))

/* Register or memory changed by a register or an immediate. */
#define FORMS_MODIFY(chooser, call)                                                                                    \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_reg_imm, FORM_REG_IMM, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_imm, FORM_MEM_IMM, call)                                                                 \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg), [FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg),         \
    [FORM_REG_IMM] = VARIANT_ROW(chooser##_reg_imm), [FORM_MEM_IMM] = VARIANT_ROW(chooser##_mem_imm))

/* Register or memory changed by a register. */
#define FORMS_BY_REG(chooser, call)                                                                                    \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, call)                                                                 \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg), [FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg))

/* From a register or memory into a register. */
#define FORMS_TO_REG(chooser, call)                                                                                    \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_reg_mem, FORM_REG_MEM, call)                                                                 \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg), [FORM_REG_MEM] = VARIANT_ROW(chooser##_reg_mem))

/* One operand. */
#define FORMS_ONE(chooser, call)                                                                                       \
  VARIANT_SIZES(chooser##_reg, FORM_REG, call)                                                                         \
  VARIANT_SIZES(chooser##_mem, FORM_MEM, call)                                                                         \
  VARIANT_CHOOSER(chooser, [FORM_REG] = VARIANT_ROW(chooser##_reg), [FORM_MEM] = VARIANT_ROW(chooser##_mem))

/* One operand that may be an immediate: stack and branches, which have no size 1. */
#define FORMS_ONE_OR_IMM(chooser, call)                                                                                \
  VARIANT_SIZES(chooser##_reg, FORM_REG, call)                                                                         \
  VARIANT_SIZES(chooser##_mem, FORM_MEM, call)                                                                         \
  VARIANT_SIZES(chooser##_imm, FORM_IMM, call)                                                                         \
  VARIANT_CHOOSER(chooser, [FORM_REG] = VARIANT_ROW(chooser##_reg), [FORM_MEM] = VARIANT_ROW(chooser##_mem),           \
                  [FORM_IMM] = VARIANT_ROW(chooser##_imm))

/* The size alone matters. */
#define SIZES(chooser, call)                                                                                           \
  VARIANT_SIZES(chooser, FORM_NONE, call)                                                                              \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[4] = VARIANT_ROW(chooser);                                                        \
    return table[size_column(insn->size)];                                                                             \
  }                                                                                                                    \
  insn_chooser chooser

#endif
