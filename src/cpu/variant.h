/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes one handler per form, size and reach of always-inline functions. Such a function takes the processor, the
 * instruction, a `struct shape` (operand.h), whose members are constants, and up to two constants of its own:
 *
 *   FORMS_ANY(alu_add, alu_run, ALU_ADD);
 *
 * defines a handler for each combination, such as this one, for ADD of a 32-bit register with flat memory:
 *
 *   static const struct insn *alu_add_reg_mem_4_flat(struct cpu *cpu, const struct insn *insn)
 *   {
 *     return alu_run(cpu, insn, (struct shape){FORM_REG_MEM, 4, REACH_FLAT, alu_add_reg_mem_4_slow}, ALU_ADD);
 *   }
 *
 * and the chooser, which finds the handler of a decoded instruction in a table:
 *
 *   insn_handler *alu_add(const struct insn *insn);
 *
 * The macros use nothing but their arguments. A form that is not in the set has no handler. Each handler has a slow
 * path (operand.h); the most frequent memory operands have a fast path for each reach.
 */
#ifndef CPU_VARIANT_H
#define CPU_VARIANT_H

#include "cpu/instruction.h"
#include "cpu/operand.h"

/* Sizes 1, 2, 4, 8 are columns 0 to 3; any other size stays inside the table, too. */
static inline unsigned size_column(unsigned size)
{
  return size >= 8 ? 3 : size >> 1;
}

/* Calls function(cpu, insn, shape), or function(cpu, insn, shape, ...) if more arguments follow the function. */
#define VARIANT_CALL(cpu, insn, shape, ...)                                                                            \
  VARIANT_FOURTH(__VA_ARGS__, VARIANT_CALL_MORE, VARIANT_CALL_MORE, VARIANT_CALL_PLAIN, )(cpu, insn, shape, __VA_ARGS__)
#define VARIANT_FOURTH(first, second, third, fourth, ...) fourth
#define VARIANT_CALL_PLAIN(cpu, insn, shape, function) function(cpu, insn, shape)
#define VARIANT_CALL_MORE(cpu, insn, shape, function, ...) function(cpu, insn, shape, __VA_ARGS__)

/* One handler. The last arguments are the function and its constants, here and below. */
#define VARIANT_HANDLER(name, form, size, reach, slow, ...)                                                            \
  static const struct insn *name(struct cpu *cpu, const struct insn *insn)                                             \
  {                                                                                                                    \
    return VARIANT_CALL(cpu, insn, ((struct shape){form, size, reach, slow}), __VA_ARGS__);                            \
  }

