/* SPDX-License-Identifier: Apache-2.0
 *
 * The LBR stack: which branches it takes, how a record is pushed and popped, LER, AMD's pair and branch sampling. The
 * entries are one ring for every CPU. On CPUs with a TOS register, lbr_tos is that register. On CPUs where entry 0 is
 * always the newest (architectural LBR, AMD version 2), the registers are numbered backwards from it. Intel SDM vol. 3
 * (June 2016) 17.4 to 17.14; 319433-040 chapter 7 for architectural LBR; Linux events/amd.
 */
#include <assert.h>
#include <string.h>

#include "recorder/unit.h"

/* IA32_LBR_CTL's bit for each class; the order differs from MSR_LBR_SELECT's. */
static const uint8_t ctl_bit[] = {
  [LB_CLASS_JCC] = 16,           [LB_CLASS_NEAR_REL_JMP] = 17,  [LB_CLASS_NEAR_IND_JMP] = 18,
  [LB_CLASS_NEAR_REL_CALL] = 19, [LB_CLASS_NEAR_IND_CALL] = 20, [LB_CLASS_NEAR_RET] = 21,
  [LB_CLASS_FAR] = 22,
};

/* BR_TYPE of an architectural record, by class. */
static const uint8_t branch_type[] = {
  [LB_CLASS_JCC] = 0,           [LB_CLASS_NEAR_IND_JMP] = 1, [LB_CLASS_NEAR_REL_JMP] = 2, [LB_CLASS_NEAR_IND_CALL] = 3,
  [LB_CLASS_NEAR_REL_CALL] = 4, [LB_CLASS_NEAR_RET] = 5,     [LB_CLASS_FAR] = 8,
};

/* On some CPUs the contents are undefined while TR=1: on P6 always (SDM 17.14), on others with LBR=1 (17.4.4). The
 * model leaves them unchanged. */
bool lb_recorder_is_undefined(const struct lb_recorder *r)
{
  if (!unit_debugctl(r, LB_DEBUGCTL_TR) || lb_cpu_has(r->cpu, LB_FEATURE_LBR_WITH_TR))
    return false;
  return unit_debugctl(r, LB_DEBUGCTL_LBR) || lb_cpu_quirk(r->cpu, LB_QUIRK_P6_TR_SPOILS_LBR);
}

static bool lbr_is_enabled(const struct lb_recorder *r)
{
  if (unit_is_arch(r))
    return r->lbr.ctl & LBR_CTL_LBREN;
  if (lb_cpu_has(r->cpu, LB_FEATURE_LBR_V2))
    return r->lbr.extn & EXTN_LBRV2EN;
  if (lb_cpu_has(r->cpu, LB_FEATURE_BRS))
    return false; /* branch sampling has its own conditions: lbr_brs_take */
  if (unit_debugctl(r, LB_DEBUGCTL_LBR))
    return !lb_recorder_is_undefined(r);
  return unit_option(r, LB_OPTION_TR_UPDATES_LBR) && unit_debugctl(r, LB_DEBUGCTL_TR) &&
         lb_cpu_has(r->cpu, LB_FEATURE_LBR_WITH_TR);
}

bool lbr_is_on(const struct lb_recorder *r)
{
  if (r->depth == 0 || r->is_pt_on || (r->pmu.status & STATUS_LBR_FRZ))
    return false;
  if (r->smm.is_inside && unit_option(r, LB_OPTION_SMM_STOPS_LBR))
    return false;
  return lbr_is_enabled(r);
}

/* MSR_LBR_SELECT with the classes that a set bit suppresses besides its own. SDM tables 17-11, 17-12; experiment
 * 14-4. */
static uint64_t select_effective(const struct lb_recorder *r)
{
  uint64_t select = r->lbr.select;

  if (!lb_cpu_quirk(r->cpu, LB_QUIRK_NHM_SELECT))
    return select;
  if (select & LBR_SELECT_CLASS(LB_CLASS_NEAR_IND_JMP))
    select |= LBR_SELECT_CLASS(LB_CLASS_NEAR_IND_CALL) | LBR_SELECT_CLASS(LB_CLASS_NEAR_RET);
  if (select & LBR_SELECT_CLASS(LB_CLASS_NEAR_REL_JMP))
    select |= LBR_SELECT_CLASS(LB_CLASS_NEAR_REL_CALL);
  return select;
}

