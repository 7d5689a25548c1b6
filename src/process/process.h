/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a Linux program and logging its branches. So far: the decoder that the runtime inside the program will use,
 * which must do without libc and without Zydis.
 */
#ifndef PROCESS_PROCESS_H
#define PROCESS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an instruction of 64-bit mode ends a block, or that it does not. */
enum code_flow {
  CODE_PLAIN,
  CODE_JCC,      /* Jcc: imm is the displacement */
  CODE_LOOP,     /* LOOPcc, JrCXZ */
  CODE_JMP,      /* near relative */
  CODE_CALL,     /* near relative */
  CODE_JMP_IND,  /* near, through register or memory */
  CODE_CALL_IND, /* likewise */
  CODE_RET,      /* near; imm is what it takes off the stack */
  CODE_FAR,      /* far jumps, calls and returns, IRET */
  CODE_SYSCALL,
  CODE_INT, /* INT n, INT3, INT1, SYSENTER */
  CODE_UD,  /* UD0, UD1, UD2, HLT: goes no further */
};

enum code_prefix {
  CODE_66 = 1 << 0,
  CODE_67 = 1 << 1,
  CODE_F2 = 1 << 2,
  CODE_F3 = 1 << 3,
  CODE_LOCK = 1 << 4,
  CODE_FS = 1 << 5,
  CODE_GS = 1 << 6,
};

/* Where the parts of an instruction lie. */
struct code {
  uint8_t length;
  uint8_t flow;     /* enum code_flow */
  uint8_t prefixes; /* enum code_prefix */
  uint8_t rex;      /* 0: none. Of VEX, EVEX and XOP the bits as REX has them */
  uint8_t map;      /* 0 one-byte, 1 0F, 2 0F38, 3 0F3A; the map field of VEX, EVEX and XOP */
  uint8_t opcode;
  uint8_t encoding;     /* 0 legacy, else the first byte: 0xC4, 0xC5, 0x62, 0x8F */
  uint8_t modrm_offset; /* 0: none */
  uint8_t modrm;
  uint8_t disp_offset, disp_size; /* size 0: none; MOV with an absolute address has 8 */
  uint8_t imm_offset, imm_size;
  bool is_rip_relative;
};

/* Takes the instruction of 64-bit mode at `bytes` apart as far as copying it needs. It does not say whether the
 * instruction exists, only how long it would be. Returns its length, or 0: it is longer than `size` or 15 bytes, or its
 * opcode is none in 64-bit mode. */
unsigned code_decode(const uint8_t *bytes, size_t size, struct code *ret_code);

#endif
