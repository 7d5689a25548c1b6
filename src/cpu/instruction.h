/* SPDX-License-Identifier: Apache-2.0
 *
 * The handler of each instruction. The groups' lists (integer.def, far.def, control.def, float.def, vector.def) have a
 * line each: INSTRUCTION(MNEMONIC, handler), or INSTRUCTION_FORMS(MNEMONIC, chooser) where the handler depends on form
 * and size: the chooser is called once, when the instruction is decoded.
 */
#ifndef CPU_INSTRUCTION_H
#define CPU_INSTRUCTION_H

#include "cpu/insn.h"

#define INSTRUCTION(name, function) insn_handler function;
#define INSTRUCTION_FORMS(name, function) insn_chooser function;
#include "cpu/instruction.def"
#undef INSTRUCTION
#undef INSTRUCTION_FORMS

/* The handler for a decoded instruction; NULL if there is none. */
insn_handler *instruction_handler(const struct insn *insn);

#endif
