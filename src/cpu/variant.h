/* SPDX-License-Identifier: Apache-2.0
 *
 * Handlers per form and size, made of one always-inline function. `call` is an expression that may use five names,
 * which the macros bind and nothing else does: `cpu` and `insn` are the handler's parameters; `form`, `size` and `way`
 * are constants. So
 *
 *   FORMS_ANY(alu_add, alu_run(cpu, insn, form, size, way, ALU_ADD));
 *
 * makes a handler for each form, size and reach, such as
 *
 *   static const struct insn *alu_add_reg_mem_4_flat(struct cpu *cpu, const struct insn *insn)
 *   {
 *     enum { form = FORM_REG_MEM, size = 4 };
 *     const struct way way = {alu_add_reg_mem_4_long, REACH_FLAT};
 *     return alu_run(cpu, insn, form, size, way, ALU_ADD);
 *   }
 *
 * and the chooser alu_add, which finds the handler of a decoded instruction in a table. A form that is not in the set
 * has no handler. `way` is for functions that take a short way where they can (operand.h): each handler has its long
 * way, and the most frequent memory operands have a function for each reach, too.
 */
#ifndef CPU_VARIANT_H
#define CPU_VARIANT_H

#include "cpu/instruction.h"
#include "cpu/operand.h"

/* Sizes 1, 2, 4, 8 are columns 0 to 3; no other size gets out of the table. */
static inline unsigned size_column(unsigned size)
{
  return size >= 8 ? 3 : size >> 1;
}

#define VARIANT_WAY(name, the_form, the_size, the_reach, the_other, call)                                              \
  static const struct insn *name(struct cpu *cpu, const struct insn *insn)                                             \
  {                                                                                                                    \
    enum { form = the_form, size = the_size };                                                                         \
    const struct way way = {the_other, the_reach};                                                                     \
    (void)way;                                                                                                         \
    return call;                                                                                                       \
  }