#define VARIANT(name, form, size, ...)                                                                                 \
  VARIANT_HANDLER(name##_slow, form, size, REACH_ANY, NULL, __VA_ARGS__)                                               \
  VARIANT_HANDLER(name, form, size, REACH_ANY, name##_slow, __VA_ARGS__)

#define VARIANT_SIZES(name, form, ...)                                                                                 \
  VARIANT(name##_1, form, 1, __VA_ARGS__)                                                                              \
  VARIANT(name##_2, form, 2, __VA_ARGS__)                                                                              \
  VARIANT(name##_4, form, 4, __VA_ARGS__)                                                                              \
  VARIANT(name##_8, form, 8, __VA_ARGS__)

#define VARIANT_FLAT(name, form, size, ...)                                                                            \
  VARIANT_HANDLER(name##_flat, form, size, REACH_FLAT, name##_slow, __VA_ARGS__)                                       \
  VARIANT_HANDLER(name##_indexed, form, size, REACH_INDEXED, name##_slow, __VA_ARGS__)

/* The same for each reach. */
#define VARIANT_REACHES(name, form, ...)                                                                               \
  VARIANT_SIZES(name, form, __VA_ARGS__)                                                                               \
  VARIANT_FLAT(name##_1, form, 1, __VA_ARGS__)                                                                         \
  VARIANT_FLAT(name##_2, form, 2, __VA_ARGS__)                                                                         \
  VARIANT_FLAT(name##_4, form, 4, __VA_ARGS__)                                                                         \
  VARIANT_FLAT(name##_8, form, 8, __VA_ARGS__)

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
#define FORMS_ANY(chooser, ...)                                                                                        \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, __VA_ARGS__)                                                          \
  VARIANT_REACHES(chooser##_reg_mem, FORM_REG_MEM, __VA_ARGS__)                                                        \
  VARIANT_REACHES(chooser##_mem_reg, FORM_MEM_REG, __VA_ARGS__)                                                        \
  VARIANT_SIZES(chooser##_reg_imm, FORM_REG_IMM, __VA_ARGS__)                                                          \
  VARIANT_REACHES(chooser##_mem_imm, FORM_MEM_IMM, __VA_ARGS__)                                                        \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                               \
    VARIANT_ROWS(FORM_REG_MEM, chooser##_reg_mem),                                                                     \
    VARIANT_ROWS(FORM_MEM_REG, chooser##_mem_reg), [REACH_ANY][FORM_REG_IMM] = VARIANT_ROW(chooser##_reg_imm),         \
    VARIANT_ROWS(FORM_MEM_IMM, chooser##_mem_imm))

/* Register or memory changed by a register or an immediate. */
#define FORMS_MODIFY(chooser, ...)                                                                                     \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, __VA_ARGS__)                                                          \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, __VA_ARGS__)                                                          \
  VARIANT_SIZES(chooser##_reg_imm, FORM_REG_IMM, __VA_ARGS__)                                                          \
  VARIANT_SIZES(chooser##_mem_imm, FORM_MEM_IMM, __VA_ARGS__)                                                          \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  [REACH_ANY][FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg),                                          \
                  [REACH_ANY][FORM_REG_IMM] = VARIANT_ROW(chooser##_reg_imm),                                          \
                  [REACH_ANY][FORM_MEM_IMM] = VARIANT_ROW(chooser##_mem_imm))

/* Register or memory changed by a register. */
#define FORMS_BY_REG(chooser, ...)                                                                                     \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, __VA_ARGS__)                                                          \
  VARIANT_SIZES(chooser##_mem_reg, FORM_MEM_REG, __VA_ARGS__)                                                          \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  [REACH_ANY][FORM_MEM_REG] = VARIANT_ROW(chooser##_mem_reg))

/* From a register or memory into a register. */
#define FORMS_TO_REG(chooser, ...)                                                                                     \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, __VA_ARGS__)                                                          \
  VARIANT_SIZES(chooser##_reg_mem, FORM_REG_MEM, __VA_ARGS__)                                                          \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  [REACH_ANY][FORM_REG_MEM] = VARIANT_ROW(chooser##_reg_mem))

/* The same for each reach. */
#define FORMS_LOAD(chooser, ...)                                                                                       \
  VARIANT_SIZES(chooser##_reg_reg, FORM_REG_REG, __VA_ARGS__)                                                          \
  VARIANT_REACHES(chooser##_reg_mem, FORM_REG_MEM, __VA_ARGS__)                                                        \
  VARIANT_CHOOSER(chooser, [REACH_ANY][FORM_REG_REG] = VARIANT_ROW(chooser##_reg_reg),                                 \
                  VARIANT_ROWS(FORM_REG_MEM, chooser##_reg_mem))

/* One operand. */
#define FORMS_ONE(chooser, ...)                                                                                        \
  VARIANT_SIZES(chooser##_reg, FORM_REG, __VA_ARGS__)                                                                  \
  VARIANT_SIZES(chooser##_mem, FORM_MEM, __VA_ARGS__)                                                                  \
  VARIANT_CHOOSER(                                                                                                     \
    chooser, [REACH_ANY][FORM_REG] = VARIANT_ROW(chooser##_reg), [REACH_ANY][FORM_MEM] = VARIANT_ROW(chooser##_mem))

/* The stack is flat for 32 and 64 bits only. */
#define VARIANT_STACK(name, form, ...)                                                                                 \
  VARIANT_SIZES(name, form, __VA_ARGS__)                                                                               \
  VARIANT_HANDLER(name##_4_flat, form, 4, REACH_FLAT, name##_4_slow, __VA_ARGS__)                                      \
  VARIANT_HANDLER(name##_8_flat, form, 8, REACH_FLAT, name##_8_slow, __VA_ARGS__)

#define VARIANT_STACK_ROWS(form, name)                                                                                 \
  [REACH_ANY][form] = VARIANT_ROW(name), [REACH_FLAT][form] = {NULL, NULL, name##_4_flat, name##_8_flat}

/* One operand, which may be an immediate, and the stack, by reach; there is no size 1. */
#define FORMS_STACK(chooser, ...)                                                                                      \
  VARIANT_STACK(chooser##_reg, FORM_REG, __VA_ARGS__)                                                                  \
  VARIANT_STACK(chooser##_mem, FORM_MEM, __VA_ARGS__)                                                                  \
  VARIANT_STACK(chooser##_imm, FORM_IMM, __VA_ARGS__)                                                                  \
  VARIANT_HANDLER(chooser##_mem_4_indexed, FORM_MEM, 4, REACH_INDEXED, chooser##_mem_4_slow, __VA_ARGS__)              \
  VARIANT_HANDLER(chooser##_mem_8_indexed, FORM_MEM, 8, REACH_INDEXED, chooser##_mem_8_slow, __VA_ARGS__)              \
  VARIANT_CHOOSER(chooser, VARIANT_STACK_ROWS(FORM_REG, chooser##_reg), VARIANT_STACK_ROWS(FORM_MEM, chooser##_mem),   \
                  VARIANT_STACK_ROWS(FORM_IMM, chooser##_imm),                                                         \
                  [REACH_INDEXED][FORM_MEM] = {NULL, NULL, chooser##_mem_4_indexed, chooser##_mem_8_indexed})

/* The size alone matters. */
#define SIZES(chooser, ...)                                                                                            \
  VARIANT_SIZES(chooser, FORM_NONE, __VA_ARGS__)                                                                       \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[4] = VARIANT_ROW(chooser);                                                        \
    return table[size_column(insn->size)];                                                                             \
  }                                                                                                                    \
  insn_chooser chooser

/* The size, and the reach of the stack. */
#define SIZES_STACK(chooser, ...)                                                                                      \
  VARIANT_STACK(chooser, FORM_NONE, __VA_ARGS__)                                                                       \
  insn_handler *chooser(const struct insn *insn)                                                                       \
  {                                                                                                                    \
    static insn_handler *const table[INSN_REACHES][FORM_NONE + 1][4] = {VARIANT_STACK_ROWS(FORM_NONE, chooser)};       \
    unsigned column = size_column(insn->size);                                                                         \
    insn_handler *handler = table[insn->reach][FORM_NONE][column];                                                     \
    return handler ? handler : table[REACH_ANY][FORM_NONE][column];                                                    \
  }                                                                                                                    \
  insn_chooser chooser

#endif
