/* SPDX-License-Identifier: Apache-2.0
 *
 * Single bits and counting bits: BT and related instructions, scans, BMI1 and BMI2, byte order, CRC32. SDM vol. 1,
 * 5.1.6 and 5.1.16.
 */
#include "cpu/operand.h"
#include "cpu/variant.h"

enum bit_operation { BIT_TEST, BIT_SET, BIT_RESET, BIT_COMPLEMENT };

ALWAYS_INLINE uint64_t bit_change(enum bit_operation operation, uint64_t value, uint64_t bit)
{
  switch (operation) {
  case BIT_SET:
    return value | bit;
  case BIT_RESET:
    return value & ~bit;
  case BIT_COMPLEMENT:
    return value ^ bit;
  default:
    return value;
  }
}

/* A bit string in memory: a register's offset is signed and counts from bit 0 of the operand, so it can reach other
 * operands before and after it. An immediate stays within the operand. */
ALWAYS_INLINE uint64_t bit_address(const struct cpu *cpu, const struct insn *insn, struct shape shape, uint64_t offset)
{
  uint64_t address = insn_address(cpu, insn);

  if (shape.form != FORM_MEM_REG)
    return address;
  uint64_t elements = (uint64_t)((int64_t)flags_extend(offset, shape.size) >> 3) & ~(uint64_t)(shape.size - 1);
  return (address + elements) & insn->address_mask;
}

/* Sets CF to the bit. The other flags stay. */
ALWAYS_INLINE const struct insn *bit_run(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                         enum bit_operation operation)
{
  struct place place = {NULL, 0};
  uint64_t offset = operand_second(cpu, insn, shape, NULL);
  uint64_t bit = UINT64_C(1) << (offset % (8 * shape.size));
  uint64_t value;

  if (form_is_memory(shape.form)) {
    unsigned access = operation == BIT_TEST ? ACCESS_READ : ACCESS_WRITE;
    uint64_t address = bit_address(cpu, insn, shape, offset);
    uint64_t linear = access_linear(cpu, insn->segment, address, shape.size, access);

    value = operation == BIT_TEST ? access_load_linear(cpu, insn->segment, linear, shape.size)
                                  : place_load(cpu, &place, insn->segment, linear, shape.size);
  } else {
    value = reg_get(cpu, insn->op[0], shape.size);
  }
  if (operation != BIT_TEST)
    operand_write(cpu, insn, shape, &place, bit_change(operation, value, bit));
  flags_set_cf(cpu, value & bit);
  return insn_next(cpu, insn);
}

FORMS_MODIFY(bit_bt, bit_run, BIT_TEST);
FORMS_MODIFY(bit_bts, bit_run, BIT_SET);
FORMS_MODIFY(bit_btr, bit_run, BIT_RESET);
FORMS_MODIFY(bit_btc, bit_run, BIT_COMPLEMENT);

/* ---- scans and counts ---- */

/* `value` is not 0. */
ALWAYS_INLINE unsigned bit_lowest(uint64_t value)
{
  return (unsigned)__builtin_ctzll(value);
}

ALWAYS_INLINE unsigned bit_highest(uint64_t value)
{
  return 63 - (unsigned)__builtin_clzll(value);
}