static bool class_is_taken(const struct lb_recorder *r, unsigned class)
{
  if (unit_is_arch(r))
    return (r->lbr.ctl >> ctl_bit[class]) & 1;
  return !(select_effective(r) & LBR_SELECT_CLASS(class));
}

static bool ring_is_taken(const struct lb_recorder *r, bool is_user)
{
  if (unit_is_arch(r))
    return r->lbr.ctl & (is_user ? LBR_CTL_USR : LBR_CTL_OS);
  return !(r->lbr.select & (is_user ? LBR_SELECT_CPL_NEQ_0 : LBR_SELECT_CPL_EQ_0));
}

static bool is_call_stack(const struct lb_recorder *r)
{
  return unit_is_arch(r) ? r->lbr.ctl & LBR_CTL_CALL_STACK : r->lbr.select & LBR_SELECT_EN_CALLSTACK;
}

/* LBR_SELECT is one register for both threads on Nehalem and Westmere. SDM 17.8. */
void lbr_share_select(struct lb_recorder *r)
{
  if (!r->sibling || !lb_cpu_has(r->cpu, LB_FEATURE_SELECT_PER_CORE))
    return;
  r->sibling->lbr.select = r->lbr.select;
  unit_update(r->sibling);
}

/* INIT and RSM are branches only where the architectural LBR table lists them; AMD records RSM (APM vol. 2, 13.1.6). */
static bool kind_exists(const struct lb_recorder *r, unsigned kind)
{
  if (unit_is_arch(r))
    return true;
  return kind != LB_BRANCH_INIT && (kind != LB_BRANCH_RSM || unit_is_amd(r));
}

/* Counters that log their events into records: INFO[39:32] then changes from record to record. */
static bool logs_events(const struct lb_recorder *r)
{
  for (unsigned i = 0; i < 4; i++)
    if (r->pmu.select[i] & EVTSEL_EN_LBR_LOG && r->cpu->leaf_1c[2] >> (16 + i) & 1)
      return true;
  return false;
}

/* Whether lb_recorder_branch must not push any record by itself. */
static bool is_special(const struct lb_recorder *r)
{
  bool is_odd = r->depth & (r->depth - 1); /* lb_recorder_branch wraps by a mask */
  bool one_ring = unit_is_arch(r) && (!ring_is_taken(r, false) || !ring_is_taken(r, true));

  return is_odd || one_ring || logs_events(r) || unit_option(r, LB_OPTION_LBR_CPL_OF_SOURCE) ||
         (unit_has_cycles(r) && !r->lbr.cycles_valid) || unit_option(r, LB_OPTION_LER_OF_EXECUTED);
}

/* Sets the kinds that lb_recorder_branch may push by itself. */
static void filter_fast(struct lb_recorder *r)
{
  uint32_t never = is_special(r) ? UINT32_MAX : UINT32_C(1) << LB_BRANCH_TSX_ABORT;

  for (unsigned cpl = 0; cpl < 4; cpl++)
    for (unsigned kind = 0; kind < LB_BRANCH_KINDS; kind++) {
      bool is_fast = r->armed == ARMED_LBR && (r->lbr_kinds[cpl != 0] & ~never) >> kind & 1;

      r->fast[cpl][kind] = is_fast ? (uint16_t)(r->info_top[kind] << 8 | (kind + 1)) : LB_LONG_WAY;
    }
}

