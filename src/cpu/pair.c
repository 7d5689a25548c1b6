/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs of instructions: see pair.h. Only the first half can fault. In that case, and whenever its operand cannot be
 * accessed by the fast path, its own handler executes it alone.
 */
#include "cpu/pair.h"

#include <Zydis/Zydis.h>

#include "cpu/transfer.h"
#include "cpu/variant.h"

/* ---- the handlers ---- */

/* The conditions by opcode (SDM vol. 1, appendix B), after a comparison of two numbers of `size` bytes. */
ALWAYS_INLINE bool pair_compares(uint64_t a, uint64_t b, unsigned size, unsigned code)
{
  int64_t signed_a = (int64_t)flags_extend(a, size), signed_b = (int64_t)flags_extend(b, size);

  switch (code) {
  case 0x2:
    return a < b;
  case 0x3:
    return a >= b;
  case 0x4:
    return a == b;
  case 0x5:
    return a != b;
  case 0x6:
    return a <= b;
  case 0x7:
    return a > b;
  case 0xC:
    return signed_a < signed_b;
  case 0xD:
    return signed_a >= signed_b;
  case 0xE:
    return signed_a <= signed_b;
  default:
    return signed_a > signed_b;
  }
}

/* After a bit test: CF and OF are 0. */
ALWAYS_INLINE bool pair_tests(uint64_t result, unsigned size, unsigned code)
{
  int64_t number = (int64_t)flags_extend(result, size);

  switch (code) {
  case 0x4:
    return number == 0;
  case 0x5:
    return number != 0;
  case 0x8:
    return number < 0;
  case 0x9:
    return number >= 0;
  case 0xE:
    return number <= 0;
  default:
    return number > 0;
  }
}

/* Executes the first half alone. */
static const struct insn *pair_first(struct cpu *cpu, const struct insn *insn)
{
  return instruction_handler(insn)(cpu, insn);
}

ALWAYS_INLINE const struct insn *pair_run(struct cpu *cpu, const struct insn *insn, struct shape shape, bool is_test,
                                          unsigned code)
{
  struct place place;

  if (!operand_find(cpu, insn, shape, ACCESS_READ, &place))
    return shape.slow(cpu, insn);
  uint64_t b = operand_second(cpu, insn, shape, &place) & size_mask(shape.size);
  uint64_t a = operand_first(cpu, insn, shape, &place);
  if (is_test)
    flags_logic(cpu, a & b, shape.size);
  else
    flags_whole(cpu, a, b, a - b, false, shape.size);
  cpu->at = insn + 1;
  return transfer_conditional(cpu, insn + 1,
                              is_test ? pair_tests(a & b, shape.size, code) : pair_compares(a, b, shape.size, code));
}

