/* SPDX-License-Identifier: Apache-2.0
 *
 * Running a Linux program and logging its branches: launch.c starts the program under the runtime of runtime/, which
 * logs the blocks that it executes into shared memory; rebuild.c makes branches of them. The decoder is the runtime's,
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

/* ---- running a program ---- */

/* The runtime: an ELF program without libc, which launch.c executes. */
extern const uint8_t process_runtime[], process_runtime_end[];

struct process_options {
  uint32_t ring_size;      /* bytes of the log, a power of two from 4 MiB to 1 GiB; 0: 64 MiB */
  uint32_t block_capacity; /* blocks that can be told apart, below 2^24; 0: 2^20 */
};

/* A program that was started, and the memory it shares with us. */
struct process {
  int pid;
  uint8_t *memory;
  size_t memory_size;
  uint32_t ring_size, block_capacity;
};

/* Starts the program at the path, which is not searched for, with the arguments and the environment, both ended by
 * NULL; there is at least one argument, the name. Returns 0; -EINVAL: an option out of range; -errno. A program that
 * cannot be executed is no failure here: it shows in process_error. */
int process_launch(const struct process_options *options, const char *path, char *const arguments[],
                   char *const environment[], struct process *ret_process);

/* Waits for its end and reaps it. Returns 0 with what waitpid(2) says, or -errno. */
int process_wait(struct process *process, int *ret_status);

/* Unmaps the memory. Takes one that was never launched, if it is all zero. Does not end the program. */
void process_done(struct process *process);

/* Why the runtime gave up (enum process_error of shared.h, 0: it did not). `ret_system_error`, `ret_address` and
 * `ret_number` may be NULL. */
unsigned process_error(const struct process *process, int *ret_system_error, uint64_t *ret_address,
                       uint64_t *ret_number);

/* Its sentence, "?" for a number that is none. */
const char *process_error_text(unsigned error);

/* ---- its branches ---- */

struct lb_branch;

struct process_branches {
  struct lb_branch *branches; /* in the order in which they were taken */
  size_t count, capacity;
  bool is_cut; /* the log went round: older ones are gone */
};

/* The taken branches of a program that has ended, as far back as the log goes. Returns 0; -ENOMEM; -EBADMSG: the shared
 * memory makes no sense, which the program may be to blame for. */
int process_rebuild(const struct process *process, struct process_branches *ret_branches);

void process_branches_done(struct process_branches *branches);

#endif