void lbr_filter(struct lb_recorder *r)
{
  uint32_t taken = 0;
  uint32_t popping = 0;

  for (unsigned kind = 0; kind < LB_BRANCH_KINDS; kind++)
    if (kind_exists(r, kind) && class_is_taken(r, lb_branch_kind_class(kind)))
      taken |= UINT32_C(1) << kind;
  if (is_call_stack(r)) {
    popping = taken & (UINT32_C(1) << LB_BRANCH_NEAR_RET);
    taken &= ~popping;
  }
  for (int user = 0; user < 2; user++) {
    r->lbr_kinds[user] = ring_is_taken(r, user) ? taken : 0;
    r->pop_kinds[user] = ring_is_taken(r, user) ? popping : 0;
  }
  filter_fast(r);
}

/* ---- one record ---- */

static uint64_t tsx_flags(const struct lb_recorder *r, const struct lb_branch *b)
{
  if (!unit_has_tsx(r))
    return 0;
  return (uint64_t)((b->flags & LB_BRANCH_IN_TSX) != 0) << 62 | (uint64_t)(b->kind == LB_BRANCH_TSX_ABORT) << 61;
}

/* INFO of an architectural record without MISPRED, TSX and cycles. CPUID.1CH:ECX says which parts it has. */
static uint64_t arch_info(struct lb_recorder *r, const struct lb_branch *b)
{
  uint64_t info = (uint64_t)r->info_top[b->kind] << 56;

  if (!r->lbr.cycles_valid)
    info &= ~(UINT64_C(1) << 60);
  for (unsigned i = 0; i < 4; i++) {
    if (r->cpu->leaf_1c[2] >> (16 + i) & 1)
      info |= (uint64_t)(r->lbr.events[i] & 3) << (32 + 2 * i);
    r->lbr.events[i] = 0;
  }
  return info;
}

/* The first record after a deep C-state and the first architectural record have no cycle count. */
static void put_cycles(struct lb_recorder *r, struct lb_slot *slot)
{
  uint64_t cycles = r->lbr.cycles_valid ? r->cycles : 0;

  slot->to |= cycles << 48 & r->to_cycles;
  slot->info |= cycles & r->info_cycles;
  r->cycles = 0;
  if (!r->lbr.cycles_valid) {
    r->lbr.cycles_valid = true;
    filter_fast(r);
  }
}

/* INFO[63:56] of an architectural record by kind: BR_TYPE, and CYC_CNT_VALID. */
static void format_arch(struct lb_recorder *r)
{
  uint32_t leaf = r->cpu->leaf_1c[2];

  r->set[1].info = leaf & 1 ? UINT64_C(1) << 63 : 0;
  r->info_cycles = leaf & 2 ? 0xFFFF : 0;
  for (unsigned kind = 0; kind < LB_BRANCH_KINDS; kind++)
    r->info_top[kind] = (leaf & 4 ? branch_type[lb_branch_kind_class(kind)] : 0) | (leaf & 2 ? 0x10 : 0);
}

/* FROM[63] is MISPRED, and `flags` top bits of FROM are no address. */
static void format_flags(struct lb_recorder *r, unsigned flags)
{
  r->keep[0][0] = unit_mask(64 - flags);
  r->set[1].from = UINT64_C(1) << 63;
}

/* Outside 64-bit mode an address has 32 bits. */
static void format_narrow(struct lb_recorder *r)
{
  for (unsigned i = 1; i < 4; i++) {
    r->keep[i][0] = i & 1 ? UINT32_MAX : r->keep[0][0];
    r->keep[i][1] = i & 2 ? UINT32_MAX : r->keep[0][1];
  }
}

