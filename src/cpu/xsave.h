/* SPDX-License-Identifier: Apache-2.0
 *
 * Code shared by the instructions that save the processor's state: the legacy part of their image (xsave.c) and the
 * compacted format (xsaves.c).
 */
#ifndef CPU_XSAVE_H
#define CPU_XSAVE_H

#include "cpu/vector.h"

enum {
  IMAGE_MXCSR = 24,
  IMAGE_ST = 32,
  IMAGE_XMM = 160,
  IMAGE_XMM_END = 416,
  IMAGE_HEADER = 512,
  IMAGE_AVX = 576,   /* also the offset of the first component after the header in the compacted format */
  IMAGE_BYTES = 832, /* of the standard format, without PKRU, which is separate */
};

/* Components: bits of XCR0, of IA32_XSS and of the header's words. */
enum { STATE_X87 = 1, STATE_SSE = 2, STATE_AVX = 4, STATE_PKRU = 1 << 9, STATE_LBR = 1 << 15 };
enum { COMPONENT_AVX = 2, COMPONENT_PKRU = 9, COMPONENT_LBR = 15 };

/* ---- xsave.c ---- */

/* The checks that all instructions have in common: CR4.OSXSAVE, CR0.TS. */
void xsave_begin(struct cpu *cpu);

/* The offset of the operand; #GP(0) if it is not aligned. */
uint64_t xsave_address(struct cpu *cpu, const struct insn *insn, unsigned size, unsigned alignment, unsigned access);

/* XINUSE: the components that are not as they were at reset. */
unsigned xsave_used(const struct cpu *cpu);

/* Store and load parts of the image. `is_64`: pointers of 64 bits without selectors. From NULL: as at reset. */
void xsave_put_x87(const struct fpu *fpu, uint8_t *image, bool is_64);
void xsave_get_x87(struct cpu *cpu, const uint8_t *image, bool is_64);
void xsave_put_mxcsr(const struct fpu *fpu, uint8_t *image);
void xsave_put_half(const struct cpu *cpu, uint8_t *at, unsigned half);
void xsave_get_half(struct cpu *cpu, const uint8_t *at, unsigned half);

/* The offset of a component after the header in the standard format, and the size of an image with these components.
 * SDM vol. 1, 13.4. */
unsigned xsave_place(const struct cpu *cpu, unsigned component);
unsigned xsave_size(const struct cpu *cpu, uint64_t components);

/* ---- xsaves.c ---- */

/* Whether an image that XRSTOR was given has the compacted format. */
bool xsave_is_compact(const struct cpu *cpu, const uint8_t *image);

/* Restores from an image of the compacted format. `allowed`: XCR0, for XRSTORS with IA32_XSS. */
const struct insn *xsave_restore(struct cpu *cpu, const struct insn *insn, uint64_t allowed, bool is_64);

/* Bits of IA32_XSS that this CPU has. */
uint64_t xsave_xss_bits(const struct cpu *cpu);

/* The size of a component after the header, 0 if this CPU does not have it, and of a whole compacted image. */
unsigned xsave_component_size(const struct cpu *cpu, unsigned number);
unsigned xsave_compact_size(const struct cpu *cpu, uint64_t components);

#endif
