/* SPDX-License-Identifier: Apache-2.0
 *
 * A decoded instruction, and how its handler accesses its operands. decode.c fills it from Zydis; handlers only read
 * it.
 *
 * A handler executes one instruction and returns the next: insn_next() if it does not jump, the result of transfer.h if
 * it jumps, insn_leave() if the run loop must check for events (interrupt flag, mode, translation or debug registers,
 * devices). Faults leave through fault.h and never return: a handler commits its results last, so that the instruction
 * can start again.
 */
#ifndef CPU_INSN_H
#define CPU_INSN_H

#include <string.h>

#include "cpu/access.h"
#include "cpu/cpu.h"

typedef const struct insn *insn_handler(struct cpu *cpu, const struct insn *insn);

/* Defines a handler that calls a function with constants:
 *
 *   HANDLER(vector_pextrb, lane_extract, 1);
 *
 * is, but for a declaration that takes the semicolon,
 *
 *   const struct insn *vector_pextrb(struct cpu *cpu, const struct insn *insn)
 *   {
 *     return lane_extract(cpu, insn, 1);
 *   }
 *
 * and may follow `static`. */
#define HANDLER(name, function, ...)                                                                                   \
  const struct insn *name(struct cpu *cpu, const struct insn *insn)                                                    \
  {                                                                                                                    \
    return function(cpu, insn, __VA_ARGS__);                                                                           \
  }                                                                                                                    \
  insn_handler name

/* The form of the first two operands; handlers with further operands read those themselves. */
enum insn_form {
  FORM_NONE,
  FORM_REG,
  FORM_MEM,
  FORM_IMM,
  FORM_REG_REG,
  FORM_REG_MEM,
  FORM_MEM_REG,
  FORM_REG_IMM,
  FORM_MEM_IMM,
  FORM_OTHER,
};

/* The kind of an operand, where form and sizes do not determine it (op_class). */
enum insn_class {
  CLASS_NONE,
  CLASS_GENERAL,
  CLASS_MMX,
  CLASS_XMM,
  CLASS_YMM,
  CLASS_ST,
  CLASS_MEMORY,
  CLASS_IMMEDIATE,
  CLASS_OTHER,
};

/* How much of a memory operand's address must be checked; known at decoding, since the mode is known (MODE_FLAT). */
enum insn_reach {
  REACH_ANY,     /* any segment */
  REACH_INDEXED, /* a segment that covers all addresses: 64-bit mode, or a flat one */
  REACH_FLAT,    /* the same, and no index; also for the stack, if there is no memory operand */
  INSN_REACHES,
};

/* Distinguishes instructions that share a mnemonic. */
enum insn_variant {
  VARIANT_PLAIN,
  VARIANT_FAR,     /* JMP, CALL and RET to another code segment */
  VARIANT_SEGMENT, /* MOV, PUSH and POP of a segment register, */
  VARIANT_CR,      /* MOV of a control register, */
  VARIANT_DR,      /* MOV of a debug register: insn_writes_special tells in which direction */
  VARIANT_SSE,     /* a legacy SSE instruction, */
  VARIANT_VEX_128, /* and those with VEX */
  VARIANT_VEX_256,
};

enum insn_prefix {
  PREFIX_LOCK = 1,
  PREFIX_REP = 2,   /* F3 where it repeats (REP, REPE) */
  PREFIX_REPNE = 4, /* F2 where it repeats */
};

struct insn {
  insn_handler *run;
  uint64_t rip;  /* its own offset in CS */
  uint64_t disp; /* of its memory operand; relative to RIP: already the whole address */
  union {
    uint64_t imm;        /* first immediate, sign-extended to 64 bits */
    uint64_t target;     /* of a near relative branch: the offset in CS that it leads to, cut to the operand size */
    uint64_t far_offset; /* of a far pointer */
    uint64_t service;    /* of the ROM's call of a firmware service: its number */
  };
  uint64_t address_mask; /* by address size */
  struct block *link;    /* branches: the block at target, if it is known (transfer.c) */
  uint32_t link_generation;
  uint16_t mnemonic; /* ZydisMnemonic */
  union {
    uint16_t second_imm;   /* of ENTER, EXTRQ and the like */
    uint16_t far_selector; /* of a far pointer */
  };
  uint8_t op[4]; /* operands 0 to 3 that are registers. General registers: offset in bytes into cpu->r (8 * number, + 1
                    for AH to BH). Other registers: the number. */
  uint8_t size;  /* of operand 0 (for stack, string and branch instructions the operand size) in bytes, 1 to 64 */
  uint8_t size2; /* of operand 1 */
  uint8_t memory_size; /* of the memory operand in bytes, 0 without one or when it does not fit a byte */
  uint8_t base, index; /* of the memory operand, as offsets into cpu->r; ZERO * 8 for none */
  uint8_t scale;       /* shift: 0 to 3 */
  uint8_t segment;     /* of the memory operand */
  uint8_t address_size;
  uint8_t form;     /* enum insn_form */
  uint8_t prefixes; /* enum insn_prefix */
  uint8_t length;
  uint8_t left;        /* instructions of this block from here on, including this one */
  uint8_t operands;    /* how many are visible */
  uint8_t reach;       /* enum insn_reach */
  uint8_t variant;     /* enum insn_variant */
  uint8_t op_class[4]; /* enum insn_class of operands 0 to 3 */
};

