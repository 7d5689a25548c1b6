/* SPDX-License-Identifier: Apache-2.0
 *
 * See vector_case.h.
 */
#include "vector_case.h"

#include <stdbool.h>
#include <string.h>

struct search {
  ZydisDecoder decoder;
  vector_case_visitor *visit;
  void *data;
};

static const uint8_t listed[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
  [ZYDIS_MNEMONIC_MOVSD] = 1,
  [ZYDIS_MNEMONIC_CMPSD] = 1,
#define INSTRUCTION(name, function) [ZYDIS_MNEMONIC_##name] = 1,
#define INSTRUCTION_FORMS(name, function) [ZYDIS_MNEMONIC_##name] = 1,
#include "cpu/float.def"
#include "cpu/vector.def"
#undef INSTRUCTION
#undef INSTRUCTION_FORMS
};

int vector_case_is_listed(ZydisMnemonic mnemonic)
{
  return listed[mnemonic];
}

/* The stack pointer and the registers that hold the address cannot be operands. */
static bool is_usable(const ZydisDecodedOperand *operand)
{
  if (operand->type == ZYDIS_OPERAND_TYPE_MEMORY)
    return operand->mem.base == ZYDIS_REGISTER_RBX || operand->mem.base == ZYDIS_REGISTER_R11;
  ZydisRegister reg = operand->reg.value;
  if (operand->type != ZYDIS_OPERAND_TYPE_REGISTER)
    return true;
  ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return whole != ZYDIS_REGISTER_RSP && whole != ZYDIS_REGISTER_RBX && whole != ZYDIS_REGISTER_RDI &&
         whole != ZYDIS_REGISTER_R11;
}

/* Instruction sets that share mnemonics with ours, but are of later CPUs. */
static bool is_later(ZydisISASet set)
{
  return set == ZYDIS_ISA_SET_VAES || set == ZYDIS_ISA_SET_VPCLMULQDQ;
}

static void try_bytes(const struct search *search, const uint8_t *bytes, size_t size)
{
  struct vector_case found = {0};

  memcpy(found.bytes, bytes, size);
  if (ZYAN_FAILED(
        ZydisDecoderDecodeFull(&search->decoder, found.bytes, sizeof(found.bytes), &found.code, found.operands)))
    return;
  if (!listed[found.code.mnemonic] || is_later(found.code.meta.isa_set) ||
      found.code.meta.category == ZYDIS_CATEGORY_STRINGOP)
    return;
  for (unsigned i = 0; i < found.code.operand_count_visible; i++)
    if (!is_usable(&found.operands[i]))
      return;
  search->visit(&found, search->data);
}

/* Gathers: memory at RBX with index register 5 or 7, scaled. */
static void try_gather(const struct search *search, uint8_t *bytes, size_t size)
{
  for (unsigned reg = 0; reg < 4; reg++) {
    bytes[size] = (uint8_t)(reg << 3 | 4);
    bytes[size + 1] = (uint8_t)(reg << 6 | (reg & 1 ? 5 : 7) << 3 | 3);
    try_bytes(search, bytes, size + 2);
  }
}

/* Memory at (R)BX or R11, two pairs of registers, for x87 all. */
static void try_operands(const struct search *search, uint8_t *bytes, size_t size, bool is_x87)
{
  for (unsigned modrm = 0; modrm < 256; modrm++) {
    unsigned reg = modrm >> 3 & 7, rm = modrm & 7;
    bool is_memory = modrm < 0x40 && rm == 3;
    bool is_register = modrm >= 0xC0 && (is_x87 || rm == ((3 * reg + 1) & 7) || rm == reg);

    if (!is_memory && !is_register)
      continue;
    bytes[size] = (uint8_t)modrm;
    try_bytes(search, bytes, size + 1);
  }
}

static void try_legacy(const struct search *search, uint8_t prefix, uint8_t rex, unsigned map)
{
  uint8_t bytes[8];
  size_t size = 0;

  if (prefix)
    bytes[size++] = prefix;
  if (rex)
    bytes[size++] = rex;
  if (map)
    bytes[size++] = 0x0F;
  if (map == 2 || map == 3)
    bytes[size++] = map == 2 ? 0x38 : 0x3A;
  for (unsigned opcode = 0; opcode < 256; opcode++) {
    bool is_x87 = !map && opcode >= 0xD8 && opcode <= 0xDF && !rex && prefix < 0xF0;

    if (!map && !is_x87 && opcode != 0x9B)
      continue;
    bytes[size] = (uint8_t)opcode;
    try_operands(search, bytes, size + 1, is_x87);
  }
}

/* `inverted` has R and B; the third operand is register 10 or none. */
static void try_vex(const struct search *search, uint8_t inverted, unsigned map, unsigned low)
{
  for (unsigned opcode = 0; opcode < 256; opcode++)
    for (unsigned third = 0; third < 2; third++) {
      uint8_t bytes[8] = {0xC4, (uint8_t)(inverted | map), (uint8_t)(low | (third ? 0x28 : 0x78)), (uint8_t)opcode};

      try_operands(search, bytes, 4, false);
      if (map == 2 && opcode >= 0x90 && opcode <= 0x93 && inverted == 0xE0)
        try_gather(search, bytes, 4);
    }
}

void vector_case_all(vector_case_visitor *visit, void *data)
{
  static const uint8_t prefixes[] = {0, 0x66, 0xF2, 0xF3};
  static const uint8_t rexes[] = {0, 0x48, 0x45, 0x4D};
  struct search search = {.visit = visit, .data = data};

  ZydisDecoderInit(&search.decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  for (unsigned p = 0; p < 4; p++)
    for (unsigned rex = 0; rex < 4; rex++)
      for (unsigned map = 0; map < 4; map++)
        try_legacy(&search, prefixes[p], rexes[rex], map);
  for (unsigned low = 0; low < 8; low++) /* L and pp */
    for (unsigned w = 0; w < 2; w++)
      for (unsigned map = 1; map < 4; map++) {
        try_vex(&search, 0xE0, map, w << 7 | low);
        try_vex(&search, 0x40, map, w << 7 | low);
      }
}
