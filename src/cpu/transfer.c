/* SPDX-License-Identifier: Apache-2.0
 *
 * The slow part of control transfers. See transfer.h. Addresses of records: SDM vol. 3, 17.4.8 and 17.11.2. The cost
 * model: an instruction takes one cycle, a mispredicted branch MISPREDICT_CYCLES more.
 */
#include "cpu/transfer.h"

#include "cpu/cpu.h"
#include "cpu/run.h"
#include "isa/isa.h"

void transfer_watch(struct cpu *cpu)
{
  cpu->watch = (lb_recorder_is_armed(&cpu->recorder) ? WATCH_RECORDER : 0) | (cpu->listener ? WATCH_LISTENER : 0) |
               (cpu->follower ? WATCH_FOLLOWER : 0) | (cpu->progress_is_on ? WATCH_COUNTERS : 0);
}

/* ---- near branches ---- */

/* A jump to itself. The processor counts as waiting once all watchers have seen the jump often enough (an LBR stack
 * full of it, a BTS buffer up to its threshold, a counter up to its overflow). */
static void transfer_spin(struct cpu *cpu)
{
  uint64_t retired = cpu_retired(cpu);

  cpu->spins = retired == cpu->spin_retired + 1 ? cpu->spins + 1 : 0;
  cpu->spin_retired = retired;
  uint64_t enough = cpu->watch & WATCH_COUNTERS   ? UINT64_C(1) << 24
                    : cpu->watch & WATCH_RECORDER ? UINT64_C(1) << 16
                                                  : 0;
  cpu->is_spinning = cpu->spins >= enough && !cpu->had_tf;
}

/* Whether the instruction will jump to itself forever. LOOP counts and CALL fills the stack, so they will not. */
static bool is_endless(const struct insn *insn)
{
  return insn->length && insn->mnemonic != ZYDIS_MNEMONIC_CALL && insn->mnemonic != ZYDIS_MNEMONIC_LOOP &&
         insn->mnemonic != ZYDIS_MNEMONIC_LOOPE && insn->mnemonic != ZYDIS_MNEMONIC_LOOPNE;
}

const struct insn *transfer_link(struct cpu *cpu, const struct insn *insn, uint64_t target)
{
  cpu->rip = target;
  if (target == insn->rip && is_endless(insn)) {
    transfer_spin(cpu);
    return NULL;
  }
  if (cpu->mode & MODE_ONE)
    return NULL;
  struct block *block = block_peek(cpu);
  if (!block)
    return NULL;
  struct insn *own = (struct insn *)insn; /* the block cache's storage */
  own->link = block;
  own->link_generation = cpu->generation;
  return transfer_enter(cpu, block);
}

/* Continues with the block at `target`, which may differ each time. */
static const struct insn *transfer_find(struct cpu *cpu, uint64_t target)
{
  cpu->rip = target;
  if (cpu->mode & MODE_ONE)
    return NULL;
  struct block *block = block_peek(cpu);
  if (!block)
    return NULL;
  *block_jump_at(cpu, target) = (struct block_jump){target, cpu->generation, cpu->mode, block};
  return transfer_enter(cpu, block);
}

static inline bool is_mispredicted(struct cpu *cpu, const struct insn *insn, uint64_t target, enum lb_branch_kind kind)
{
  struct predictor *predictor = &cpu->predictor;

  switch (kind) {
  case LB_BRANCH_JCC:
    return predictor_conditional(predictor, insn->rip, true);
  case LB_BRANCH_NEAR_REL_CALL:
    predictor_call(predictor, insn_next_rip(insn));
    return false;
  case LB_BRANCH_NEAR_IND_CALL:
    predictor_call(predictor, insn_next_rip(insn));
    return predictor_indirect(predictor, insn->rip, target);
  case LB_BRANCH_NEAR_IND_JMP:
    return predictor_indirect(predictor, insn->rip, target);
  case LB_BRANCH_NEAR_RET:
    return predictor_return(predictor, target);
  default:
    return false;
  }
}

