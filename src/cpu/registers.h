/* SPDX-License-Identifier: Apache-2.0
 *
 * The registers of a processor: their numbers, their bits, and how segments, tables and flags are stored. cpu.h
 * includes this header.
 */
#ifndef CPU_REGISTERS_H
#define CPU_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers of general registers are those of the encoding. ZERO is always 0: the base or index that an address lacks. */
enum cpu_register { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, ZERO, CPU_REGISTERS };

/* In the order of the encoding, followed by the two system segments. */
enum cpu_segment_number { ES, CS, SS, DS, FS, GS, LDTR, TR, CPU_SEGMENTS };

/* A segment register with its hidden part. `access` has the second dword of a descriptor shifted right by 8: type 3:0,
 * S 4, DPL 6:5, P 7, AVL 12, L 13, D/B 14, G 15. A null selector loaded in protected mode has `access` 0. In real and
 * virtual-8086 mode the hidden part holds what those modes imply (segment_load_real). */
struct cpu_segment {
  uint64_t base;
  uint64_t linear_base; /* added by an access: base, but 0 for CS, DS, ES and SS in 64-bit mode (segment_update) */
  uint32_t limit;       /* last offset (for expand-down: last offset that is outside), in bytes */
  uint16_t selector;
  uint16_t access;
  uint8_t ease;    /* ACCESS_READ | ACCESS_WRITE: the accesses that any offset allows without a check */
  uint8_t bounded; /* those that any offset up to the limit allows (segment_update) */
};

#define SEGMENT_TYPE(access) ((access)&0xFu)
#define SEGMENT_DPL(access) ((access) >> 5 & 3u)
enum {
  SEGMENT_ACCESSED = 1u << 0,
  SEGMENT_WRITABLE = 1u << 1, /* data */
  SEGMENT_READABLE = 1u << 1, /* code */
  SEGMENT_EXPAND_DOWN = 1u << 2,
  SEGMENT_CONFORMING = 1u << 2,
  SEGMENT_CODE = 1u << 3,
  SEGMENT_S = 1u << 4, /* code or data, not system */
  SEGMENT_P = 1u << 7,
  SEGMENT_L = 1u << 13,
  SEGMENT_DB = 1u << 14,
  SEGMENT_G = 1u << 15,
};

struct cpu_table {
  uint64_t base;
  uint32_t limit;
};

enum {
  FLAG_CF = 1u << 0,
  FLAG_1 = 1u << 1, /* always 1 */
  FLAG_PF = 1u << 2,
  FLAG_AF = 1u << 4,
  FLAG_ZF = 1u << 6,
  FLAG_SF = 1u << 7,
  FLAG_TF = 1u << 8,
  FLAG_IF = 1u << 9,
  FLAG_DF = 1u << 10,
  FLAG_OF = 1u << 11,
  FLAG_IOPL = 3u << 12,
  FLAG_NT = 1u << 14,
  FLAG_RF = 1u << 16,
  FLAG_VM = 1u << 17,
  FLAG_AC = 1u << 18,
  FLAG_VIF = 1u << 19,
  FLAG_VIP = 1u << 20,
  FLAG_ID = 1u << 21,
  FLAGS_ARITHMETIC = FLAG_CF | FLAG_PF | FLAG_AF | FLAG_ZF | FLAG_SF | FLAG_OF,
};

enum {
  CR0_PE = 1u << 0,
  CR0_MP = 1u << 1,
  CR0_EM = 1u << 2,
  CR0_TS = 1u << 3,
  CR0_ET = 1u << 4,
  CR0_NE = 1u << 5,
  CR0_WP = 1u << 16,
  CR0_AM = 1u << 18,
  CR0_NW = 1u << 29,
  CR0_CD = 1u << 30,
};
#define CR0_PG (1u << 31)

enum {
  CR4_VME = 1u << 0,
  CR4_PVI = 1u << 1,
  CR4_TSD = 1u << 2,
  CR4_DE = 1u << 3,
  CR4_PSE = 1u << 4,
  CR4_PAE = 1u << 5,
  CR4_MCE = 1u << 6,
  CR4_PGE = 1u << 7,
  CR4_PCE = 1u << 8,
  CR4_OSFXSR = 1u << 9,
  CR4_OSXMMEXCPT = 1u << 10,
  CR4_UMIP = 1u << 11,
  CR4_FSGSBASE = 1u << 16,
  CR4_PCIDE = 1u << 17,
  CR4_OSXSAVE = 1u << 18,
  CR4_SMEP = 1u << 20,
  CR4_SMAP = 1u << 21,
  CR4_PKE = 1u << 22,
  CR4_PKS = 1u << 24,
};

enum {
  EFER_SCE = 1u << 0,
  EFER_LME = 1u << 8,
  EFER_LMA = 1u << 10,
  EFER_NXE = 1u << 11,
};

enum {
  DR6_B = 0xFu, /* B0 to B3 */
  DR6_BD = 1u << 13,
  DR6_BS = 1u << 14,
  DR6_BT = 1u << 15,
  DR7_FIXED = 0x400u,
  DR7_GD = 1u << 13,
};
#define DR_ACCESS_POINTS 0x80u
#define DR6_FIXED 0xFFFF0FF0u /* bits that read as 1 */

/* Arithmetic flags, not yet computed. Only flags.h reads and writes it. */
struct cpu_lazy {
  uint64_t result; /* sign-extended: ZF, SF and PF follow from it, corrected by `fix` */
  uint64_t carry;  /* bit 63 is CF, bit 63 ^ bit 62 is OF */
  uint32_t fix;    /* bit 0 inverts PF, bit 1 inverts SF, bit 4 is AF */
};

#endif
