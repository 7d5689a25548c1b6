/* SPDX-License-Identifier: Apache-2.0
 *
 * The fatal instruction is decoded, and the addresses that it used are computed from the registers.
 */
#include "analysis/fault.h"

#include <assert.h>
#include <signal.h>

#include "isa/isa.h"

static bool instruction_read(const struct analysis_death *death, const struct analysis_places *places,
                             struct isa_instruction *ret_instruction)
{
  uint8_t bytes[ISA_LENGTH_MAX];
  size_t size;

  if (!places || !death->thread_count)
    return false;
  size = places->code(places->data, death->threads[0].space, ANALYSIS_NOW, death->rip, bytes, sizeof(bytes));
  return size && isa_decode(ISA_64, false, bytes, size, ret_instruction) > 0;
}

static uint64_t register_value(const struct analysis_death *death, ZydisRegister name)
{
  ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, name);

  if (whole >= ZYDIS_REGISTER_RAX && whole <= ZYDIS_REGISTER_R15)
    return death->registers[whole - ZYDIS_REGISTER_RAX];
  return 0;
}

/* The linear address of a memory operand. Returns false if it cannot be known: a segment's base, an index that is a
 * vector. */
static bool operand_address(const struct analysis_death *death, const struct isa_instruction *instruction,
                            const ZydisDecodedOperand *operand, uint64_t *ret_address)
{
  const ZydisDecodedOperandMem *memory = &operand->mem;
  bool is_narrow = instruction->code.address_width == 32;
  uint64_t address = (uint64_t)memory->disp.value;

  if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || memory->type == ZYDIS_MEMOP_TYPE_AGEN ||
      memory->type == ZYDIS_MEMOP_TYPE_VSIB || memory->segment == ZYDIS_REGISTER_FS ||
      memory->segment == ZYDIS_REGISTER_GS)
    return false;
  if (memory->base == ZYDIS_REGISTER_RIP || memory->base == ZYDIS_REGISTER_EIP)
    address += death->rip + instruction->code.length;
  else
    address += register_value(death, memory->base);
  address += register_value(death, memory->index) * memory->scale;
  /* PUSH and CALL write below RSP */
  if (memory->base == ZYDIS_REGISTER_RSP && operand->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
      (operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
    address -= operand->size / 8;
  *ret_address = is_narrow ? (uint32_t)address : address;
  return true;
}

static enum analysis_access operand_access(const ZydisDecodedOperand *operand)
{
  return operand->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? ANALYSIS_ACCESS_WRITE : ANALYSIS_ACCESS_READ;
}

/* The access of the operand that contains the fault address; if none does and there is only one operand, of that
 * one. */
static enum analysis_access instruction_access(const struct analysis_death *death,
                                               const struct isa_instruction *instruction)
{
  enum analysis_access only = ANALYSIS_ACCESS_UNKNOWN;
  unsigned count = 0;

  for (unsigned i = 0; i < instruction->code.operand_count; i++) {
    const ZydisDecodedOperand *operand = &instruction->operands[i];
    uint64_t address;

    if (operand->type != ZYDIS_OPERAND_TYPE_MEMORY || operand->mem.type == ZYDIS_MEMOP_TYPE_AGEN)
      continue;
    if (operand_address(death, instruction, operand, &address) && death->address - address < operand->size / 8)
      return operand_access(operand);
    only = operand_access(operand);
    count++;
  }
  return count == 1 ? only : ANALYSIS_ACCESS_UNKNOWN;
}

static bool is_memory_signal(const struct analysis_death *death)
{
  return death->signal == SIGSEGV || death->signal == SIGBUS;
}

/* `instruction` is NULL if it is unknown. */
static enum analysis_access fault_access(const struct analysis_death *death, const struct isa_instruction *instruction)
{
  uint64_t distance = death->address - death->rip;

  if (!is_memory_signal(death) || death->code == SI_KERNEL || death->code <= 0)
    return ANALYSIS_ACCESS_UNKNOWN;
  if (distance == 0 || (distance < ISA_LENGTH_MAX && (!instruction || distance >= instruction->code.length)))
    return ANALYSIS_ACCESS_EXECUTE;
  return instruction ? instruction_access(death, instruction) : ANALYSIS_ACCESS_UNKNOWN;
}

/* Whether the address is canonical. */
static bool is_address(uint64_t address)
{
  return (int64_t)(address << 16) >> 16 == (int64_t)address;
}

/* Finds the first non-canonical address that the instruction used. */
static bool bad_address(const struct analysis_death *death, const struct isa_instruction *instruction,
                        uint64_t *ret_address)
{
  uint64_t address;

  for (unsigned i = 0; i < instruction->code.operand_count; i++)
    if (operand_address(death, instruction, &instruction->operands[i], &address) && !is_address(address)) {
      *ret_address = address;
      return true;
    }
  return false;
}

/* The target of a branch, if it is on the stack or in a register. Other memory is unknown. */
static bool branch_target(const struct analysis_death *death, const struct isa_instruction *instruction,
                          uint64_t *ret_target)
{
  const ZydisDecodedOperand *operand = &instruction->operands[0];

  if (instruction->code.meta.category == ZYDIS_CATEGORY_RET) {
    *ret_target = death->top;
    return death->has_top && instruction->code.mnemonic == ZYDIS_MNEMONIC_RET;
  }
  if ((instruction->code.mnemonic != ZYDIS_MNEMONIC_CALL && instruction->code.mnemonic != ZYDIS_MNEMONIC_JMP) ||
      operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
    return false;
  *ret_target = register_value(death, operand->reg.value);
  return true;
}

struct analysis_fault analysis_fault_find(const struct analysis_death *death, const struct analysis_places *places)
{
  struct analysis_fault fault = {0};
  struct isa_instruction instruction;
  bool is_known;

  assert(death->ending == ANALYSIS_DIED);
  is_known = instruction_read(death, places, &instruction);
  fault.access = fault_access(death, is_known ? &instruction : NULL);
  if (!is_known || !is_memory_signal(death) || death->code != SI_KERNEL)
    return fault;
  fault.has_address = bad_address(death, &instruction, &fault.address);
  if (branch_target(death, &instruction, &fault.target) && !is_address(fault.target)) {
    fault.has_target = true;
    fault.kind = (enum lb_branch_kind)isa_branch_kind(&instruction);
  }
  return fault;
}
