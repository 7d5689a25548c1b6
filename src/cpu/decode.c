/* SPDX-License-Identifier: Apache-2.0
 *
 * Decoding, done once for each instruction of a block. Zydis decodes the bytes, this file converts the result to the
 * form that handlers need, and the groups' tables name the handler.
 */
#include "cpu/decode.h"

#include "cpu/fault.h"
#include "cpu/instruction.h"
#include "cpu/system.h"
#include "isa/isa.h"
#include "lastbranch/error.h"

enum isa_mode decode_mode(const struct cpu *cpu)
{
  bool is_long = cpu->mode & MODE_LONG;

  switch (cpu->mode & MODE_BITS) {
  case MODE_64:
    return ISA_64;
  case MODE_32:
    return is_long ? ISA_COMPATIBLE_32 : ISA_PROTECTED_32;
  default:
    return cpu->mode & MODE_REAL ? ISA_REAL : is_long ? ISA_COMPATIBLE_16 : ISA_PROTECTED_16;
  }
}

/* ---- operands ---- */

static uint8_t segment_number(ZydisRegister reg)
{
  switch (reg) {
  case ZYDIS_REGISTER_ES:
    return ES;
  case ZYDIS_REGISTER_CS:
    return CS;
  case ZYDIS_REGISTER_SS:
    return SS;
  case ZYDIS_REGISTER_FS:
    return FS;
  case ZYDIS_REGISTER_GS:
    return GS;
  default:
    return DS;
  }
}

/* A general register as an offset into cpu->r. Zydis numbers AH to BH after AL to BL, as 4 to 7. */
static uint8_t general_offset(ZydisRegister reg)
{
  if (reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH)
    return (uint8_t)(8 * (reg - ZYDIS_REGISTER_AH) + 1);
  if (reg >= ZYDIS_REGISTER_AL && reg <= ZYDIS_REGISTER_BL)
    return (uint8_t)(8 * (reg - ZYDIS_REGISTER_AL));
  if (reg >= ZYDIS_REGISTER_SPL && reg <= ZYDIS_REGISTER_R15B)
    return (uint8_t)(8 * (reg - ZYDIS_REGISTER_SPL + 4));
  ZyanI8 id = ZydisRegisterGetId(reg);
  return (uint8_t)(8 * (id < 0 ? ZERO : id));
}

static uint8_t address_part(ZydisRegister reg)
{
  bool is_none = reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_EIP || reg == ZYDIS_REGISTER_RIP;

  return is_none ? 8 * ZERO : general_offset(reg);
}

static uint8_t register_class(ZydisRegisterClass class)
{
  switch (class) {
  case ZYDIS_REGCLASS_GPR8:
  case ZYDIS_REGCLASS_GPR16:
  case ZYDIS_REGCLASS_GPR32:
  case ZYDIS_REGCLASS_GPR64:
    return CLASS_GENERAL;
  case ZYDIS_REGCLASS_X87:
    return CLASS_ST;
  case ZYDIS_REGCLASS_MMX:
    return CLASS_MMX;
  case ZYDIS_REGCLASS_XMM:
    return CLASS_XMM;
  case ZYDIS_REGCLASS_YMM:
    return CLASS_YMM;
  default:
    return CLASS_OTHER;
  }
}

static void decode_register(struct insn *insn, unsigned number, ZydisRegister reg)
{
  ZydisRegisterClass class = ZydisRegisterGetClass(reg);
  insn->op_class[number] = register_class(class);
  if (class == ZYDIS_REGCLASS_SEGMENT)
    insn->variant = VARIANT_SEGMENT;
  if (class == ZYDIS_REGCLASS_CONTROL)
    insn->variant = VARIANT_CR;
  if (class == ZYDIS_REGCLASS_DEBUG)
    insn->variant = VARIANT_DR;
  if (class == ZYDIS_REGCLASS_SEGMENT)
    insn->op[number] = segment_number(reg);
  else if (insn->op_class[number] == CLASS_GENERAL)
    insn->op[number] = general_offset(reg);
  else
    insn->op[number] = (uint8_t)ZydisRegisterGetId(reg);
}