/* ---- ways to choose a handler: see instruction.c ---- */

typedef insn_handler *insn_chooser(const struct insn *insn);

/* ---- the next instruction ---- */

static inline uint64_t insn_next_rip(const struct insn *insn)
{
  return insn->rip + insn->length;
}

/* Continues with an instruction of a block. Optimised builds jump from handler to handler (LB_THREADED, meson.build):
 * the call below is a sibling call, for which the stack does not grow; tests/tools/check-threads checks the object
 * files for this. All other builds return the instruction to the run loop. Handlers that rarely run may return it too:
 * insn + 1. */
static inline __attribute__((always_inline)) const struct insn *insn_go(struct cpu *cpu, const struct insn *insn)
{
#ifdef LB_THREADED
  cpu->at = insn;
  return insn->run(cpu, insn);
#else
  (void)cpu;
  return insn;
#endif
}

static inline __attribute__((always_inline)) const struct insn *insn_next(struct cpu *cpu, const struct insn *insn)
{
  return insn_go(cpu, insn + 1);
}

/* The same if the mode is still the one that this block was decoded for; otherwise the run loop looks up the rest of
 * the block. */
const struct insn *insn_next_in(struct cpu *cpu, const struct insn *insn, uint32_t mode);

/* The instruction is done, and the run loop must check for events before the next one. */
const struct insn *insn_leave(struct cpu *cpu, const struct insn *insn);

/* Nothing is done yet: the run loop checks for events, then the instruction starts again. */
const struct insn *insn_before(struct cpu *cpu, const struct insn *insn);

/* An unfinished string instruction allows interrupts and then starts again. */
const struct insn *insn_again(struct cpu *cpu, const struct insn *insn);

/* ---- general registers, by the offset that op[] holds ---- */

static inline uint64_t reg_get(const struct cpu *cpu, unsigned offset, unsigned size)
{
  const uint8_t *at = (const uint8_t *)cpu->r + offset;
  uint8_t u8;
  uint16_t u16;
  uint32_t u32;
  uint64_t u64;

  switch (size) {
  case 1:
    memcpy(&u8, at, 1);
    return u8;
  case 2:
    memcpy(&u16, at, 2);
    return u16;
  case 4:
    memcpy(&u32, at, 4);
    return u32;
  default:
    memcpy(&u64, at, 8);
    return u64;
  }
}

/* A 32-bit result clears the upper half; 8 and 16 bits leave the rest. */
static inline void reg_set(struct cpu *cpu, unsigned offset, unsigned size, uint64_t value)
{
  uint8_t *at = (uint8_t *)cpu->r + offset;
  uint8_t u8 = (uint8_t)value;
  uint16_t u16 = (uint16_t)value;
  uint64_t u64 = size == 4 ? (uint32_t)value : value;

  switch (size) {
  case 1:
    memcpy(at, &u8, 1);
    break;
  case 2:
    memcpy(at, &u16, 2);
    break;
  default:
    memcpy(at, &u64, 8);
  }
}

/* ---- memory operand ---- */

static inline uint64_t insn_address(const struct cpu *cpu, const struct insn *insn)
{
  uint64_t base = reg_get(cpu, insn->base, 8);
  uint64_t index = reg_get(cpu, insn->index, 8);

  return (base + (index << insn->scale) + insn->disp) & insn->address_mask;
}

/* Without an index. */
static inline uint64_t insn_address_plain(const struct cpu *cpu, const struct insn *insn)
{
  return (reg_get(cpu, insn->base, 8) + insn->disp) & insn->address_mask;
}

static inline uint64_t insn_load(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  return access_load(cpu, insn->segment, insn_address(cpu, insn), size);
}

/* The same for an operand that insn_store will write back: faults as a write does. */
static inline uint64_t insn_load_to_modify(struct cpu *cpu, const struct insn *insn, unsigned size)
{
  return access_load_to_modify(cpu, insn->segment, insn_address(cpu, insn), size);
}

static inline void insn_store(struct cpu *cpu, const struct insn *insn, unsigned size, uint64_t value)
{
  access_store(cpu, insn->segment, insn_address(cpu, insn), size, value);
}

/* For VARIANT_SEGMENT, VARIANT_CR and VARIANT_DR: whether the special register is the destination. */
static inline bool insn_writes_special(const struct insn *insn)
{
  return insn->op_class[0] == CLASS_OTHER;
}

static inline bool insn_is_64(const struct cpu *cpu)
{
  return (cpu->mode & MODE_BITS) == MODE_64;
}

#endif
