/* SPDX-License-Identifier: Apache-2.0
 *
 * Delivery of interrupts and exceptions through the interrupt vector table or the IDT, in every mode; SDM vol. 3
 * chapter 6 and, for virtual-8086 mode, 20. Called by the run loop between instructions, and by INT n. Faults during
 * delivery leave through fault.h again; the run loop turns them into #DF or shutdown (interrupt_exception).
 */
#ifndef CPU_INTERRUPT_H
#define CPU_INTERRUPT_H

#include "cpu/insn.h"

/* Delivers cpu->fault, the fault of cpu->at (or of the fetch at cpu->rip when at is NULL): contributory faults become
 * #DF. Returns false for a fault during #DF: shutdown. RF is set in the pushed flags of faults (SDM 17.3.1.1). */
bool interrupt_exception(struct cpu *cpu);

/* Delivers a maskable interrupt with this vector, or an NMI, between instructions. */
void interrupt_external(struct cpu *cpu, uint8_t vector);
void interrupt_nmi(struct cpu *cpu);

/* Delivers #DB as a trap between instructions: DR6 gets `bits`. */
void interrupt_debug(struct cpu *cpu, uint32_t bits);

/* INT n, INT3, INTO (when OF), INT1: from their handlers, which return what this returns. Checks DPL, IOPL, VME. */
const struct insn *interrupt_software(struct cpu *cpu, const struct insn *insn, uint8_t vector,
                                      enum lb_branch_kind kind);

#endif