/* Where the parts of a record go. SDM tables 17-7 to 17-9, 17-14; Linux events/amd/lbr.c. */
void lbr_format(struct lb_recorder *r)
{
  r->keep[0][0] = r->keep[0][1] = lb_cpu_has(r->cpu, LB_FEATURE_LONG_MODE) ? UINT64_MAX : UINT32_MAX;
  switch (r->cpu->format) {
  case LB_FORMAT_EIP_FLAGS:
    format_flags(r, 1);
    break;
  case LB_FORMAT_EIP_TSX:
    format_flags(r, 3);
    break;
  case LB_FORMAT_INFO:
  case LB_FORMAT_LIP_INFO:
    r->set[1].info = UINT64_C(1) << 63;
    r->info_cycles = 0xFFFF;
    break;
  case LB_FORMAT_ARCH:
    format_arch(r);
    break;
  case LB_FORMAT_LIP_CYCLES:
    format_flags(r, 1);
    r->keep[0][1] = unit_mask(48);
    r->to_cycles = ~unit_mask(48);
    break;
  case LB_FORMAT_AMD_V2: /* TO: VALID, not SPEC: every record here is of the right path */
    format_flags(r, 1);
    r->keep[0][1] = unit_mask(61);
    r->set[0].to = r->set[1].to = UINT64_C(1) << 63;
    break;
  case LB_FORMAT_AMD_BRS:
    r->keep[0][1] = unit_mask(61);
    break;
  default: /* LIP, EIP, OFFSET32, LINEAR, 32, AMD: addresses alone */
    break;
  }
  format_narrow(r);
}

/* An address as records hold it: offset or linear. Outside 64-bit mode it has 32 bits. */
static uint64_t lbr_address(const struct lb_recorder *r, uint64_t offset, uint64_t base, bool is_32)
{
  return is_32 ? (offset + (base & r->linear)) & UINT32_MAX : offset;
}

/* The record of this branch in the CPU's format. */
static void lbr_encode(struct lb_recorder *r, const struct lb_branch *b, struct lb_slot *slot)
{
  unsigned mispredicted = b->flags & LB_BRANCH_MISPREDICTED;
  uint64_t from = lbr_address(r, b->from, b->from_base, b->flags & LB_BRANCH_FROM_32);
  uint64_t to = lbr_address(r, b->to, b->to_base, b->flags & LB_BRANCH_TO_32);

  slot->from = (from & r->keep[0][0]) | r->set[mispredicted].from;
  slot->to = (to & r->keep[0][1]) | r->set[mispredicted].to;
  slot->info = r->set[mispredicted].info | (uint64_t)(b->kind + 1) << SLOT_KIND_SHIFT;
  if (r->cpu->format == LB_FORMAT_ARCH)
    slot->info |= arch_info(r, b);
  if (unit_has_cycles(r))
    put_cycles(r, slot);
  if (r->cpu->format == LB_FORMAT_EIP_TSX)
    slot->from |= tsx_flags(r, b);
  else if (r->cpu->format == LB_FORMAT_INFO || r->cpu->format == LB_FORMAT_ARCH)
    slot->info |= tsx_flags(r, b);
}

static void lbr_pop(struct lb_recorder *r)
{
  unsigned tos = lbr_tos(r);

  r->entries[tos] = (struct lb_slot){0};
  lbr_set_tos(r, (tos ? tos : r->depth) - 1);
}

static struct lb_slot *lbr_push(struct lb_recorder *r, const struct lb_branch *b)
{
  unsigned top = (unsigned)(r->next / sizeof(struct lb_slot));

  lbr_encode(r, b, &r->entries[top]);
  lbr_set_tos(r, top);
  return &r->entries[top];
}

/* For architectural LBR the SDM says that LER is filtered in the same way as the stack (vol. 3, 20.1); the option does
 * not apply there. */
static bool ler_is_of_executed(const struct lb_recorder *r)
{
  return unit_option(r, LB_OPTION_LER_OF_EXECUTED) && !unit_is_arch(r);
}

/* A branch that is filtered out may still pop the stack, or be kept for LER. */
static void lbr_leave_out(struct lb_recorder *r, const struct lb_branch *b, bool is_user)
{
  if (r->pop_kinds[is_user] >> b->kind & 1)
    lbr_pop(r);
  if (ler_is_of_executed(r)) {
    uint64_t cycles = r->cycles;
    bool valid = r->lbr.cycles_valid;
    uint8_t events[sizeof(r->lbr.events)];

    memcpy(events, r->lbr.events, sizeof(events));
    lbr_encode(r, b, &r->lbr.executed);
    r->cycles = cycles; /* this is no LBR update: the clock and the event counts continue */
    r->lbr.cycles_valid = valid;
    memcpy(r->lbr.events, events, sizeof(events));
  }
}

