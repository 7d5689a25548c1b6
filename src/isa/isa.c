/* SPDX-License-Identifier: Apache-2.0
 *
 * A few functions over Zydis. See isa.h.
 */
#include <assert.h>

#include "isa/isa.h"

#include "lastbranch/error.h"

static const struct {
  ZydisMachineMode mode;
  ZydisStackWidth width;
} modes[] = {
  [ISA_REAL] = {ZYDIS_MACHINE_MODE_REAL_16, ZYDIS_STACK_WIDTH_16},
  [ISA_PROTECTED_16] = {ZYDIS_MACHINE_MODE_LEGACY_16, ZYDIS_STACK_WIDTH_16},
  [ISA_PROTECTED_32] = {ZYDIS_MACHINE_MODE_LEGACY_32, ZYDIS_STACK_WIDTH_32},
  [ISA_COMPATIBLE_16] = {ZYDIS_MACHINE_MODE_LONG_COMPAT_16, ZYDIS_STACK_WIDTH_16},
  [ISA_COMPATIBLE_32] = {ZYDIS_MACHINE_MODE_LONG_COMPAT_32, ZYDIS_STACK_WIDTH_32},
  [ISA_64] = {ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64},
};

/* With REX.B and 32-bit addresses, Zydis 4.0 decodes SIB base 5 with mod 0 as R13D. Whatever REX.B is, it means no base
 * and a displacement (SDM vol. 2, table 2-3). */
static void repair_base(struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  bool has_no_base = code->raw.modrm.mod == 0 && code->raw.modrm.rm == 4 && code->raw.sib.base == 5 &&
                     (code->attributes & ZYDIS_ATTRIB_HAS_SIB) && code->address_width == 32;
  for (unsigned i = 0; has_no_base && i < code->operand_count; i++) {
    ZydisDecodedOperand *operand = &instruction->operands[i];
    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
      continue;
    operand->mem.base = ZYDIS_REGISTER_NONE;
    operand->mem.disp.has_displacement = ZYAN_TRUE;
    operand->mem.disp.value = code->raw.disp.value;
  }
}

int isa_decode(enum isa_mode mode, bool is_amd, const void *bytes, size_t size, struct isa_instruction *ret_instruction)
{
  ZydisDecoder decoder;

  assert((unsigned)mode < sizeof(modes) / sizeof(modes[0]));
  if (!ZYAN_SUCCESS(ZydisDecoderInit(&decoder, modes[mode].mode, modes[mode].width)))
    return LB_E_NO_INSTRUCTION;
  if (is_amd)
    ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_AMD_BRANCHES, ZYAN_TRUE);
  struct isa_instruction instruction;
  ZyanStatus status = ZydisDecoderDecodeFull(&decoder, bytes, size, &instruction.code, instruction.operands);
  if (status == ZYDIS_STATUS_NO_MORE_DATA)
    return size >= ISA_LENGTH_MAX ? LB_E_TOO_LONG : LB_E_TRUNCATED;
  if (status == ZYDIS_STATUS_INSTRUCTION_TOO_LONG)
    return LB_E_TOO_LONG;
  if (!ZYAN_SUCCESS(status))
    return LB_E_NO_INSTRUCTION;
  repair_base(&instruction);
  *ret_instruction = instruction;
  return instruction.code.length;
}

/* Interrupts, system calls and returns from them. */
static int far_kind(ZydisMnemonic mnemonic)
{
  switch (mnemonic) {
  case ZYDIS_MNEMONIC_INT:
    return LB_BRANCH_INT;
  case ZYDIS_MNEMONIC_INT3:
    return LB_BRANCH_INT3;
  case ZYDIS_MNEMONIC_INTO:
    return LB_BRANCH_INTO;
  case ZYDIS_MNEMONIC_IRET:
  case ZYDIS_MNEMONIC_IRETD:
  case ZYDIS_MNEMONIC_IRETQ:
    return LB_BRANCH_IRET;
  case ZYDIS_MNEMONIC_SYSCALL:
    return LB_BRANCH_SYSCALL;
  case ZYDIS_MNEMONIC_SYSRET:
    return LB_BRANCH_SYSRET;
  case ZYDIS_MNEMONIC_SYSENTER:
    return LB_BRANCH_SYSENTER;
  case ZYDIS_MNEMONIC_SYSEXIT:
    return LB_BRANCH_SYSEXIT;
  case ZYDIS_MNEMONIC_RSM:
    return LB_BRANCH_RSM;
  default:
    return -1;
  }
}

int isa_branch_kind(const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  bool is_far = code->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  bool is_relative = code->operand_count_visible && instruction->operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  if (code->meta.isa_ext == ZYDIS_ISA_EXT_RTM)
    return -1; /* XBEGIN, XEND, XABORT: the abort jumps, not the instruction */
  switch (code->meta.category) {
  case ZYDIS_CATEGORY_COND_BR:
    return LB_BRANCH_JCC;
  case ZYDIS_CATEGORY_CALL:
    return is_far ? LB_BRANCH_FAR_CALL : is_relative ? LB_BRANCH_NEAR_REL_CALL : LB_BRANCH_NEAR_IND_CALL;
  case ZYDIS_CATEGORY_UNCOND_BR:
    return is_far ? LB_BRANCH_FAR_JMP : is_relative ? LB_BRANCH_NEAR_REL_JMP : LB_BRANCH_NEAR_IND_JMP;
  case ZYDIS_CATEGORY_RET:
    if (code->mnemonic == ZYDIS_MNEMONIC_RET)
      return is_far ? LB_BRANCH_FAR_RET : LB_BRANCH_NEAR_RET;
    return far_kind(code->mnemonic);
  default:
    return far_kind(code->mnemonic);
  }
}

int isa_format(const struct isa_instruction *instruction, uint64_t address, char *text, size_t size)
{
  ZydisFormatter formatter;
  if (!ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) ||
      !ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &instruction->code, instruction->operands,
                                                    instruction->code.operand_count_visible, text, size, address,
                                                    NULL)))
    return LB_E_NO_INSTRUCTION;
  return 0;
}