/* Advances the recorder's clock up to the branch. While counters run, it is updated together with them. */
static void clock_recorder(struct cpu *cpu)
{
  uint64_t now = cpu_cycles(cpu);

  lb_recorder_clock(&cpu->recorder, now - cpu->reported);
  cpu->reported = now;
}

static void clock_tell(struct cpu *cpu)
{
  if (!lb_recorder_wants_cycles(&cpu->recorder))
    return;
  if (cpu->watch & WATCH_COUNTERS)
    run_sync(cpu);
  else
    clock_recorder(cpu);
}

/* A mispredicted branch takes longer. */
static inline void pass_cycles(struct cpu *cpu, bool is_wrong)
{
  run_pass_cycles(cpu, is_wrong ? MISPREDICT_CYCLES : 0);
}

/* The outcome, as counters classify it, of a taken branch of this kind. */
static inline enum lb_outcome outcome_of(enum lb_branch_kind kind, uint64_t from, uint64_t to)
{
  switch (kind) {
  case LB_BRANCH_JCC:
    return to > from ? LB_OUTCOME_TAKEN_FORWARD : LB_OUTCOME_TAKEN_BACKWARD;
  case LB_BRANCH_NEAR_REL_JMP:
    return LB_OUTCOME_REL_JMP;
  case LB_BRANCH_NEAR_IND_JMP:
    return LB_OUTCOME_IND_JMP;
  case LB_BRANCH_NEAR_REL_CALL:
    return LB_OUTCOME_REL_CALL;
  case LB_BRANCH_NEAR_IND_CALL:
    return LB_OUTCOME_IND_CALL;
  case LB_BRANCH_NEAR_RET:
    return LB_OUTCOME_RET;
  case LB_BRANCH_FAULT:
  case LB_BRANCH_TRAP:
  case LB_BRANCH_INTERRUPT:
  case LB_BRANCH_NMI:
  case LB_BRANCH_MACHINE_CHECK:
    return LB_OUTCOME_EVENT;
  default:
    return LB_OUTCOME_FAR;
  }
}

static inline void count_outcome(struct cpu *cpu, enum lb_outcome outcome, bool is_wrong)
{
  if (is_wrong)
    cpu->progress.mispredicted[outcome]++;
  else
    cpu->progress.predicted[outcome]++;
  pass_cycles(cpu, is_wrong);
}

/* Called after the recorder. */
static inline void count_taken(struct cpu *cpu, enum lb_branch_kind kind, uint64_t from, uint64_t to, bool is_wrong)
{
  count_outcome(cpu, outcome_of(kind, from, to), is_wrong);
  if (__builtin_expect(cpu->counts_inserts, 0))
    cpu->progress.lbr_inserts += lb_recorder_takes(&cpu->recorder, kind, cpu->cpl);
}

static void tell(struct cpu *cpu, const struct lb_branch *branch, bool is_debug)
{
  if ((cpu->watch & WATCH_LISTENER) && !is_debug)
    cpu->listener(cpu->listener_data, branch);
  if (cpu->watch & WATCH_FOLLOWER)
    cpu->follower(cpu->follower_data, branch);
}

static void report(struct cpu *cpu, const struct lb_branch *branch)
{
  if (cpu->watch & WATCH_RECORDER) {
    clock_tell(cpu);
    lb_recorder_branch(&cpu->recorder, branch);
  }
  if (cpu->watch & (WATCH_LISTENER | WATCH_FOLLOWER))
    tell(cpu, branch, false);
}

/* The slow path, for all watchers and all kinds of branches. It is not inline, because a caller with a struct on its
 * stack cannot make a sibling call. */
static __attribute__((noinline)) void transfer_report(struct cpu *cpu, const struct insn *insn, uint64_t target,
                                                      enum lb_branch_kind kind)
{
  bool is_64 = insn_is_64(cpu);
  bool is_wrong = is_mispredicted(cpu, insn, target, kind);
  uint64_t base = is_64 ? 0 : cpu->segment[CS].base;

