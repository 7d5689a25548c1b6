/* SPDX-License-Identifier: Apache-2.0
 *
 * From the log of block ids and the block table to taken branches. A block's last instruction and where the next logged
 * block starts say what happened between the two.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "lastbranch/branch.h"
#include "process/process.h"
#include "process/shared.h"

/* The log, oldest entry first. */
struct log {
  const uint8_t *ring;
  uint32_t size; /* in entries */
  uint32_t first, count;
  bool is_cut;
};

static uint32_t ring_entry(const struct log *log, uint32_t at)
{
  return bytes_get_u32(log->ring + (size_t)(at & (log->size - 1)) * 4);
}

/* The entry at the position may be one that was written while the position was not yet moved: the newest. It is that if
 * the one behind it is still empty. In a log that went round it cannot be told from the oldest, and is left out. */
static struct log log_of(const struct process *process)
{
  struct log log = {.ring = process->memory + process_ring_offset(process->block_capacity),
                    .size = process->ring_size / 4};
  uint32_t position = (uint32_t)bytes_get_u64(process->memory + PROCESS_STATE_OFFSET + STATE_LOG) / 4;
  position &= log.size - 1;
  log.is_cut = ring_entry(&log, position + 1);
  if (log.is_cut) {
    log.first = position + 1;
    log.count = log.size - 1;
  } else {
    log.count = position + (ring_entry(&log, position) ? 1 : 0);
  }
  return log;
}

static bool block_get(const struct process *process, uint32_t id, struct process_block *ret_block)
{
  if (id == 0 || id >= process->block_capacity)
    return false;
  memcpy(ret_block, process->memory + PROCESS_TABLE_OFFSET + (size_t)id * sizeof(*ret_block), sizeof(*ret_block));
  return ret_block->id == id;
}

static int branch_add(struct process_branches *list, const struct process_block *block, uint64_t to, unsigned kind)
{
  struct lb_branch *grown = array_grow(list->branches, sizeof(*grown), list->count, &list->capacity);
  if (!grown)
    return -ENOMEM;
  list->branches = grown;
  bool is_to_next = kind == LB_BRANCH_NEAR_REL_CALL && to == block->end;
  grown[list->count++] = (struct lb_branch){.from = block->last,
                                            .to = to,
                                            .kind = (uint8_t)kind,
                                            .from_cpl = 3,
                                            .to_cpl = 3,
                                            .flags = is_to_next ? LB_BRANCH_TO_NEXT : 0};
  return 0;
}

/* What lies between the end of a block and the address where execution went on. */
static int add_transfer(struct process_branches *list, const struct process_block *block, uint64_t to)
{
  bool is_direct_good = to == block->target;
  switch (block->flow) {
  case CODE_JCC:
  case CODE_LOOP:
    if (to == block->end) /* not taken; to the next instruction either way cannot be told apart */
      return 0;
    return is_direct_good ? branch_add(list, block, to, LB_BRANCH_JCC) : -EBADMSG;
  case CODE_JMP:
    return is_direct_good ? branch_add(list, block, to, LB_BRANCH_NEAR_REL_JMP) : -EBADMSG;
  case CODE_CALL:
    return is_direct_good ? branch_add(list, block, to, LB_BRANCH_NEAR_REL_CALL) : -EBADMSG;
  case CODE_JMP_IND:
    return branch_add(list, block, to, LB_BRANCH_NEAR_IND_JMP);
  case CODE_CALL_IND:
    return branch_add(list, block, to, LB_BRANCH_NEAR_IND_CALL);
  case CODE_RET:
    return branch_add(list, block, to, LB_BRANCH_NEAR_RET);
  case CODE_SYSCALL: /* what the kernel does between is not seen */
    return to == block->end ? branch_add(list, block, to, LB_BRANCH_SYSCALL) : -EBADMSG;
  default:
    return to == block->end ? 0 : -EBADMSG;
  }
}

/* The address that the last block went to, if no block could log it. */
static bool pending_target(const struct process *process, uint64_t *ret_target)
{
  const uint8_t *state = process->memory + PROCESS_STATE_OFFSET;
  *ret_target = bytes_get_u64(state + STATE_TARGET);
  return bytes_get_u64(state + STATE_PENDING);
}

static int add_all(const struct process *process, const struct log *log, struct process_branches *list)
{
  struct process_block block, next;
  if (!log->count)
    return 0;
  if (!block_get(process, ring_entry(log, log->first), &block))
    return -EBADMSG;
  for (uint32_t i = 1; i < log->count; i++) {
    if (!block_get(process, ring_entry(log, log->first + i), &next))
      return -EBADMSG;
    int result = add_transfer(list, &block, next.start);
    if (result < 0)
      return result;
    block = next;
  }
  uint64_t target;
  return pending_target(process, &target) ? add_transfer(list, &block, target) : 0;
}

int process_rebuild(const struct process *process, struct process_branches *ret_branches)
{
  struct log log = log_of(process);
  struct process_branches list = {.is_cut = log.is_cut};
  int result = add_all(process, &log, &list);
  if (result < 0) {
    process_branches_done(&list);
    return result;
  }
  *ret_branches = list;
  return 0;
}

void process_branches_done(struct process_branches *branches)
{
  free(branches->branches);
  *branches = (struct process_branches){0};
}
