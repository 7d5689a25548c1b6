/* SPDX-License-Identifier: Apache-2.0
 *
 * Code for the cache: instructions that the runtime writes itself, and those of the application.
 */
#ifndef PROCESS_RUNTIME_EMIT_H
#define PROCESS_RUNTIME_EMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "process/process.h"

#pragma GCC visibility push(hidden)

enum { GPR_RAX, GPR_RCX, GPR_RDX, GPR_RBX, GPR_RSP, GPR_RBP, GPR_RSI, GPR_RDI, GPR_R8, GPR_R9, GPR_R10, GPR_R11 };

/* ---- bytes of instructions (emit.c) ---- */

struct emitter {
  uint8_t *at;
};

/* These are inline: the translator calls them for every instruction. */

static inline void emit_byte(struct emitter *emitter, unsigned byte)
{
  *emitter->at++ = (uint8_t)byte;
}

static inline void emit_u32(struct emitter *emitter, uint32_t value)
{
  __builtin_memcpy(emitter->at, &value, 4);
  emitter->at += 4;
}

static inline void emit_u64(struct emitter *emitter, uint64_t value)
{
  __builtin_memcpy(emitter->at, &value, 8);
  emitter->at += 8;
}

/* At most 16 bytes: two pieces of equal size, which may overlap. */
static inline void emit_bytes(struct emitter *emitter, const void *bytes, size_t size)
{
  const uint8_t *from = bytes;
  uint8_t *to = emitter->at;

  emitter->at += size;
  if (size >= 8) {
    uint64_t first, last;

    __builtin_memcpy(&first, from, 8);
    __builtin_memcpy(&last, from + size - 8, 8);
    __builtin_memcpy(to, &first, 8);
    __builtin_memcpy(to + size - 8, &last, 8);
  } else if (size >= 4) {
    uint32_t first, last;

    __builtin_memcpy(&first, from, 4);
    __builtin_memcpy(&last, from + size - 4, 4);
    __builtin_memcpy(to, &first, 4);
    __builtin_memcpy(to + size - 4, &last, 4);
  } else {
    for (size_t i = 0; i < size; i++)
      to[i] = from[i];
  }
}

/* None of these touches flags. A register is below 8, a slot an offset from GS. */
void emit_spill(struct emitter *emitter, unsigned reg, uint32_t slot);
void emit_reload(struct emitter *emitter, unsigned reg, uint32_t slot);
void emit_address(struct emitter *emitter, unsigned reg, uint64_t address);

/* R11 is the log's pointer wherever units begin and end, and the application's R11 is in its slot. A unit that uses R11
 * gives it back to the application at its entry and takes it again where it leaves; meanwhile the pointer is in
 * state->log. */
void emit_take_r11(struct emitter *emitter);
void emit_give_r11(struct emitter *emitter);

/* Logs an entry; R11 is the log's pointer. */
void emit_log(struct emitter *emitter, uint32_t entry);

void emit_jump(struct emitter *emitter, const uint8_t *to);
void emit_patch(uint8_t *site, const uint8_t *to);
void emit_leave(struct emitter *emitter, uint32_t slot);         /* JMP *%gs:slot */
void emit_exit_number(struct emitter *emitter, uint32_t number); /* into state->exit */

/* RCX holds the target; RCX and RDX are spilled. Jumps to the entry for indirect branches that one of the lookup tables
 * has for the target. */
void emit_lookup(struct emitter *emitter, bool is_wide);

/* Does RCX hold the address? `options` (enum process_option) says which instructions the processor has. If the answer
 * is yes, none of this takes a branch on a processor with PROCESS_LOOP: taken branches fill the processor's table of
 * branch targets, and a large program has more of them than the table has room for.
 *
 * emit_check: if it does, continues after this code, and RCX is lost. Otherwise jumps to the target of the last four
 * bytes, a rel32 that the caller fills in; emit_check_undo then restores RCX. Both use RCX alone.
 * emit_check_near: the same, but jumps to `miss`, at most 100 bytes before it, where RCX plus the address is the
 * earlier value of RCX. RDX is lost, too. */
void emit_check(struct emitter *emitter, unsigned options, uint64_t address);
void emit_check_undo(struct emitter *emitter, unsigned options, uint64_t address);
void emit_check_near(struct emitter *emitter, unsigned options, uint64_t address, const uint8_t *miss);

/* ---- the application's instructions (copy.c) ---- */

/* How a translation must treat an instruction. */
enum copy_verdict { COPY_FINE, COPY_REFUSE, COPY_GS };

enum copy_verdict copy_check(const struct code *code, const uint8_t *bytes);

bool copy_uses_r11(const struct code *code, const uint8_t *bytes);

/* Copies an instruction that is no branch. Returns the registers in their slots while it runs: enum place_spill. */
unsigned copy_plain(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

/* Loads the target of an indirect branch, or the address of a far pointer, into RCX, which is spilled. */
void copy_target(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);
void copy_far(struct emitter *emitter, const struct code *code, const uint8_t *bytes, uint64_t address);

#pragma GCC visibility pop

#endif