  if (cpu->watch == WATCH_COUNTERS) {
    count_taken(cpu, kind, insn->rip, target, is_wrong);
    return;
  }
  struct lb_branch branch = {
    .from = insn->rip,
    .to = target,
    .from_base = base,
    .to_base = base,
    .kind = (uint8_t)kind,
    .to_cpl = cpu->cpl,
    .from_cpl = cpu->cpl,
    .flags = (uint8_t)((is_wrong ? LB_BRANCH_MISPREDICTED : 0) | (is_64 ? 0 : LB_BRANCH_FROM_32 | LB_BRANCH_TO_32) |
                       (cpu->had_tf ? LB_BRANCH_TF : 0) |
                       (kind == LB_BRANCH_NEAR_REL_CALL && target == insn_next_rip(insn) ? LB_BRANCH_TO_NEXT : 0)),
  };
  report(cpu, &branch);
  count_taken(cpu, kind, insn->rip, target, is_wrong);
}

/* ---- near branches that are watched ---- */

/* Whether the recorder takes the branch as a plain one. */
static inline __attribute__((always_inline)) bool is_plain(const struct cpu *cpu, const struct insn *insn,
                                                           uint64_t target, enum lb_branch_kind kind)
{
  bool is_call_of_next = kind == LB_BRANCH_NEAR_REL_CALL && target == insn_next_rip(insn);

  if (__builtin_expect(is_call_of_next, 0))
    return false;
  return lb_recorder_is_plain(&cpu->recorder, kind, cpu->cpl, cpu->segment[CS].linear_base);
}

/* Whether only the recorder watches, without counters and predictor. */
static inline __attribute__((always_inline)) bool is_only_recorded(const struct cpu *cpu)
{
  return __builtin_expect(cpu->watch == WATCH_RECORDER && cpu->predictor.kind == PREDICTOR_NONE, 1);
}

static inline __attribute__((always_inline)) void record_after(struct cpu *cpu, const struct insn *insn,
                                                               uint64_t target, enum lb_branch_kind kind, bool is_wrong,
                                                               uint64_t cycles)
{
  const struct lb_plain_branch branch = {insn->rip, target, kind, cpu->cpl, cpu->outside & 3, is_wrong};

  lb_recorder_plain_branch(&cpu->recorder, branch, cycles);
}

/* Cycles up to this instruction that were not yet reported to the counters. */
static inline __attribute__((always_inline)) uint64_t cycles_to(const struct cpu *cpu, const struct insn *insn)
{
  uint64_t now = cpu->retired_base + (uint64_t)(cpu->budget_start - cpu->budget) - insn->left + cpu->extra_cycles;

  return now - cpu->reported;
}

/* Records a plain branch. `progress` is not updated, because no counter runs. */
static inline __attribute__((always_inline)) void record_plain(struct cpu *cpu, const struct insn *insn,
                                                               uint64_t target, enum lb_branch_kind kind, bool is_wrong)
{
  uint64_t cycles = cycles_to(cpu, insn);

  cpu->reported += cycles;
  record_after(cpu, insn, target, kind, is_wrong, cycles);
}

/* The same for a processor with a predictor or counters. The cycles are reported to the counters later. */
static inline __attribute__((always_inline)) void record_counted(struct cpu *cpu, const struct insn *insn,
                                                                 uint64_t target, enum lb_branch_kind kind)
{
  bool is_wrong = is_mispredicted(cpu, insn, target, kind);

  if (cpu->watch & WATCH_COUNTERS) {
    uint64_t cycles = cycles_to(cpu, insn);

    record_after(cpu, insn, target, kind, is_wrong, cycles - cpu->progress.clocked);
    cpu->progress.clocked = cycles;
    count_taken(cpu, kind, insn->rip, target, is_wrong);
  } else {
    record_plain(cpu, insn, target, kind, is_wrong);
    pass_cycles(cpu, is_wrong);
  }
}

