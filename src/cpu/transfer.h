/* SPDX-License-Identifier: Apache-2.0
 *
 * Control transfers: the only place where RIP changes other than to the next instruction. The recorder, the trace and
 * the predictor are told of it here. Called after the last check that could fault.
 */
#ifndef CPU_TRANSFER_H
#define CPU_TRANSFER_H

#include "cpu/block.h"
#include "cpu/fault.h"
#include "cpu/insn.h"

/* Checks a near target before anything is committed: raises #GP(0) if it lies beyond the limit of CS or is not
 * canonical. CALL and RET check before they move the stack pointer. */
static inline void transfer_check(struct cpu *cpu, uint64_t target)
{
  if (insn_is_64(cpu)) {
    if ((uint64_t)((int64_t)(target << 16) >> 16) != target)
      fault_gp(cpu, 0);
  } else if (target > cpu->code_limit) {
    fault_gp(cpu, 0);
  }
}

/* Slower variants of the functions below, which tell a listener of the branch before control continues. */
const struct insn *transfer_watched_jcc(struct cpu *cpu, const struct insn *insn);
const struct insn *transfer_watched_untaken(struct cpu *cpu, const struct insn *insn);
const struct insn *transfer_watched_jump(struct cpu *cpu, const struct insn *insn);
const struct insn *transfer_watched_call(struct cpu *cpu, const struct insn *insn);
const struct insn *transfer_watched_indirect_jump(struct cpu *cpu, const struct insn *insn, const struct block *block);
const struct insn *transfer_watched_indirect_call(struct cpu *cpu, const struct insn *insn, const struct block *block);
const struct insn *transfer_watched_return(struct cpu *cpu, const struct insn *insn, const struct block *block);
/* The slower variant if the next block is not linked yet; nothing was checked. */
const struct insn *transfer_link(struct cpu *cpu, const struct insn *insn, uint64_t target);

/* Continues with a block, if the budget allows. */
static inline __attribute__((always_inline)) const struct insn *transfer_enter(struct cpu *cpu,
                                                                               const struct block *block)
{
  int64_t left = cpu->budget - block->count;

  if (__builtin_expect(left < 0, 0)) {
    cpu->rip = block->rip;
    return NULL;
  }
  cpu->budget = left;
  return insn_go(cpu, block->insns);
}

/* Continues with the block at `target`, which is always the same after this instruction, and inside the limit of CS if
 * it is linked. */
static inline __attribute__((always_inline)) const struct insn *
transfer_to_linked(struct cpu *cpu, const struct insn *insn, uint64_t target)
{
  if (__builtin_expect(insn->link_generation == cpu->generation, 1))
    return transfer_enter(cpu, insn->link);
  return transfer_link(cpu, insn, target);
}

/* Near relative jump and call, to insn->target, which was checked. Return what runs next. */
static inline const struct insn *transfer_jump(struct cpu *cpu, const struct insn *insn)
{
  if (__builtin_expect(cpu->watch, 0))
    return transfer_watched_jump(cpu, insn);
  return transfer_to_linked(cpu, insn, insn->target);
}

static inline const struct insn *transfer_call(struct cpu *cpu, const struct insn *insn)
{
  if (__builtin_expect(cpu->watch, 0))
    return transfer_watched_call(cpu, insn);
  return transfer_to_linked(cpu, insn, insn->target);
}

/* The end of a block that did not jump; `insn` is the marker after its last instruction. */
static inline const struct insn *transfer_sequential(struct cpu *cpu, const struct insn *insn)
{
  return transfer_to_linked(cpu, insn, insn->rip);
}

/* Conditional branch, which is the last instruction of its block: both outcomes. The target is checked inside, if
 * taken. */
static inline const struct insn *transfer_conditional(struct cpu *cpu, const struct insn *insn, bool is_taken)
{
  if (is_taken) {
    bool is_linked = insn->link_generation == cpu->generation; /* then it was checked */

    if (__builtin_expect(!is_linked, 0))
      transfer_check(cpu, insn->target);
    if (__builtin_expect(cpu->watch, 0))
      return transfer_watched_jcc(cpu, insn);
    return transfer_to_linked(cpu, insn, insn->target);
  }
  if (__builtin_expect(cpu->watch, 0))
    return transfer_watched_untaken(cpu, insn);
  return transfer_sequential(cpu, insn + 1);
}

/* The block at `target` in the current code segment, or NULL if cpu->jumps does not have it. In 64-bit mode the segment
 * does not matter. */
static inline __attribute__((always_inline)) const struct block *transfer_known(const struct cpu *cpu, uint64_t target,
                                                                                bool is_64)
{
  const struct block_jump *jump = block_jump_at(cpu, target);

  if (jump->rip != target || jump->generation != cpu->generation || jump->mode != cpu->mode)
    return NULL;
  const struct block *block = jump->block;
  bool is_here = is_64 || (block->cs_base == cpu->segment[CS].linear_base && block->code_limit == cpu->code_limit);
  return is_here ? block : NULL;
}

/* Near indirect jump or call, or near return, to a block that was found this way. */
static inline const struct insn *transfer_to_block(struct cpu *cpu, const struct insn *insn, const struct block *block,
                                                   enum lb_branch_kind kind)
{
  if (__builtin_expect(!cpu->watch, 1))
    return transfer_enter(cpu, block);
  return kind == LB_BRANCH_NEAR_RET        ? transfer_watched_return(cpu, insn, block)
         : kind == LB_BRANCH_NEAR_IND_CALL ? transfer_watched_indirect_call(cpu, insn, block)
                                           : transfer_watched_indirect_jump(cpu, insn, block);
}

/* The same to `target`, which was checked. */
const struct insn *transfer_indirect(struct cpu *cpu, const struct insn *insn, uint64_t target,
                                     enum lb_branch_kind kind);

/* ---- far transfers and events: CS, CPL or mode change in between ---- */

struct transfer {
  uint64_t from, next, from_base;
  uint8_t from_cpl;
  uint8_t flags; /* enum lb_branch_flag: FROM_32, TF */
};

/* Notes where control comes from, before anything is committed. `from` is the current instruction (cpu->at) inside a
 * handler or fault, `next` the one after it; between instructions both are cpu->rip. */
struct transfer transfer_begin(const struct cpu *cpu);

/* Commits RIP after the new CS, CPL, flags and mode are in place. Reports a branch of this kind, and looks up the next
 * block from scratch. For a handler: `return transfer_far(...)`. */
const struct insn *transfer_far(struct cpu *cpu, const struct transfer *transfer, uint64_t target,
                                enum lb_branch_kind kind);

/* The same for an interrupt or exception that enters its handler. `saved` is the instruction pointer that was pushed
 * (or would have been): for a fault, that of the current instruction. */
void transfer_event(struct cpu *cpu, const struct transfer *transfer, uint64_t saved, uint64_t target,
                    enum lb_branch_kind kind);

/* Enters the handler of #DB: nothing is recorded, and LBR and BTF are cleared. Only a debugger's history is told of
 * it. */
void transfer_debug(struct cpu *cpu, const struct transfer *transfer, uint64_t target);

/* Recomputes cpu->watch; to be called after the recorder's registers, the listener or the counters changed. */
void transfer_watch(struct cpu *cpu);

/* Sets RIP and reports nothing: for reset, SIPI, SMI, RSM and loaders. */
void transfer_set(struct cpu *cpu, uint64_t target);

#endif
