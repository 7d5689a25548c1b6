/* SPDX-License-Identifier: Apache-2.0
 *
 * State of x87, MMX, SSE and AVX.
 */
#ifndef CPU_FPU_H
#define CPU_FPU_H

#include <stdint.h>

/* One register of up to 256 bits. */
union vector {
  uint8_t u8[32];
  uint16_t u16[16];
  uint32_t u32[8];
  uint64_t u64[4];
};

struct fpu {
  /* x87: physical registers, 80 bits in the first ten bytes; ST(i) is st[(top + i) & 7]. MMX registers are the first
   * eight bytes of st[0] to st[7]. */
  _Alignas(16) uint8_t st[8][16];
  uint16_t control, status; /* status without TOP, which is separate */
  uint8_t top;
  uint8_t tags; /* bit per physical register: 1 not empty (as FXSAVE's abridged tag word) */
  uint16_t opcode, instruction_selector, data_selector;
  uint64_t instruction, data; /* last x87 instruction and its operand */
  uint32_t mxcsr;
  _Alignas(32) union vector v[16];
};

#endif