static __attribute__((noinline)) const struct insn *relative_reported(struct cpu *cpu, const struct insn *insn,
                                                                      enum lb_branch_kind kind)
{
  transfer_report(cpu, insn, insn->target, kind);
  return transfer_to_linked(cpu, insn, insn->target);
}

const struct insn *transfer_indirect(struct cpu *cpu, const struct insn *insn, uint64_t target,
                                     enum lb_branch_kind kind)
{
  if (cpu->watch)
    transfer_report(cpu, insn, target, kind);
  return transfer_find(cpu, target);
}

#define WATCHED_RELATIVE(name, the_kind)                                                                               \
  static __attribute__((noinline)) const struct insn *name##_counted(struct cpu *cpu, const struct insn *insn)         \
  {                                                                                                                    \
    if ((cpu->watch & ~WATCH_COUNTERS) != WATCH_RECORDER || !is_plain(cpu, insn, insn->target, the_kind))              \
      return relative_reported(cpu, insn, the_kind);                                                                   \
    record_counted(cpu, insn, insn->target, the_kind);                                                                 \
    return transfer_to_linked(cpu, insn, insn->target);                                                                \
  }                                                                                                                    \
  const struct insn *name(struct cpu *cpu, const struct insn *insn)                                                    \
  {                                                                                                                    \
    if (!is_only_recorded(cpu) || !is_plain(cpu, insn, insn->target, the_kind))                                        \
      return name##_counted(cpu, insn);                                                                                \
    record_plain(cpu, insn, insn->target, the_kind, false);                                                            \
    return transfer_to_linked(cpu, insn, insn->target);                                                                \
  }
WATCHED_RELATIVE(transfer_watched_jcc, LB_BRANCH_JCC)
WATCHED_RELATIVE(transfer_watched_jump, LB_BRANCH_NEAR_REL_JMP)
WATCHED_RELATIVE(transfer_watched_call, LB_BRANCH_NEAR_REL_CALL)

#define WATCHED_INDIRECT(name, the_kind)                                                                               \
  static __attribute__((noinline))                                                                                     \
  const struct insn *name##_counted(struct cpu *cpu, const struct insn *insn, const struct block *block)               \
  {                                                                                                                    \
    if ((cpu->watch & ~WATCH_COUNTERS) != WATCH_RECORDER || !is_plain(cpu, insn, block->rip, the_kind))                \
      return transfer_indirect(cpu, insn, block->rip, the_kind);                                                       \
    record_counted(cpu, insn, block->rip, the_kind);                                                                   \
    return transfer_enter(cpu, block);                                                                                 \
  }                                                                                                                    \
  const struct insn *name(struct cpu *cpu, const struct insn *insn, const struct block *block)                         \
  {                                                                                                                    \
    if (!is_only_recorded(cpu) || !is_plain(cpu, insn, block->rip, the_kind))                                          \
      return name##_counted(cpu, insn, block);                                                                         \
    record_plain(cpu, insn, block->rip, the_kind, false);                                                              \
    return transfer_enter(cpu, block);                                                                                 \
  }
WATCHED_INDIRECT(transfer_watched_indirect_jump, LB_BRANCH_NEAR_IND_JMP)
WATCHED_INDIRECT(transfer_watched_indirect_call, LB_BRANCH_NEAR_IND_CALL)
WATCHED_INDIRECT(transfer_watched_return, LB_BRANCH_NEAR_RET)

const struct insn *transfer_watched_untaken(struct cpu *cpu, const struct insn *insn)
{
  if ((cpu->watch & WATCH_COUNTERS) || cpu->predictor.kind != PREDICTOR_NONE)
    count_outcome(cpu, LB_OUTCOME_NOT_TAKEN, predictor_conditional(&cpu->predictor, insn->rip, false));
  return transfer_sequential(cpu, insn + 1);
}

/* ---- far transfers and events ---- */

struct transfer transfer_begin(const struct cpu *cpu)
{
  bool is_64 = insn_is_64(cpu);

