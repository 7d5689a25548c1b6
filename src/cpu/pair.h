/* SPDX-License-Identifier: Apache-2.0
 *
 * Pairs: CMP or TEST and the conditional jump after it, executed by one handler that knows both operands when it jumps.
 * They stay two instructions of their block and count as two; the handler replaces that of the first one.
 */
#ifndef CPU_PAIR_H
#define CPU_PAIR_H

#include "cpu/insn.h"

/* The handler for this instruction and the next one of its block together; NULL when there is none. */
insn_handler *pair_handler(const struct insn *insn);

#endif