static void decode_memory(struct insn *insn, const ZydisDecodedOperand *operand)
{
  const ZydisDecodedOperandMem *mem = &operand->mem;
  insn->base = address_part(mem->base);
  insn->index = address_part(mem->index);
  insn->scale = mem->scale == 8 ? 3 : mem->scale == 4 ? 2 : mem->scale == 2 ? 1 : 0;
  insn->disp = mem->disp.has_displacement ? (uint64_t)mem->disp.value : 0;
  if (mem->base == ZYDIS_REGISTER_RIP || mem->base == ZYDIS_REGISTER_EIP)
    insn->disp += insn_next_rip(insn);
  insn->segment = segment_number(mem->segment);
  insn->memory_size = operand->size / 8 <= 0xFF ? (uint8_t)(operand->size / 8) : 0;
}

static void decode_immediate(struct insn *insn, const ZydisDecodedOperand *operand, bool *had_one)
{
  uint64_t value = operand->imm.is_signed ? (uint64_t)operand->imm.value.s : operand->imm.value.u;

  if (*had_one)
    insn->second_imm = (uint16_t)value;
  else if (operand->imm.is_relative)
    insn->target = value + insn_next_rip(insn);
  else
    insn->imm = value;
  *had_one = true;
}

static void decode_operands(struct insn *insn, const struct isa_instruction *instruction)
{
  bool had_immediate = false;

  insn->operands = instruction->code.operand_count_visible;
  for (unsigned i = 0; i < 4; i++)
    insn->op[i] = 0xFF;
  for (unsigned i = 0; i < insn->operands && i < 4; i++) {
    const ZydisDecodedOperand *operand = &instruction->operands[i];
    switch (operand->type) {
    case ZYDIS_OPERAND_TYPE_REGISTER:
      decode_register(insn, i, operand->reg.value);
      break;
    case ZYDIS_OPERAND_TYPE_MEMORY:
      insn->op_class[i] = CLASS_MEMORY;
      decode_memory(insn, operand);
      break;
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
      insn->op_class[i] = CLASS_IMMEDIATE;
      decode_immediate(insn, operand, &had_immediate);
      break;
    default:
      insn->op_class[i] = CLASS_OTHER;
      insn->far_selector = operand->ptr.segment;
      insn->far_offset = operand->ptr.offset;
    }
  }
}

/* ---- sizes, form and prefixes ---- */

static bool has_special(const struct insn *insn)
{
  return insn->variant == VARIANT_SEGMENT || insn->variant == VARIANT_CR || insn->variant == VARIANT_DR;
}

static uint8_t decode_form(const struct insn *insn)
{
  static const uint8_t kinds[CLASS_OTHER + 1] = {
    [CLASS_GENERAL] = 1, [CLASS_MMX] = 1,    [CLASS_XMM] = 1,       [CLASS_YMM] = 1,
    [CLASS_ST] = 1,      [CLASS_MEMORY] = 2, [CLASS_IMMEDIATE] = 3, [CLASS_OTHER] = 4,
  };
  static const uint8_t forms[4][5] = {
    {FORM_NONE, FORM_OTHER, FORM_OTHER, FORM_OTHER, FORM_OTHER},
    {FORM_REG, FORM_REG_REG, FORM_REG_MEM, FORM_REG_IMM, FORM_OTHER},
    {FORM_MEM, FORM_MEM_REG, FORM_OTHER, FORM_MEM_IMM, FORM_OTHER},
    {FORM_IMM, FORM_OTHER, FORM_OTHER, FORM_OTHER, FORM_OTHER},
  };
  unsigned first = insn->operands > 0 ? kinds[insn->op_class[0]] : 0;
  unsigned second = insn->operands > 1 ? kinds[insn->op_class[1]] : 0;

  if (has_special(insn)) { /* segment, control and debug registers are registers too */
    first = first == 4 ? 1 : first;
    second = second == 4 ? 1 : second;
  }
  return first == 4 ? FORM_OTHER : forms[first][second];
}