#define VARIANT(name, the_form, the_size, call)                                                                        \
  VARIANT_WAY(name##_long, the_form, the_size, REACH_ANY, NULL, call)                                                  \
  VARIANT_WAY(name, the_form, the_size, REACH_ANY, name##_long, call)

#define VARIANT_SIZES(name, the_form, call)                                                                            \
  VARIANT(name##_1, the_form, 1, call)                                                                                 \
  VARIANT(name##_2, the_form, 2, call)                                                                                 \
  VARIANT(name##_4, the_form, 4, call)                                                                                 \
  VARIANT(name##_8, the_form, 8, call)

#define VARIANT_FLAT(name, the_form, the_size, call)                                                                   \
  VARIANT_WAY(name##_flat, the_form, the_size, REACH_FLAT, name##_long, call)                                          \
  VARIANT_WAY(name##_indexed, the_form, the_size, REACH_INDEXED, name##_long, call)

/* The same for each reach. */
#define VARIANT_REACHES(name, the_form, call)                                                                          \
  VARIANT_SIZES(name, the_form, call)                                                                                  \
  VARIANT_FLAT(name##_1, the_form, 1, call)                                                                            \
  VARIANT_FLAT(name##_2, the_form, 2, call)                                                                            \
  VARIANT_FLAT(name##_4, the_form, 4, call)                                                                            \
  VARIANT_FLAT(name##_8, the_form, 8, call)

#define VARIANT_ROW(name)                                                                                              \
  {                                                                                                                    \
    name##_1, name##_2, name##_4, name##_8                                                                             \
  }

#define VARIANT_ROWS(form, name)                                                                                       \
  [REACH_ANY][form] = VARIANT_ROW(name),                                                                               \
  [REACH_FLAT][form] = {name##_1_flat, name##_2_flat, name##_4_flat, name##_8_flat},                                   \
  [REACH_INDEXED][form] = {name##_1_indexed, name##_2_indexed, name##_4_indexed, name##_8_indexed}

#define VARIANT_CHOOSER(chooser, ...)                                                                                  \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[INSN_REACHES][FORM_OTHER + 1][4] = {__VA_ARGS__};                                 \
    unsigned column = size_column(insn->size);                                                                         \
    insn_handler *handler = table[insn->reach][insn->form][column];                                                    \
    return handler ? handler : table[REACH_ANY][insn->form][column];                                                   \
  }                                                                                                                    \
  insn_chooser chooser

/* Two operands of any kind. */
#define FORMS_ANY(chooser, call)                                                                                       \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_REACHES(chooser##_reg_mem, FORM_REG_MEM, call)                                                               \
  VARIANT_REACHES(chooser##_mem_reg, FORM_MEM_REG, call)                                                               \
  VARIANT_SIZES(chooser##_reg_imm, FORM_REG_IMM, call)                                                                 \
  VARIANT_REACHES(chooser##_mem_imm, FORM_MEM_IMM, call)                                                               \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                               \
    VARIANT_ROWS(FORM_REG_MEM, chooser##_reg_mem),                                                                     \
    VARIANT_ROWS(FORM_MEM_REG, chooser##_mem_reg), [REACH_ANY][FORM_REG_IMM] = VARIANT_ROW(chooser##_reg_imm),         \
    VARIANT_ROWS(FORM_MEM_IMM, chooser##_mem_imm))

/* Register or memory changed by a register or an immediate. */
#define FORMS_MODIFY(chooser, call)                                                                                    \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_reg_imm, FORM_REG_IMM, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_imm, FORM_MEM_IMM, call)                                                                 \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  [REACH_ANY][FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg),                                          \
                  [REACH_ANY][FORM_REG_IMM] = VARIANT_ROW(chooser##_reg_imm),                                          \
                  [REACH_ANY][FORM_MEM_IMM] = VARIANT_ROW(chooser##_mem_imm))

/* Register or memory changed by a register. */
#define FORMS_BY_REG(chooser, call)                                                                                    \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, call)                                                                 \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  [REACH_ANY][FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg))

/* From a register or memory into a register. */
#define FORMS_TO_REG(chooser, call)                                                                                    \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_SIZES(chooser##_reg_mem, FORM_REG_MEM, call)                                                                 \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  [REACH_ANY][FORM_REG_MEM] = VARIANT_ROW(chooser##_reg_mem))

/* The same for each reach. */
#define FORMS_LOAD(chooser, call)                                                                                      \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, call)                                                                 \
  VARIANT_REACHES(chooser##_reg_mem, FORM_REG_MEM, call)                                                               \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  VARIANT_ROWS(FORM_REG_MEM, chooser##_reg_mem))

/* One operand. */
#define FORMS_ONE(chooser, call)                                                                                       \
  VARIANT_SIZES(chooser##_reg, FORM_REG, call)                                                                         \
  VARIANT_SIZES(chooser##_mem, FORM_MEM, call)                                                                         \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [REACH_ANY][FORM_REG] = VARIANT_ROW(chooser##_reg), [REACH_ANY][FORM_MEM] = VARIANT_ROW(chooser##_mem))

/* The stack is flat for 32 and 64 bits only. */
#define VARIANT_STACK(name, the_form, call)                                                                            \
  VARIANT_SIZES(name, the_form, call)                                                                                  \
  VARIANT_WAY(name##_4_flat, the_form, 4, REACH_FLAT, name##_4_long, call)                                             \
  VARIANT_WAY(name##_8_flat, the_form, 8, REACH_FLAT, name##_8_long, call)

#define VARIANT_STACK_ROWS(form, name)                                                                                 \
  [REACH_ANY][form] = VARIANT_ROW(name), [REACH_FLAT][form] = {NULL, NULL, name##_4_flat, name##_8_flat}

/* One operand, which may be an immediate, and the stack, by reach; there is no size 1. */
#define FORMS_STACK(chooser, call)                                                                                     \
  VARIANT_STACK(chooser##_reg, FORM_REG, call)                                                                         \
  VARIANT_STACK(chooser##_mem, FORM_MEM, call)                                                                         \
  VARIANT_STACK(chooser##_imm, FORM_IMM, call)                                                                         \
  VARIANT_WAY(chooser##_mem_4_indexed, FORM_MEM, 4, REACH_INDEXED, chooser##_mem_4_long, call)                         \
  VARIANT_WAY(chooser##_mem_8_indexed, FORM_MEM, 8, REACH_INDEXED, chooser##_mem_8_long, call)                         \
  VARIANT_CHOOSER(chooser, VARIANT_STACK_ROWS(FORM_REG, chooser##_reg), VARIANT_STACK_ROWS(FORM_MEM, chooser##_mem),   \
                  VARIANT_STACK_ROWS(FORM_IMM, chooser##_imm),                                                         \
                  [REACH_INDEXED][FORM_MEM] = {NULL, NULL, chooser##_mem_4_indexed, chooser##_mem_8_indexed})

/* The size alone matters. */
#define SIZES(chooser, call)                                                                                           \
  VARIANT_SIZES(chooser, FORM_NONE, call)                                                                              \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[4] = VARIANT_ROW(chooser);                                                        \
    return table[size_column(insn->size)];                                                                             \
  }                                                                                                                    \
  insn_chooser chooser

/* The size, and the reach of the stack. */
#define SIZES_STACK(chooser, call)                                                                                     \
  VARIANT_STACK(chooser, FORM_NONE, call)                                                                              \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[INSN_REACHES][FORM_NONE + 1][4] = {VARIANT_STACK_ROWS(FORM_NONE, chooser)};       \
    unsigned column = size_column(insn->size);                                                                         \
    insn_handler *handler = table[insn->reach][FORM_NONE][column];                                                     \
    return handler ? handler : table[REACH_ANY][FORM_NONE][column];                                                    \
  }                                                                                                                    \
  insn_chooser chooser

#endif
