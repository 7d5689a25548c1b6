/* SPDX-License-Identifier: Apache-2.0
 *
 * Decodes bytes to a struct insn.
 */
#ifndef CPU_DECODE_H
#define CPU_DECODE_H

#include "cpu/insn.h"
#include "isa/isa.h"

/* The decoder's mode that belongs to the processor's mode. */
enum isa_mode decode_mode(const struct cpu *cpu);

/* Fills `insn` for the instruction at offset `rip`, whose first `size` bytes (at most 15) are given. Bytes that are no
 * instruction, or one that the CPU lacks, get a handler that faults. `is_rom` says that it lies in the firmware's ROM,
 * where the service instruction exists. `ret_ends` is set if a block must end with it. Returns its length (for bytes
 * that are no instruction: 1), or LB_E_TRUNCATED when more bytes are needed. */
int decode_insn(struct cpu *cpu, uint64_t rip, const uint8_t *bytes, size_t size, bool is_rom, struct insn *insn,
                bool *ret_ends);

/* Handlers for invalid instructions: #UD, and #GP(0) for one that is longer than 15 bytes. */
insn_handler decode_run_ud, decode_run_gp;

#endif