/* Instructions whose size is the operand size, not the size of their first operand. */
static bool has_operand_size(const struct isa_instruction *instruction)
{
  if (!instruction->code.operand_count_visible || instruction->code.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
    return true;
  switch (instruction->code.meta.category) {
  case ZYDIS_CATEGORY_PUSH:
  case ZYDIS_CATEGORY_POP:
  case ZYDIS_CATEGORY_STRINGOP:
  case ZYDIS_CATEGORY_IOSTRINGOP:
  case ZYDIS_CATEGORY_INTERRUPT:
    return true;
  default:
    return instruction->code.mnemonic == ZYDIS_MNEMONIC_ENTER || instruction->code.mnemonic == ZYDIS_MNEMONIC_LEAVE;
  }
}

static uint8_t operand_bytes(const struct isa_instruction *instruction, unsigned number)
{
  if (number >= instruction->code.operand_count_visible)
    return 0;
  unsigned bytes = instruction->operands[number].size / 8;
  return bytes <= 0x80 ? (uint8_t)bytes : 0;
}

static void decode_sizes(struct insn *insn, const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  insn->size = has_operand_size(instruction) ? (uint8_t)(code->operand_width / 8) : operand_bytes(instruction, 0);
  insn->size2 = operand_bytes(instruction, 1);
  insn->address_size = (uint8_t)(code->address_width / 8);
  insn->address_mask = insn->address_size == 8 ? UINT64_MAX : insn->address_size == 4 ? 0xFFFFFFFF : 0xFFFF;
}

static uint8_t decode_prefixes(const ZydisDecodedInstruction *code)
{
  uint8_t prefixes = 0;

  if (code->attributes & ZYDIS_ATTRIB_HAS_LOCK)
    prefixes |= PREFIX_LOCK;
  if (code->attributes & (ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE))
    prefixes |= PREFIX_REP;
  if (code->attributes & ZYDIS_ATTRIB_HAS_REPNE)
    prefixes |= PREFIX_REPNE;
  return prefixes;
}

static bool is_legacy_sse(const ZydisDecodedInstruction *code)
{
  switch (code->meta.isa_ext) {
  case ZYDIS_ISA_EXT_SSE:
  case ZYDIS_ISA_EXT_SSE2:
  case ZYDIS_ISA_EXT_SSE3:
  case ZYDIS_ISA_EXT_SSE4:
  case ZYDIS_ISA_EXT_SSE4A:
  case ZYDIS_ISA_EXT_SSSE3:
  case ZYDIS_ISA_EXT_AES:
  case ZYDIS_ISA_EXT_PCLMULQDQ:
  case ZYDIS_ISA_EXT_SHA:
    return true;
  default:
    return false;
  }
}

static enum insn_variant decode_variant(const struct insn *insn, const ZydisDecodedInstruction *code)
{
  if (code->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
    return VARIANT_FAR;
  if (has_special(insn))
    return (enum insn_variant)insn->variant;
  if (code->encoding == ZYDIS_INSTRUCTION_ENCODING_VEX)
    return code->avx.vector_length == 256 ? VARIANT_VEX_256 : VARIANT_VEX_128;
  bool is_mmx = false, is_xmm = false;
  for (unsigned i = 0; i < 4; i++) {
    is_mmx |= insn->op_class[i] == CLASS_MMX;
    is_xmm |= insn->op_class[i] == CLASS_XMM;
  }
  return is_legacy_sse(code) && (is_xmm || !is_mmx) ? VARIANT_SSE : VARIANT_PLAIN;
}

/* The segment that string instructions without visible operands read from. */
static void decode_hidden_memory(struct insn *insn, const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  insn->segment = code->meta.category == ZYDIS_CATEGORY_PUSH || code->meta.category == ZYDIS_CATEGORY_POP ||
                      code->meta.category == ZYDIS_CATEGORY_CALL || code->meta.category == ZYDIS_CATEGORY_RET
                    ? SS
                    : DS;
  for (unsigned i = 0; i < code->operand_count; i++) {
    const ZydisDecodedOperand *operand = &instruction->operands[i];
    bool is_source = operand->type == ZYDIS_OPERAND_TYPE_MEMORY && operand->mem.segment != ZYDIS_REGISTER_ES &&
                     operand->mem.segment != ZYDIS_REGISTER_NONE && insn->segment != SS;
    if (is_source)
      insn->segment = segment_number(operand->mem.segment);
  }
  /* The operands do not distinguish an override of ES from the destination. */
  if (code->attributes & ZYDIS_ATTRIB_HAS_SEGMENT_ES)
    insn->segment = ES;
}

/* ---- whole ---- */

/* Whether the instruction must be the last of its block: it may jump, or change state that decoding or the run loop
 * depend on. */
static bool decode_ends(const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  if (code->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
    return true;
  switch (code->meta.category) {
  case ZYDIS_CATEGORY_INTERRUPT:
  case ZYDIS_CATEGORY_RET:
  case ZYDIS_CATEGORY_SYSCALL:
  case ZYDIS_CATEGORY_SYSRET:
  case ZYDIS_CATEGORY_SYSTEM:
  case ZYDIS_CATEGORY_IO:
  case ZYDIS_CATEGORY_IOSTRINGOP:
    return true;
  default:
    return false;
  }
}

static void decode_fill(const struct cpu *cpu, struct insn *insn, const struct isa_instruction *instruction)
{
  const ZydisDecodedInstruction *code = &instruction->code;
  insn->mnemonic = (uint16_t)system_mnemonic(cpu, code->mnemonic);
  insn->base = insn->index = 8 * ZERO;
  decode_sizes(insn, instruction);
  decode_hidden_memory(insn, instruction);
  decode_operands(insn, instruction);
  insn->form = decode_form(insn);
  insn->prefixes = decode_prefixes(code);
  insn->variant = (uint8_t)decode_variant(insn, code);
  bool is_near = code->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE && code->meta.branch_type != ZYDIS_BRANCH_TYPE_FAR;
  if (is_near && insn->form == FORM_IMM && insn->size < 8)
    insn->target &= insn->size == 4 ? 0xFFFFFFFF : 0xFFFF;
}

static enum insn_reach decode_reach(const struct cpu *cpu, const struct insn *insn)
{
  bool is_64 = (cpu->mode & MODE_BITS) == MODE_64;
  bool has_memory = false;

  for (unsigned i = 0; i < 4; i++)
    has_memory |= insn->op_class[i] == CLASS_MEMORY;
  if (!is_64 && !(cpu->mode & MODE_FLAT))
    return REACH_ANY;
  if (!has_memory)
    return REACH_FLAT;
  if (insn->segment == FS || insn->segment == GS || (insn->segment == CS && !is_64))
    return REACH_ANY;
  return insn->index == 8 * ZERO ? REACH_FLAT : REACH_INDEXED;
}

const struct insn *decode_run_ud(struct cpu *cpu, const struct insn *insn)
{
  (void)insn;
  fault_ud(cpu);
}

const struct insn *decode_run_gp(struct cpu *cpu, const struct insn *insn)
{
  (void)insn;
  fault_gp(cpu, 0);
}

static const struct insn *run_unimplemented(struct cpu *cpu, const struct insn *insn)
{
  fault_unimplemented(cpu, ZydisMnemonicGetString((ZydisMnemonic)insn->mnemonic));
}

/* SYSENTER exists in virtual-8086 mode, and gives #GP(0) in real mode; Zydis accepts it in neither. */
static int decode_sysenter(const uint8_t *bytes, size_t size, struct isa_instruction *ret_instruction)
{
  struct isa_instruction instruction;
  int length = isa_decode(ISA_PROTECTED_16, false, bytes, size, &instruction);

  if (length < 0 || instruction.code.mnemonic != ZYDIS_MNEMONIC_SYSENTER)
    return LB_E_NO_INSTRUCTION;
  *ret_instruction = instruction;
  return length;
}

int decode_insn(struct cpu *cpu, uint64_t rip, const uint8_t *bytes, size_t size, bool is_rom, struct insn *insn,
                bool *ret_ends)
{
  *insn = (struct insn){.rip = rip};
  *ret_ends = true;
  if (is_rom && size >= 3 && bytes[0] == 0x0F && bytes[1] == 0x3F) {
    insn->run = control_service;
    insn->service = bytes[2];
    insn->length = 3;
    return 3;
  }
  struct isa_instruction instruction;
  bool is_amd = cpu->model->vendor == LB_VENDOR_AMD;
  int length = isa_decode(decode_mode(cpu), is_amd, bytes, size, &instruction);
  if (length == LB_E_NO_INSTRUCTION && decode_mode(cpu) == ISA_REAL)
    length = decode_sysenter(bytes, size, &instruction);
  if (length == LB_E_TRUNCATED)
    return length;
  insn->length = length < 0 ? 1 : (uint8_t)length;
  if (length < 0 || !system_allows(cpu, &instruction)) {
    insn->run = length == LB_E_TOO_LONG ? decode_run_gp : decode_run_ud;
    return insn->length;
  }
  decode_fill(cpu, insn, &instruction);
  insn->reach = (uint8_t)decode_reach(cpu, insn);
  *ret_ends = decode_ends(&instruction);
  insn->run = instruction_handler(insn);
  if (!insn->run) {
    insn->run = run_unimplemented;
    *ret_ends = true;
  }
  return length;
}
