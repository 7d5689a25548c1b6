/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts blocks to instructions. Blocks overlap, and overlapping blocks need not have the same instructions (a jump
 * past a LOCK prefix executes another one). Chains of instructions are therefore followed side by side, the lowest
 * address first, and are merged where they meet. Chains are at most 15 bytes apart, so there are at most 16.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "analysis/hot.h"
#include "base/base.h"

#define CHAINS 17

struct chain {
  uint64_t at, executed;
};

/* The end of a block. */
struct end {
  uint64_t last, executed;
};

struct walk {
  struct analysis_code *code;
  analysis_ran_function *function;
  void *data;
  struct chain chains[CHAINS]; /* sorted by address, all different */
  size_t chain_count;
  struct end *ends; /* a heap: the lowest address on top */
  size_t end_count, end_capacity;
};

/* ---- ends of blocks ---- */

static void end_swap(struct end *one, struct end *other)
{
  struct end kept = *one;

  *one = *other;
  *other = kept;
}

static int end_push(struct walk *walk, const struct end *end)
{
  struct end *added = array_append(&walk->ends, &walk->end_count, &walk->end_capacity), *ends = walk->ends;

  if (!added)
    return -ENOMEM;
  *added = *end;
  for (size_t i = walk->end_count - 1; i && ends[i].last < ends[(i - 1) / 2].last; i = (i - 1) / 2)
    end_swap(&ends[i], &ends[(i - 1) / 2]);
  return 0;
}

static void end_pop(struct walk *walk)
{
  struct end *ends = walk->ends;

  ends[0] = ends[--walk->end_count];
  for (size_t i = 0, low; (low = 2 * i + 1) < walk->end_count; i = low) {
    if (low + 1 < walk->end_count && ends[low + 1].last < ends[low].last)
      low++;
    if (ends[i].last <= ends[low].last)
      return;
    end_swap(&ends[i], &ends[low]);
  }
}

/* ---- chains ---- */

/* Continues a chain at an address, or merges it with the one that is there. */
static void chain_add(struct walk *walk, uint64_t at, uint64_t executed)
{
  size_t i = 0;

  while (i < walk->chain_count && walk->chains[i].at < at)
    i++;
  if (i < walk->chain_count && walk->chains[i].at == at) {
    walk->chains[i].executed += executed;
    return;
  }
  if (walk->chain_count == CHAINS) /* impossible: they are too near to each other */
    return;
  memmove(&walk->chains[i + 1], &walk->chains[i], (walk->chain_count - i) * sizeof(*walk->chains));
  walk->chains[i] = (struct chain){at, executed};
  walk->chain_count++;
}

static struct chain chain_take(struct walk *walk)
{
  struct chain chain = walk->chains[0];

  memmove(&walk->chains[0], &walk->chains[1], --walk->chain_count * sizeof(*walk->chains));
  return chain;
}

static void walk_forget(struct walk *walk)
{
  walk->chain_count = 0;
  walk->end_count = 0;
}

/* Gives the instruction with the lowest address and advances its chain. */
static int walk_step(struct walk *walk, const struct analysis_location *where)
{
  struct chain chain = chain_take(walk);
  struct analysis_ran ran = {.at = *where, .executed = chain.executed};
  struct analysis_instruction instruction;
  int r;

  ran.at.address = chain.at;
  if ((walk->end_count && walk->ends[0].last < chain.at) ||
      !analysis_code_instruction(walk->code, &ran.at, &instruction) || !instruction.length) {
    walk_forget(walk); /* not the code that was counted: it is unknown which ends were passed */
    return 0;
  }
  ran.length = instruction.length;
  r = walk->function(walk->data, &ran);
  for (; walk->end_count && walk->ends[0].last == chain.at; end_pop(walk))
    chain.executed -= walk->ends[0].executed < chain.executed ? walk->ends[0].executed : chain.executed;
  if (chain.executed)
    chain_add(walk, chain.at + instruction.length, chain.executed);
  return r;
}

/* Continues until all chains are at or after an address. */
static int walk_until(struct walk *walk, const struct analysis_location *where, uint64_t address)
{
  int r = 0;

  while (r >= 0 && walk->chain_count && walk->chains[0].at < address)
    r = walk_step(walk, where);
  return r;
}

static int walk_block(struct walk *walk, const struct analysis_block *block)
{
  int r = walk_until(walk, &block->first, block->first.address);

  if (r >= 0)
    r = end_push(walk, &(struct end){block->last, block->executed});
  if (r >= 0)
    chain_add(walk, block->first.address, block->executed);
  return r;
}

int analysis_blocks_walk(struct analysis_code *code, const struct analysis_block *blocks, size_t count,
                         analysis_ran_function *function, void *data)
{
  struct walk walk = {.code = code, .function = function, .data = data};
  const struct analysis_block *before = NULL;
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    const struct analysis_block *block = &blocks[i];

    assert(!i || analysis_location_compare(&blocks[i - 1].first, &block->first) <= 0);
    if (!block->instructions || !block->executed || block->last < block->first.address)
      continue;
    if (before && (before->first.file != block->first.file || before->first.space != block->first.space)) {
      r = walk_until(&walk, &before->first, UINT64_MAX);
      walk_forget(&walk);
    }
    if (r >= 0)
      r = walk_block(&walk, block);
    before = block;
  }
  if (before && r >= 0)
    r = walk_until(&walk, &before->first, UINT64_MAX);
  free(walk.ends);
  return r;
}
