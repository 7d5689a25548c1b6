/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts branches to blocks: from the target of one branch to the next branch. gdb regards the very last instruction
 * as the one to be executed next.
 */
#include "gdb/blocks.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/analysis.h"
#include "base/base.h"
#include "isa/isa.h"

#define INSTRUCTIONS_MAX 65536u /* examined between two branches: an untrusted trace may have them far apart */

void gdb_blocks_clear(struct gdb_blocks *blocks)
{
  blocks->count = blocks->next = 0;
  blocks->has_begin = false;
  blocks->is_32 = false;
}

void gdb_blocks_done(struct gdb_blocks *blocks)
{
  free(blocks->list);
}

static int block_add(struct gdb_blocks *blocks, uint64_t begin, uint64_t end)
{
  struct gdb_block *added = array_append(&blocks->list, &blocks->count, &blocks->capacity);

  if (!added)
    return -ENOMEM;
  *added = (struct gdb_block){begin, end};
  return 0;
}

/* Whether an event of this kind comes before the instruction at `from` is executed. */
static bool kind_is_before(unsigned kind)
{
  return kind == LB_BRANCH_FAULT || kind == LB_BRANCH_TRAP || kind == LB_BRANCH_INTERRUPT || kind == LB_BRANCH_NMI ||
         kind == LB_BRANCH_MACHINE_CHECK;
}

/* The last instruction before the one at `end` in the straight line from `begin`; `end` itself if that is unknown. */
static uint64_t instruction_before(const struct gdb_blocks *blocks, uint64_t begin, uint64_t end)
{
  struct isa_instruction instruction;
  uint8_t bytes[ISA_LENGTH_MAX];

  for (unsigned i = 0; i < INSTRUCTIONS_MAX && begin < end; i++) {
    size_t size = blocks->code(blocks->data, begin, bytes, sizeof(bytes));
    int length = isa_decode(blocks->is_32 ? ISA_PROTECTED_32 : ISA_64, false, bytes, size, &instruction);

    if (length <= 0 || (uint64_t)length > end - begin)
      return end;
    if ((uint64_t)length == end - begin)
      return begin;
    begin += (uint64_t)length;
  }
  return end;
}

/* If the start of a block is unknown, the block is one instruction. */
int gdb_blocks_branch(struct gdb_blocks *blocks, const struct lb_branch *branch)
{
  uint64_t from = analysis_from(branch), begin = blocks->has_begin ? blocks->begin : from;
  int r = 0;

  if (!kind_is_before(branch->kind))
    r = block_add(blocks, begin, from);
  else if (begin != from)
    r = block_add(blocks, begin, instruction_before(blocks, begin, from));
  blocks->has_begin = true;
  blocks->begin = analysis_to(branch);
  blocks->is_32 = branch->flags & LB_BRANCH_TO_32;
  return r;
}

/* gdb takes a block that begins after its end as a gap. */
int gdb_blocks_gap(struct gdb_blocks *blocks)
{
  if (!blocks->has_begin)
    return 0;
  blocks->has_begin = false;
  return block_add(blocks, blocks->begin + 1, blocks->begin);
}

/* gdb would take a return to an address without code as a return to an unknown caller, and bt would show that instead
 * of the stack before it. A gap before the block prevents this. */
int gdb_blocks_end(struct gdb_blocks *blocks, uint64_t rip)
{
  uint8_t byte;
  int r = 0;

  if (blocks->has_begin && rip == blocks->begin && !blocks->code(blocks->data, rip, &byte, 1))
    r = block_add(blocks, rip + 1, rip);
  return r < 0 ? r : block_add(blocks, blocks->has_begin ? blocks->begin : rip, rip);
}

/* ---- for gdb ---- */

int gdb_blocks_read(struct gdb_blocks *blocks, enum gdb_history which, bool is_read)
{
  if (which == GDB_HISTORY_DELTA && !is_read)
    return -EOPNOTSUPP; /* gdb then asks for all new blocks */
  blocks->is_delta = which == GDB_HISTORY_DELTA;
  blocks->next = which == GDB_HISTORY_ALL || !is_read ? blocks->count : blocks->is_delta;
  return 0;
}

int gdb_blocks_next(struct gdb_blocks *blocks, struct gdb_block *ret_block)
{
  if (!blocks->next)
    return 0;
  blocks->next--;
  *ret_block = blocks->list[blocks->is_delta ? blocks->count - 1 : blocks->next];
  if (blocks->is_delta)
    ret_block->begin = 0;
  return 1;
}