/* A call to the next instruction only reads the instruction pointer: SDM 17.9. Architectural LBR never records it. */
static bool is_no_branch(const struct lb_recorder *r, const struct lb_branch *b)
{
  return b->kind == LB_BRANCH_NEAR_REL_CALL && (unit_is_arch(r) || is_call_stack(r));
}

void lbr_take(struct lb_recorder *r, const struct lb_branch *b)
{
  bool is_user = (unit_option(r, LB_OPTION_LBR_CPL_OF_SOURCE) ? b->from_cpl : b->to_cpl) != 0;

  if (!(r->lbr_kinds[is_user] >> b->kind & 1)) {
    lbr_leave_out(r, b, is_user);
    return;
  }
  if (b->flags & LB_BRANCH_TO_NEXT && is_no_branch(r, b))
    return;
  struct lb_slot *entry = lbr_push(r, b);
  /* If the privilege level of the origin is filtered out, an architectural record does not show the origin. */
  if (r->cpu->format == LB_FORMAT_ARCH && !ring_is_taken(r, b->from_cpl != 0))
    entry->from = UINT64_MAX;
  if (ler_is_of_executed(r))
    r->lbr.executed = *entry;
}

/* AMD Zen 3+: LastBranchFromIP and ToIP are updated in addition to the newer stacks. */
void lbr_pair_take(struct lb_recorder *r, const struct lb_branch *b)
{
  r->lbr.last.from = lbr_address(r, b->from, b->from_base, b->flags & LB_BRANCH_FROM_32);
  r->lbr.last.to = lbr_address(r, b->to, b->to_base, b->flags & LB_BRANCH_TO_32);
}

/* ---- AMD branch sampling: Linux events/amd/brs.c ---- */

static void brs_stop(struct lb_recorder *r)
{
  r->lbr.extn &= ~EXTN_BRSMEN;
  r->lbr.is_capturing = false;
  unit_update(r);
  if (r->lbr.is_holding) {
    r->lbr.is_holding = false;
    pmi_request(r, PMI_COUNTER);
  }
}

void lbr_brs_begin(struct lb_recorder *r, bool wants_pmi)
{
  r->lbr.is_capturing = true;
  r->lbr.is_holding = wants_pmi;
  unit_update(r);
}

void lbr_brs_take(struct lb_recorder *r, const struct lb_branch *b)
{
  unsigned offset = (r->lbr.extn & EXTN_MSROFF) >> EXTN_MSROFF_SHIFT;

  lbr_encode(r, b, &r->entries[offset]);
  lbr_set_tos(r, offset);
  offset = (offset + 1) % r->depth;
  r->lbr.extn = (r->lbr.extn & ~EXTN_MSROFF) | EXTN_VB | (uint64_t)offset << EXTN_MSROFF_SHIFT;
  if (offset == 0)
    brs_stop(r);
}

/* ---- the newest record ---- */

const struct lb_slot *lbr_newest(const struct lb_recorder *r)
{
  return unit_has_pair(r) ? &r->lbr.last : &r->entries[lbr_tos(r)];
}

/* An interrupt or exception: LER gets the branch before it. SDM 17.4.8.3, 17.11.3, 17.14.2. */
void lbr_ler_update(struct lb_recorder *r)
{
  bool executed = ler_is_of_executed(r) && !unit_has_pair(r); /* the pair has no filter */

  r->lbr.ler = executed ? r->lbr.executed : *lbr_newest(r);
}

void lbr_clear(struct lb_recorder *r)
{
  memset(r->entries, 0, sizeof(r->entries));
  memset(r->lbr.events, 0, sizeof(r->lbr.events));
  lbr_set_tos(r, 0);
  r->cycles = 0;
  r->lbr.cycles_valid = !unit_is_arch(r); /* CYC_CNT_VALID is 0 in the first architectural record */
}

unsigned lbr_index(const struct lb_recorder *r, unsigned age)
{
  assert(age < r->depth);
  return (lbr_tos(r) + r->depth - age) % r->depth;
}
