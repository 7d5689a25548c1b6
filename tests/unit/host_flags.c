/* SPDX-License-Identifier: Apache-2.0
 *
 * Which flags are worth comparing after a snippet: those that no instruction left undefined (host_undefined.def).
 */
#include "host_flags.h"

#include "cpu/cpu.h"

struct row {
  uint32_t flags;
  bool is_shift;
};

static const struct row table[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define UNDEFINED(name, undefined) [ZYDIS_MNEMONIC_##name] = {.flags = (undefined)},
#define UNDEFINED_SHIFT(name, undefined) [ZYDIS_MNEMONIC_##name] = {.flags = (undefined), .is_shift = true},
#include "host_undefined.def"
#undef UNDEFINED
#undef UNDEFINED_SHIFT
};

/* The count, if the bytes say it, else -1. Of SHLD and SHRD it is the third operand. */
static int shift_count(const struct isa_instruction *instruction)
{
  unsigned last = instruction->code.operand_count_visible - 1u;

  const ZydisDecodedOperand *operand = &instruction->operands[last];
  if (last == 0)
    return 1; /* the short form */
  if (operand->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
    return (int)(operand->imm.value.u & (instruction->operands[0].size == 64 ? 63 : 31));
  return -1;
}

/* SHL and SHR by the operand's width or more leave CF undefined, too. */
static uint32_t shift_undefined(const struct isa_instruction *instruction, uint32_t flags)
{
  int count = shift_count(instruction);
  unsigned width = instruction->operands[0].size;

  ZydisMnemonic mnemonic = instruction->code.mnemonic;
  bool loses_carry = mnemonic == ZYDIS_MNEMONIC_SHL || mnemonic == ZYDIS_MNEMONIC_SHR;
  if (count == 0)
    return 0;
  if (count == 1)
    return flags & ~(uint32_t)FLAG_OF;
  if (loses_carry && width < 32 && (count < 0 || (unsigned)count >= width))
    flags |= FLAG_CF;
  return flags;
}

uint32_t host_flags_undefined(const struct isa_instruction *instruction)
{
  const struct row *row = &table[instruction->code.mnemonic];

  return row->is_shift ? shift_undefined(instruction, row->flags) : row->flags;
}

uint32_t host_flags_undefined_by_count(ZydisMnemonic mnemonic, unsigned count, unsigned width)
{
  const struct row *row = &table[mnemonic];
  uint32_t flags = row->flags;

  count &= width == 64 ? 63 : 31;
  if (!row->is_shift)
    return flags;
  if (count == 0)
    return 0;
  if (count == 1)
    return flags & ~(uint32_t)FLAG_OF;
  if ((mnemonic == ZYDIS_MNEMONIC_SHL || mnemonic == ZYDIS_MNEMONIC_SHR) && count >= width)
    flags |= FLAG_CF;
  return flags;
}

/* What it certainly writes: not a shift, whose count may be 0, nor a string instruction that may not happen at all. */
static uint32_t flags_written(const struct isa_instruction *instruction)
{
  const ZydisAccessedFlags *flags = instruction->code.cpu_flags;
  const ZydisInstructionAttributes repeats = ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE;
  if (!flags || table[instruction->code.mnemonic].is_shift || instruction->code.attributes & repeats)
    return 0;
  return (uint32_t)(flags->modified | flags->set_0 | flags->set_1);
}

uint32_t host_flags_left_undefined(const uint8_t *code, const uint8_t *end, unsigned bits)
{
  uint32_t undefined = 0;
  bool has_branch = false;
  struct isa_instruction instruction;

  while (code < end) {
    int length = isa_decode(bits == 32 ? ISA_COMPATIBLE_32 : ISA_64, false, code, (size_t)(end - code), &instruction);

    if (length <= 0)
      break; /* one that is there to fault */
    has_branch |= isa_branch_kind(&instruction) >= 0;
    if (!has_branch) /* else the order is not that of the bytes */
      undefined &= ~flags_written(&instruction);
    undefined |= host_flags_undefined(&instruction);
    code += length;
  }
  return undefined;
}