  return (struct transfer){
    .from = cpu->at ? cpu->at->rip : cpu->rip,
    .next = cpu->at ? insn_next_rip(cpu->at) : cpu->rip,
    .from_base = is_64 ? 0 : cpu->segment[CS].base,
    .from_cpl = cpu->cpl,
    .flags = (uint8_t)((is_64 ? 0 : LB_BRANCH_FROM_32) | (cpu->had_tf ? LB_BRANCH_TF : 0)),
  };
}

void transfer_set(struct cpu *cpu, uint64_t target)
{
  cpu->rip = target;
}

const struct insn *transfer_far(struct cpu *cpu, const struct transfer *transfer, uint64_t target,
                                enum lb_branch_kind kind)
{
  cpu->rip = target;
  if (!cpu->watch)
    return NULL;
  bool is_64 = insn_is_64(cpu);
  struct lb_branch branch = {
    .from = transfer->from,
    .to = target,
    .from_base = transfer->from_base,
    .to_base = is_64 ? 0 : cpu->segment[CS].base,
    .kind = (uint8_t)kind,
    .from_cpl = transfer->from_cpl,
    .to_cpl = cpu->cpl,
    .flags = (uint8_t)(transfer->flags | (is_64 ? 0 : LB_BRANCH_TO_32)),
  };
  report(cpu, &branch);
  count_taken(cpu, kind, transfer->from, target, false);
  return NULL;
}

static void tell_event(struct cpu *cpu, const struct lb_event *event, bool is_debug)
{
  struct lb_branch branch = {
    .from = event->kind == LB_BRANCH_INTERRUPT || event->kind == LB_BRANCH_NMI || event->kind == LB_BRANCH_TRAP
              ? event->next
              : event->current,
    .to = event->handler,
    .from_base = event->from_base,
    .to_base = event->to_base,
    .kind = event->kind,
    .from_cpl = event->from_cpl,
    .to_cpl = event->to_cpl,
    .flags = event->flags,
  };

  tell(cpu, &branch, is_debug);
}

void transfer_event(struct cpu *cpu, const struct transfer *transfer, uint64_t saved, uint64_t target,
                    enum lb_branch_kind kind)
{
  cpu->rip = target;
  cpu->was_event = true;
  if (!cpu->watch)
    return;
  bool is_64 = insn_is_64(cpu);
  struct lb_event event = {
    .current = transfer->from,
    .next = saved,
    .handler = target,
    .from_base = transfer->from_base,
    .to_base = is_64 ? 0 : cpu->segment[CS].base,
    .kind = (uint8_t)kind,
    .from_cpl = transfer->from_cpl,
    .to_cpl = cpu->cpl,
    .flags = (uint8_t)(transfer->flags | (is_64 ? 0 : LB_BRANCH_TO_32)),
  };
  if (cpu->watch & WATCH_RECORDER) {
    clock_tell(cpu);
    lb_recorder_event(&cpu->recorder, &event);
  }
  if (cpu->watch & (WATCH_LISTENER | WATCH_FOLLOWER))
    tell_event(cpu, &event, false);
  count_taken(cpu, kind, transfer->from, target, false);
}

void transfer_debug(struct cpu *cpu, const struct transfer *transfer, uint64_t target)
{
  bool is_64 = insn_is_64(cpu);
  struct lb_event event = {
    .current = transfer->from,
    .next = transfer->next,
    .handler = target,
    .from_base = transfer->from_base,
    .to_base = is_64 ? 0 : cpu->segment[CS].base,
    .kind = cpu->at ? LB_BRANCH_INT : LB_BRANCH_TRAP, /* INT1 is an instruction */
    .from_cpl = transfer->from_cpl,
    .to_cpl = cpu->cpl,
    .flags = (uint8_t)(transfer->flags | (is_64 ? 0 : LB_BRANCH_TO_32)),
  };

  cpu->rip = target;
  cpu->was_event = true;
  lb_recorder_debug_exception(&cpu->recorder);
  if (cpu->watch & WATCH_FOLLOWER)
    tell_event(cpu, &event, true);
  transfer_watch(cpu);
}