#define PAIR_SIZES(name, form, reach, is_test, code)                                                                   \
  VARIANT_HANDLER(name##_1, form, 1, reach, pair_first, pair_run, is_test, code)                                       \
  VARIANT_HANDLER(name##_4, form, 4, reach, pair_first, pair_run, is_test, code)                                       \
  VARIANT_HANDLER(name##_8, form, 8, reach, pair_first, pair_run, is_test, code)

#define PAIR_FORMS(name, is_test, code)                                                                                \
  PAIR_SIZES(name##_reg_reg, FORM_REG_REG, REACH_FLAT, is_test, code)                                                  \
  PAIR_SIZES(name##_reg_imm, FORM_REG_IMM, REACH_FLAT, is_test, code)                                                  \
  PAIR_SIZES(name##_mem_reg, FORM_MEM_REG, REACH_FLAT, is_test, code)                                                  \
  PAIR_SIZES(name##_mem_imm, FORM_MEM_IMM, REACH_FLAT, is_test, code)

#define PAIR_FORM_LOAD(name, code)                                                                                     \
  PAIR_SIZES(name##_reg_mem, FORM_REG_MEM, REACH_FLAT, false, code)                                                    \
  PAIR_SIZES(name##_mem_reg_indexed, FORM_MEM_REG, REACH_INDEXED, false, code)                                         \
  PAIR_SIZES(name##_mem_imm_indexed, FORM_MEM_IMM, REACH_INDEXED, false, code)                                         \
  PAIR_SIZES(name##_reg_mem_indexed, FORM_REG_MEM, REACH_INDEXED, false, code)

/* Each condition that has a handler of its own: X(code, name). */
#define PAIR_COMPARISONS(X)                                                                                            \
  X(0x2, b) X(0x3, nb) X(0x4, z) X(0x5, nz) X(0x6, be) X(0x7, nbe) X(0xC, l) X(0xD, nl) X(0xE, le) X(0xF, nle)
#define PAIR_TESTS(X) X(0x4, z) X(0x5, nz) X(0x8, s) X(0x9, ns) X(0xE, le) X(0xF, nle)

#define PAIR_COMPARE(code, name) PAIR_FORMS(cmp_##name, false, code) PAIR_FORM_LOAD(cmp_##name, code)
#define PAIR_TEST(code, name) PAIR_FORMS(test_##name, true, code)
PAIR_COMPARISONS(PAIR_COMPARE)
PAIR_TESTS(PAIR_TEST)

/* ---- choosing ---- */

/* Indexed by the second half's condition, the first half's operands, and its size: 1, 4, 8. */
typedef insn_handler *const pair_table[16][INSN_REACHES][FORM_OTHER + 1][3];

#define PAIR_ROW(name)                                                                                                 \
  {                                                                                                                    \
    name##_1, name##_4, name##_8                                                                                       \
  }
#define PAIR_ROWS(name)                                                                                                \
  [REACH_FLAT] = {[FORM_REG_REG] = PAIR_ROW(name##_reg_reg),                                                           \
                  [FORM_REG_IMM] = PAIR_ROW(name##_reg_imm),                                                           \
                  [FORM_MEM_REG] = PAIR_ROW(name##_mem_reg),                                                           \
                  [FORM_MEM_IMM] = PAIR_ROW(name##_mem_imm)}
#define PAIR_ROWS_COMPARE(code, name)                                                                                  \
  [code] = {[REACH_FLAT] = {[FORM_REG_REG] = PAIR_ROW(cmp_##name##_reg_reg),                                           \
                            [FORM_REG_IMM] = PAIR_ROW(cmp_##name##_reg_imm),                                           \
                            [FORM_MEM_REG] = PAIR_ROW(cmp_##name##_mem_reg),                                           \
                            [FORM_MEM_IMM] = PAIR_ROW(cmp_##name##_mem_imm),                                           \
                            [FORM_REG_MEM] = PAIR_ROW(cmp_##name##_reg_mem)},                                          \
            [REACH_INDEXED] = {[FORM_MEM_REG] = PAIR_ROW(cmp_##name##_mem_reg_indexed),                                \
                               [FORM_MEM_IMM] = PAIR_ROW(cmp_##name##_mem_imm_indexed),                                \
                               [FORM_REG_MEM] = PAIR_ROW(cmp_##name##_reg_mem_indexed)}},
#define PAIR_ROWS_TEST(code, name) [code] = {PAIR_ROWS(test_##name)},

static pair_table pair_comparisons = {PAIR_COMPARISONS(PAIR_ROWS_COMPARE)};
static pair_table pair_bit_tests = {PAIR_TESTS(PAIR_ROWS_TEST)};

/* The code of a conditional jump; -1 for anything else. */
static int jump_code(const struct insn *insn)
{
  switch (insn->mnemonic) {
#define CONDITION(code, upper, name)                                                                                   \
  case ZYDIS_MNEMONIC_J##upper:                                                                                        \
    return code;
#include "cpu/condition.def"
#undef CONDITION
  default:
    return -1;
  }
}

insn_handler *pair_handler(const struct insn *insn)
{
  static const int8_t columns[9] = {-1, 0, -1, -1, 1, -1, -1, -1, 2};
  bool is_test = insn->mnemonic == ZYDIS_MNEMONIC_TEST;
  int code = jump_code(insn + 1);
  int column = insn->size <= 8 ? columns[insn->size] : -1;

  if ((!is_test && insn->mnemonic != ZYDIS_MNEMONIC_CMP) || code < 0 || column < 0)
    return NULL;
  bool is_of_registers = insn->form == FORM_REG_REG || insn->form == FORM_REG_IMM;
  unsigned reach = is_of_registers ? REACH_FLAT : insn->reach;
  return (is_test ? pair_bit_tests : pair_comparisons)[code][reach][insn->form][column];
}
