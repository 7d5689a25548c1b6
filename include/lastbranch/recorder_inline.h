/* SPDX-License-Identifier: Apache-2.0
 *
 * The everyday cases of lb_recorder_branch, inline: a plain branch that concerns only the LBR stack, or that only goes
 * into a mapped BTS buffer. lb_recorder_record handles everything else. Part of recorder.h; not to be included by
 * itself.
 */
#ifndef LASTBRANCH_RECORDER_INLINE_H
#define LASTBRANCH_RECORDER_INLINE_H

#include "lastbranch/recorder.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Any taken branch, by the slow path. Hosts call lb_recorder_branch. */
void lb_recorder_record(struct lb_recorder *recorder, const struct lb_branch *branch);

/* One word of guest memory. Word by word: a wider load would have to wait for the index that was just stored. */
static inline uint64_t lb_recorder_word(const unsigned char *bytes)
{
  uint64_t word;

  __builtin_memcpy(&word, bytes, sizeof(word));
  return word;
}

/* Stores the branch if it stays inside the mapped page and short of the threshold and the end of the buffer. False, and
 * nothing done, if not. */
static inline bool lb_recorder_bts_quick(struct lb_recorder *recorder, const struct lb_branch *branch)
{
  unsigned char *header = recorder->ds.quick; /* base, index, absolute maximum, threshold */

  if (!header || (branch->flags & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32)))
    return false;
  uint64_t index = lb_recorder_word(header + 8);
  uint64_t offset = index - recorder->ds.page_address;
  uint64_t maximum = lb_recorder_word(header + 16);
  if (offset >= recorder->ds.page_limit || index < lb_recorder_word(header) || maximum < index ||
      maximum - index < 48 || index + 24 >= lb_recorder_word(header + 24))
    return false;
  uint64_t record[3] = {branch->from, branch->to, recorder->ds.flags[branch->flags & LB_BRANCH_MISPREDICTED]};
  __builtin_memcpy(recorder->ds.page + offset, record, sizeof(record));
  index += 24;
  __builtin_memcpy(header + 8, &index, sizeof(index));
  recorder->stored++;
  return true;
}

/* Pushes the record of a plain branch: one that `fast` has a value for, not in a transaction, not a call of the next
 * instruction, and without a base if records hold linear addresses. `outside` has bit 0 for LB_BRANCH_FROM_32, bit 1
 * for LB_BRANCH_TO_32. Returns the record, for the cycles that it may hold. */
static inline struct lb_slot *lb_recorder_push(struct lb_recorder *recorder, uint64_t from, uint64_t to,
                                               unsigned outside, unsigned is_wrong, uint16_t fast)
{
  struct lb_recorder *r = recorder;
  const uint64_t *keep = r->keep[outside];
  const struct lb_slot *set = &r->set[is_wrong];
  struct lb_slot *entry = (struct lb_slot *)(void *)((unsigned char *)r->entries + r->next);

  entry->from = (from & keep[0]) | set->from;
  entry->to = (to & keep[1]) | set->to;
  entry->info = set->info | (uint64_t)fast << 48;
  r->next = (r->next + sizeof(*entry)) & r->wrap;
  return entry;
}

/* The cycles since the last record, which were counted by now, go into this one. */
static inline void lb_recorder_stamp(struct lb_recorder *recorder, struct lb_slot *entry, uint64_t cycles)
{
  entry->to |= cycles << 48 & recorder->to_cycles;
  entry->info |= cycles & recorder->info_cycles;
  recorder->cycles = 0;
}

static inline void lb_recorder_branch(struct lb_recorder *recorder, const struct lb_branch *branch)
{
  struct lb_recorder *r = recorder;
  /* Four neighbours: one load. */
  uint32_t traits =
    branch->kind | (uint32_t)branch->to_cpl << 8 | (uint32_t)branch->flags << 16 | (uint32_t)branch->from_cpl << 24;
  uint16_t fast = (&r->fast[0][0])[traits & 0x3FF];
  bool is_special = traits & (LB_BRANCH_IN_TSX | LB_BRANCH_TO_NEXT) << 16;
  bool is_outside = traits & (LB_BRANCH_FROM_32 | LB_BRANCH_TO_32) << 16;

  if (fast == LB_LONG_WAY || is_special || (is_outside && r->linear && (branch->from_base | branch->to_base))) {
    bool is_stored = r->armed == LB_ARMED_TR && lb_recorder_bts_quick(r, branch);

    if (r->armed && !is_stored)
      lb_recorder_record(r, branch);
    return;
  }
  unsigned outside = traits / (LB_BRANCH_FROM_32 << 16) & 3;
  unsigned is_wrong = traits >> 16 & LB_BRANCH_MISPREDICTED;
  struct lb_slot *entry = lb_recorder_push(r, branch->from, branch->to, outside, is_wrong, fast);
  if (__builtin_expect(r->cycles != 0, 0))
    lb_recorder_stamp(r, entry, r->cycles);
}

/* True while a part of the unit wants taken branches: a host may skip lb_recorder_branch otherwise. */
static inline bool lb_recorder_is_armed(const struct lb_recorder *recorder)
{
  return recorder->armed != 0;
}

/* True where records hold cycles: lb_recorder_clock does nothing otherwise. */
static inline bool lb_recorder_wants_cycles(const struct lb_recorder *recorder)
{
  return (recorder->info_cycles | recorder->to_cycles) != 0;
}

/* Saturates as the field of a record does. */
static inline void lb_recorder_clock(struct lb_recorder *recorder, uint64_t cycles)
{
  uint64_t room = 0xFFFF - recorder->cycles;

  if (lb_recorder_wants_cycles(recorder))
    recorder->cycles += cycles < room ? cycles : room;
}

/* ---- for hosts that know the kind of a branch when they translate it ---- */

/* A near branch within one segment: what lb_recorder_branch needs of it, without a struct lb_branch. */
struct lb_plain_branch {
  uint64_t from, to;
  enum lb_branch_kind kind;
  unsigned cpl;
  unsigned outside; /* bit 0: LB_BRANCH_FROM_32, bit 1: LB_BRANCH_TO_32 */
  bool is_mispredicted;
};

/* True when only the LBR stack takes near branches of this kind, in a code segment of this base: then
 * lb_recorder_plain_branch does all that lb_recorder_branch would. Never so in a transaction, or for a call of the next
 * instruction: the host looks for these two. */
static inline bool lb_recorder_is_plain(const struct lb_recorder *recorder, enum lb_branch_kind kind, unsigned cpl,
                                        uint64_t base)
{
  if (__builtin_expect(recorder->linear & base, 0)) /* records hold linear addresses */
    return false;
  return __builtin_expect(recorder->fast[cpl][kind] != LB_LONG_WAY, 1);
}

/* Records such a branch. `cycles` passed since lb_recorder_clock was called last. */
static inline void lb_recorder_plain_branch(struct lb_recorder *recorder, struct lb_plain_branch branch,
                                            uint64_t cycles)
{
  cycles += recorder->cycles;
  struct lb_slot *entry = lb_recorder_push(recorder, branch.from, branch.to, branch.outside, branch.is_mispredicted,
                                           recorder->fast[branch.cpl][branch.kind]);
  lb_recorder_stamp(recorder, entry, cycles < 0xFFFF ? cycles : 0xFFFF);
}

#ifdef __cplusplus
}
#endif
#endif
