/* SPDX-License-Identifier: Apache-2.0
 *
 * Segment registers and descriptors: SDM vol. 3 chapters 3 and 5. After any change of a segment register, CR0.PE,
 * EFLAGS.VM, EFER.LMA or CPL, segment_update must be called: until then, nothing that depends on them is valid.
 */
#ifndef CPU_SEGMENT_H
#define CPU_SEGMENT_H

#include "cpu/cpu.h"

/* A descriptor as it lies in its table. For 16-byte system descriptors of IA-32e mode `base` is whole. */
struct descriptor {
  uint64_t base;
  uint32_t limit;  /* in bytes */
  uint16_t access; /* as cpu_segment's */
  uint64_t linear; /* its address */
  uint64_t raw;    /* its first eight bytes; gates are read from there */
  uint64_t raw_high;
};

/* Recomputes `ease` of every segment, mode, cpl-dependent caches, code_limit, stack_mask, linear_mask, the TLB in
 * use. */
void segment_update(struct cpu *cpu);

/* Reads a descriptor of the GDT or LDT. The selector's table must hold it, else `exception`(selector & ~3) is raised.
 * In IA-32e mode system descriptors are 16 bytes long when `is_system`. */
struct descriptor segment_fetch(struct cpu *cpu, uint16_t selector, unsigned exception, bool is_system);
/* The same without the exception: false when no table holds it. #PF is still raised. */
bool segment_look(struct cpu *cpu, uint16_t selector, bool is_system, struct descriptor *ret_descriptor);
/* The same without any fault, with a local table that may not be in LDTR yet; outside IA-32e mode. */
bool segment_peek(struct cpu *cpu, uint16_t selector, const struct cpu_segment *ldt, struct descriptor *ret_descriptor);

/* MOV, POP, LDS and so on into ES, SS, DS, FS, GS in any mode: checks, sets the accessed bit, loads, updates. */
void segment_load(struct cpu *cpu, unsigned number, uint16_t selector);

/* Fills the hidden part as real mode and virtual-8086 mode do. No update. */
void segment_load_real(struct cpu *cpu, unsigned number, uint16_t selector);

/* Fills a segment register from a descriptor that was checked. No update. */
void segment_set(struct cpu *cpu, unsigned number, uint16_t selector, const struct descriptor *descriptor);

/* The same for a null selector. SS keeps the privilege level in its DPL. */
void segment_set_null(struct cpu *cpu, unsigned number, uint16_t selector);

/* Check whether SS, or ES, DS, FS and GS, may be loaded with this descriptor at this privilege level. If not, they
 * raise `exception`(selector); if it is not present, #SS or #NP. */
void segment_check_stack(struct cpu *cpu, uint16_t selector, const struct descriptor *descriptor, unsigned level,
                         unsigned exception);
void segment_check_data(struct cpu *cpu, uint16_t selector, const struct descriptor *descriptor, unsigned level,
                        unsigned exception);

/* Sets the accessed bit of a code or data descriptor in memory, if it is not set. */
void segment_mark_accessed(struct cpu *cpu, struct descriptor *descriptor);

static inline bool segment_is_protected(const struct cpu *cpu) /* and not virtual-8086 */
{
  return (cpu->cr0 & CR0_PE) && !(cpu->eflags & FLAG_VM);
}

#endif
