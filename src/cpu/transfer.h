/* SPDX-License-Identifier: Apache-2.0
 *
 * The seam: the one place where RIP changes other than to the next instruction, and so where the recorder, the trace
 * and the predictor hear of it. Called after the last check that could fault.
 */
#ifndef CPU_TRANSFER_H
#define CPU_TRANSFER_H

#include "cpu/block.h"
#include "cpu/fault.h"
#include "cpu/insn.h"

/* A near target: raises #GP(0) when it lies beyond the limit of CS or is not canonical. Before anything is committed.
 * CALL and RET check before they move the stack pointer. */
static inline void transfer_check(struct cpu *cpu, uint64_t target)
{
  if (insn_is_64(cpu)) {
    if ((uint64_t)((int64_t)(target << 16) >> 16) != target)
      fault_gp(cpu, 0);
  } else if (target > cpu->code_limit) {
    fault_gp(cpu, 0);
  }
}

/* The long ways of the functions below: somebody watches; or the next block is not linked yet. */
void transfer_report(struct cpu *cpu, const struct insn *insn, uint64_t target, enum lb_branch_kind kind);
void transfer_report_untaken(struct cpu *cpu, const struct insn *insn);
const struct insn *transfer_link(struct cpu *cpu, const struct insn *insn);
const struct insn *transfer_lookup(struct cpu *cpu);

/* On to the block at cpu->rip, which is always the same after this instruction. */
static inline const struct insn *transfer_to_linked(struct cpu *cpu, const struct insn *insn)
{
  if (__builtin_expect(insn->link_generation == cpu->generation, 1))
    return block_enter(cpu, insn->link);
  return transfer_link(cpu, insn);
}

/* Near relative branch, taken: to insn->imm, which was checked. Returns what runs next. */
static inline const struct insn *transfer_relative(struct cpu *cpu, const struct insn *insn, enum lb_branch_kind kind)
{
  if (__builtin_expect(cpu->watch, 0))
    transfer_report(cpu, insn, insn->imm, kind);
  cpu->rip = insn->imm;
  return transfer_to_linked(cpu, insn);
}

/* Conditional branch: both outcomes. The target is checked inside, if taken. */
static inline const struct insn *transfer_conditional(struct cpu *cpu, const struct insn *insn, bool is_taken)
{
  if (is_taken) {
    bool is_linked = insn->link_generation == cpu->generation; /* then it was checked */
    if (__builtin_expect(!is_linked, 0))
      transfer_check(cpu, insn->imm);
    return transfer_relative(cpu, insn, LB_BRANCH_JCC);
  }
  if (__builtin_expect(cpu->watch, 0))
    transfer_report_untaken(cpu, insn);
  return insn_next(cpu, insn);
}

/* Near indirect jump or call, near return: to `target`, which was checked. */
static inline const struct insn *transfer_indirect(struct cpu *cpu, const struct insn *insn, uint64_t target,
                                                   enum lb_branch_kind kind)
{
  if (__builtin_expect(cpu->watch, 0))
    transfer_report(cpu, insn, target, kind);
  cpu->rip = target;
  return transfer_lookup(cpu);
}

/* The end of a block that did not jump; `insn` is the mark behind its last instruction. */
static inline const struct insn *transfer_sequential(struct cpu *cpu, const struct insn *insn)
{
  cpu->rip = insn->rip;
  return transfer_to_linked(cpu, insn);
}

/* ---- far transfers and events: CS, CPL or mode change in between ---- */

struct transfer {
  uint64_t from, next, from_base;
  uint8_t from_cpl;
  uint8_t flags; /* enum lb_branch_flag: FROM_32, TF */
};

/* Where control comes from: before anything is committed. `from` is the current instruction (cpu->at) inside a handler
 * or fault, `next` the one behind it; between instructions both are cpu->rip. */
struct transfer transfer_begin(const struct cpu *cpu);

/* Commits RIP after the new CS, CPL, flags and mode are in place: a branch of this kind is reported, and the next block
 * is looked for from scratch. For a handler: `return transfer_far(...)`. */
const struct insn *transfer_far(struct cpu *cpu, const struct transfer *transfer, uint64_t target,
                                enum lb_branch_kind kind);

/* The same for an interrupt or exception that enters its handler. `saved` is the instruction pointer that was pushed
 * (or would have been): of a fault the current instruction. */
void transfer_event(struct cpu *cpu, const struct transfer *transfer, uint64_t saved, uint64_t target,
                    enum lb_branch_kind kind);

/* #DB enters its handler: nothing is recorded, LBR and BTF go off. Only who follows hears of it. */
void transfer_debug(struct cpu *cpu, const struct transfer *transfer, uint64_t target);

/* Who watches: after the recorder's registers, the listener or the counters changed. */
void transfer_watch(struct cpu *cpu);

/* Reset, SIPI, SMI, RSM, loaders: RIP is set and nothing is reported. */
void transfer_set(struct cpu *cpu, uint64_t target);

#endif