/* If the source is 0, the destination is unchanged: all hardware does this, and AMD's manual guarantees it. */
ALWAYS_INLINE const struct insn *bit_scan(struct cpu *cpu, const struct insn *insn, struct shape shape, bool is_forward)
{
  uint64_t value = operand_second(cpu, insn, shape, NULL);

  if (value)
    reg_set(cpu, insn->op[0], shape.size, is_forward ? bit_lowest(value) : bit_highest(value));
  flags_logic(cpu, value, shape.size);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *bit_count_zeros(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                                 bool is_trailing)
{
  uint64_t value = operand_second(cpu, insn, shape, NULL);
  unsigned bits = 8 * shape.size;
  unsigned zeros = !value ? bits : is_trailing ? bit_lowest(value) : bits - 1 - bit_highest(value);

  reg_set(cpu, insn->op[0], shape.size, zeros);
  flags_result(cpu, zeros, shape.size, !value, false, false);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *bit_count_ones(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t value = operand_second(cpu, insn, shape, NULL);

  reg_set(cpu, insn->op[0], shape.size, (uint64_t)__builtin_popcountll(value));
  flags_set_arithmetic(cpu, value ? 0 : FLAG_ZF); /* all others are cleared, PF too */
  return insn_next(cpu, insn);
}

FORMS_TO_REG(bit_bsf, bit_scan, true);
FORMS_TO_REG(bit_bsr, bit_scan, false);
FORMS_TO_REG(bit_tzcnt, bit_count_zeros, true);
FORMS_TO_REG(bit_lzcnt, bit_count_zeros, false);
FORMS_TO_REG(bit_popcnt, bit_count_ones);

/* ---- BMI1 and BMI2 ---- */

enum bit_lowest_operation { LOWEST_ISOLATE, LOWEST_MASK, LOWEST_RESET };

ALWAYS_INLINE const struct insn *bit_lowest_run(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                                enum bit_lowest_operation operation)
{
  uint64_t value = operand_second(cpu, insn, shape, NULL);
  uint64_t result = operation == LOWEST_ISOLATE ? value & (0 - value)
                    : operation == LOWEST_MASK  ? value ^ (value - 1)
                                                : value & (value - 1);

  reg_set(cpu, insn->op[0], shape.size, result);
  flags_result(cpu, result, shape.size, operation == LOWEST_ISOLATE ? value != 0 : value == 0, false, false);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *bit_and_not(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t result = ~reg_get(cpu, insn->op[1], shape.size) & operand_third(cpu, insn, shape.size);

  reg_set(cpu, insn->op[0], shape.size, result);
  flags_logic(cpu, result, shape.size);
  return insn_next(cpu, insn);
}

/* `count` bits from `start` on; the control word holds start in 7:0 and count in 15:8. */
ALWAYS_INLINE const struct insn *bit_extract(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t value = operand_second(cpu, insn, shape, NULL);
  uint64_t control = reg_get(cpu, insn->op[2], shape.size);
  unsigned start = control & 0xFF, count = control >> 8 & 0xFF;
  uint64_t result = start < 8 * shape.size ? value >> start : 0;

  if (count < 64)
    result &= (UINT64_C(1) << count) - 1;
  reg_set(cpu, insn->op[0], shape.size, result);
  flags_logic(cpu, result, shape.size);
  return insn_next(cpu, insn);
}

ALWAYS_INLINE const struct insn *bit_zero_high(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t value = operand_second(cpu, insn, shape, NULL);
  unsigned from = reg_get(cpu, insn->op[2], shape.size) & 0xFF;
  bool is_beyond = from >= 8 * shape.size;
  uint64_t result = is_beyond ? value : value & ((UINT64_C(1) << from) - 1);

  reg_set(cpu, insn->op[0], shape.size, result);
  flags_result(cpu, result, shape.size, is_beyond, false, false);
  return insn_next(cpu, insn);
}

/* Moves bits between the low bits and the positions that the mask selects. */
ALWAYS_INLINE const struct insn *bit_spread(struct cpu *cpu, const struct insn *insn, struct shape shape,
                                            bool is_deposit)
{
  uint64_t value = reg_get(cpu, insn->op[1], shape.size), mask = operand_third(cpu, insn, shape.size), result = 0;

  for (uint64_t low = 1; mask; low <<= 1, mask &= mask - 1) {
    uint64_t place = mask & (0 - mask);

    if (value & (is_deposit ? low : place))
      result |= is_deposit ? place : low;
  }
  reg_set(cpu, insn->op[0], shape.size, result);
  return insn_next(cpu, insn);
}

FORMS_TO_REG(bit_blsi, bit_lowest_run, LOWEST_ISOLATE);
FORMS_TO_REG(bit_blsmsk, bit_lowest_run, LOWEST_MASK);
FORMS_TO_REG(bit_blsr, bit_lowest_run, LOWEST_RESET);
FORMS_TO_REG(bit_bextr, bit_extract);
FORMS_TO_REG(bit_bzhi, bit_zero_high);
SIZES(bit_andn, bit_and_not);
SIZES(bit_pdep, bit_spread, true);
SIZES(bit_pext, bit_spread, false);

/* ---- byte order and checksum ---- */

/* For 16-bit operands the manual defines no result; hardware gives 0. */
ALWAYS_INLINE const struct insn *bit_swap(struct cpu *cpu, const struct insn *insn, struct shape shape)
{
  uint64_t value = reg_get(cpu, insn->op[0], shape.size);
  uint64_t swapped = shape.size < 4    ? 0
                     : shape.size == 4 ? __builtin_bswap32((uint32_t)value)
                                       : __builtin_bswap64(value);

  reg_set(cpu, insn->op[0], shape.size, swapped);
  return insn_next(cpu, insn);
}

SIZES(bit_bswap, bit_swap);

/* CRC-32C, with the polynomial 11EDC6F41h, its bits reversed; four bits at a time. */
static uint32_t crc_add(uint32_t crc, uint64_t value, unsigned size)
{
  static const uint32_t table[16] = {
    0x00000000, 0x105EC76F, 0x20BD8EDE, 0x30E349B1, 0x417B1DBC, 0x5125DAD3, 0x61C69362, 0x7198540D,
    0x82F63B78, 0x92A8FC17, 0xA24BB5A6, 0xB21572C9, 0xC38D26C4, 0xD3D3E1AB, 0xE330A81A, 0xF36E6F75,
  };

  for (unsigned i = 0; i < 2 * size; i++)
    crc = crc >> 4 ^ table[(crc ^ value >> 4 * i) & 15];
  return crc;
}

/* The source has its own size: 8 to 64 bits are added to a 32-bit sum. The upper half of a 64-bit destination is
 * cleared. */
const struct insn *bit_crc32(struct cpu *cpu, const struct insn *insn)
{
  unsigned size = insn->size2;
  uint64_t value = insn->form == FORM_REG_MEM ? insn_load(cpu, insn, size) : reg_get(cpu, insn->op[1], size);
  uint32_t crc = (uint32_t)reg_get(cpu, insn->op[0], 4);

  reg_set(cpu, insn->op[0], 4, crc_add(crc, value, size));
  return insn_next(cpu, insn);
}
