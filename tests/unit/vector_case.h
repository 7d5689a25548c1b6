/* SPDX-License-Identifier: Apache-2.0
 *
 * All encodings of the instructions of float.def and vector.def, found by trying prefixes, opcodes and operands.
 */
#ifndef VECTOR_CASE_H
#define VECTOR_CASE_H

#include <Zydis/Zydis.h>

struct vector_case {
  ZydisDecodedInstruction code;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  uint8_t bytes[ZYDIS_MAX_INSTRUCTION_LENGTH];
};

typedef void vector_case_visitor(const struct vector_case *the_case, void *data);

/* Calls `visit` for each: registers 0 to 15, memory at RBX or R11, with every immediate 0. */
void vector_case_all(vector_case_visitor *visit, void *data);

/* Is it in float.def or vector.def? */
int vector_case_is_listed(ZydisMnemonic mnemonic);

#endif
