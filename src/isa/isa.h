/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes x86 instructions: a thin layer over Zydis. Bytes -> instruction -> kind of branch -> text. Callers that need
 * operands read Zydis' own structures.
 */
#ifndef ISA_ISA_H
#define ISA_ISA_H

#include <Zydis/Zydis.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"

enum isa_mode {
  ISA_REAL,         /* real and virtual-8086 mode */
  ISA_PROTECTED_16, /* a 16-bit segment of protected mode */
  ISA_PROTECTED_32,
  ISA_COMPATIBLE_16, /* a 16-bit segment of IA-32e mode */
  ISA_COMPATIBLE_32,
  ISA_64,
};

struct isa_instruction {
  ZydisDecodedInstruction code;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT]; /* code.operand_count of them, the visible ones first */
};

#define ISA_LENGTH_MAX 15

/* Decodes the instruction that starts `bytes`. `is_amd` chooses AMD's reading of branches with an operand-size prefix
 * in 64-bit mode. Returns its length, LB_E_TRUNCATED when it needs more bytes than `size`, LB_E_TOO_LONG when it is
 * longer than 15 bytes, or LB_E_NO_INSTRUCTION. */
int isa_decode(enum isa_mode mode, bool is_amd, const void *bytes, size_t size,
               struct isa_instruction *ret_instruction);

/* The enum lb_branch_kind of an instruction that may jump (taken or not), or -1 for one that always continues with the
 * next. */
int isa_branch_kind(const struct isa_instruction *instruction);

/* Intel syntax, with absolute branch targets for an instruction at `address`. Returns 0, or LB_E_NO_INSTRUCTION. */
int isa_format(const struct isa_instruction *instruction, uint64_t address, char *text, size_t size);

#endif
