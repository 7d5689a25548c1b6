/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of handlers, by mnemonic.
 */
#include "cpu/instruction.h"

#include <Zydis/Zydis.h>

struct row {
  insn_handler *handler;
  insn_chooser *choose;
};

static const struct row table[ZYDIS_MNEMONIC_MAX_VALUE + 1] = {
#define INSTRUCTION(name, function) [ZYDIS_MNEMONIC_##name] = {function, NULL},
#define INSTRUCTION_FORMS(name, function) [ZYDIS_MNEMONIC_##name] = {NULL, function},
#include "cpu/instruction.def"
#undef INSTRUCTION
#undef INSTRUCTION_FORMS
};

insn_handler *instruction_handler(const struct insn *insn)
{
  const struct row *row = &table[insn->mnemonic];

  return row->choose ? row->choose(insn) : row->handler;
}
