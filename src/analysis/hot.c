/* SPDX-License-Identifier: Apache-2.0
 *
 * Builds the tables of functions, modules, edges, conditional and indirect branches from blocks and jumps.
 */
#include "analysis/hot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/extent.h"
#include "analysis/hot_table.h"
#include "analysis/replay.h"
#include "base/base.h"

/* ---- modules ---- */

static struct analysis_hot_module *module_get(struct analysis_hot *hot, const struct analysis_hot_function *function)
{
  struct analysis_hot_module *module;

  for (size_t i = 0; i < hot->module_count; i++)
    if (hot->modules[i].file == function->file)
      return &hot->modules[i];
  module = array_append(&hot->modules, &hot->module_count, &hot->module_capacity);
  if (module)
    *module = (struct analysis_hot_module){.module = function->module, .file = function->file};
  return module;
}

/* Adds up the functions of each module. Branches into a module were counted before. */
static int modules_fill(struct analysis_hot *hot)
{
  for (size_t i = 0; i < hot->function_count; i++) {
    const struct analysis_hot_function *function = &hot->functions[i];
    struct analysis_hot_module *module = hot->is_wanted[i] ? module_get(hot, function) : NULL;

    if (!module && hot->is_wanted[i])
      return -ENOMEM;
    if (!module)
      continue;
    module->instructions += function->instructions;
    module->taken += function->taken;
    module->passed += function->passed;
  }
  return 0;
}

/* ---- instructions ---- */

/* A function of unknown end extends to the last executed instruction. */
static void function_reach(struct analysis_hot_function *function, uint64_t end)
{
  if (function->source >= ANALYSIS_EXTENT_BY_CALL && end - function->start > function->size)
    function->size = end - function->start;
}

/* A block that extends beyond the end of its function: each instruction is counted for its own function. */
static int ran_count(void *data, const struct analysis_ran *ran)
{
  struct analysis_hot *hot = data;
  uint32_t number = hot_function_at(hot, &ran->at);

  if (number == HOT_NONE)
    return -ENOMEM;
  hot->functions[number].instructions += ran->executed;
  function_reach(&hot->functions[number], ran->at.address + ran->length);
  return 0;
}

static int block_count(struct analysis_hot *hot, const struct analysis_block *block)
{
  struct analysis_location last = block->first;
  uint32_t one, other;

  last.address = block->last;
  one = hot_function_at(hot, &block->first);
  other = hot_function_at(hot, &last);
  if (one == HOT_NONE || other == HOT_NONE)
    return -ENOMEM;
  function_reach(&hot->functions[other], block->end ? block->end : block->last + 1);
  if (one != other) {
    function_reach(&hot->functions[one], block->first.address + 1);
    hot->functions[one].has_unknown |= !block->instructions;
    hot->functions[other].has_unknown |= !block->instructions;
    return analysis_blocks_walk(hot->code, block, 1, ran_count, hot);
  }
  hot->functions[one].instructions += block->executed * block->instructions;
  hot->functions[one].has_unknown |= !block->instructions;
  return 0;
}

/* ---- branches ---- */

static bool kind_calls(unsigned kind)
{
  return kind == LB_BRANCH_NEAR_REL_CALL || kind == LB_BRANCH_NEAR_IND_CALL || kind == LB_BRANCH_FAR_CALL;
}

static bool kind_jumps(unsigned kind)
{
  return kind == LB_BRANCH_JCC || kind == LB_BRANCH_NEAR_REL_JMP || kind == LB_BRANCH_NEAR_IND_JMP ||
         kind == LB_BRANCH_FAR_JMP;
}

/* A call to the next instruction, by which code reads its own address, is not a call of its function. */
static bool jump_enters(const struct analysis_jump *jump, const struct analysis_hot_function *from,
                        const struct analysis_hot_function *to)
{
  bool is_start = to->start == jump->to.address && to->start;

  if (kind_calls(jump->kind))
    return is_start || from != to;
  if (analysis_kind_is_event(jump->kind))
    return true;
  return from != to && is_start && kind_jumps(jump->kind); /* a tail call, or a stub of the PLT */
}

static int branch_count(struct analysis_hot *hot, const struct analysis_jump *jump)
{
  struct analysis_hot_branch *last = hot->branch_count ? &hot->branches[hot->branch_count - 1] : NULL;

  if (!last || !analysis_location_is(&last->from, &jump->from)) {
    last = array_append(&hot->branches, &hot->branch_count, &hot->branch_capacity);
    if (!last)
      return -ENOMEM;
    *last = (struct analysis_hot_branch){.from = jump->from};
  }
  if (jump->is_passed) {
    last->passed += jump->count;
  } else {
    last->taken += jump->count;
    last->to = jump->to;
  }
  return 0;
}

static bool kind_is_indirect(unsigned kind)
{
  return kind == LB_BRANCH_NEAR_IND_CALL || kind == LB_BRANCH_NEAR_IND_JMP;
}

/* The targets of one branch are contiguous, because the jumps are sorted. */
static int indirect_count(struct analysis_hot *hot, const struct analysis_jump *jump, size_t target)
{
  struct analysis_hot_indirect *last = hot->indirect_count ? &hot->indirects[hot->indirect_count - 1] : NULL;

  if (!last || !analysis_location_is(&last->from, &jump->from) || last->kind != jump->kind) {
    last = array_append(&hot->indirects, &hot->indirect_count, &hot->indirect_capacity);
    if (!last)
      return -ENOMEM;
    *last = (struct analysis_hot_indirect){.from = jump->from, .kind = jump->kind, .targets = &hot->targets[target]};
  }
  hot->targets[target] = jump;
  last->count += jump->count;
  last->target_count++;
  return 0;
}

static int target_compare(const void *one, const void *other)
{
  const struct analysis_jump *a = *(const struct analysis_jump *const *)one,
                             *b = *(const struct analysis_jump *const *)other;

  if (a->count != b->count)
    return a->count < b->count ? 1 : -1;
  return a->to.address < b->to.address ? -1 : a->to.address > b->to.address;
}

static void targets_sort(struct analysis_hot *hot)
{
  for (size_t i = 0; i < hot->indirect_count; i++) {
    const struct analysis_hot_indirect *indirect = &hot->indirects[i];

    qsort(&hot->targets[indirect->targets - hot->targets], indirect->target_count, sizeof(*hot->targets),
          target_compare);
  }
}

/* ---- jumps ---- */

static int entry_count(struct analysis_hot *hot, uint32_t from, uint32_t to, const struct analysis_jump *jump)
{
  struct analysis_hot_module *module;

  if (jump_enters(jump, &hot->functions[from], &hot->functions[to]))
    hot->functions[to].calls += jump->count;
  if (!hot->is_wanted[to] || hot->functions[from].file == hot->functions[to].file)
    return 0;
  module = module_get(hot, &hot->functions[to]);
  if (!module)
    return -ENOMEM;
  module->entries += jump->count;
  return 0;
}

/* Returns 1 if the jump is a target of an indirect branch that is kept, 0, or -ENOMEM. */
static int jump_keep(struct analysis_hot *hot, const struct analysis_jump *jump, bool is_from, size_t target)
{
  int r;

  if (!is_from)
    return 0;
  if (jump->kind == LB_BRANCH_JCC)
    return branch_count(hot, jump);
  if (!kind_is_indirect(jump->kind))
    return 0;
  r = indirect_count(hot, jump, target);
  return r < 0 ? r : 1;
}

static int jump_count(struct analysis_hot *hot, const struct analysis_jump *jump, size_t target)
{
  uint32_t from = hot_function_at(hot, &jump->from), to = from;
  int r = 0;

  if (!jump->is_passed)
    to = hot_function_at(hot, &jump->to);
  if (from == HOT_NONE || to == HOT_NONE)
    return -ENOMEM;
  if (jump->is_passed) {
    hot->functions[from].passed += jump->count;
  } else {
    hot->functions[from].taken += jump->count;
    function_reach(&hot->functions[from], jump->from.address + 1);
    r = entry_count(hot, from, to, jump);
    if (hot->is_wanted[from] || hot->is_wanted[to])
      hot->edges[hot->edge_count++] = jump;
  }
  return r < 0 ? r : jump_keep(hot, jump, hot->is_wanted[from], target);
}

static int jumps_count(struct analysis_hot *hot)
{
  size_t count, targets = 0;
  const struct analysis_jump *jumps = analysis_counts_jumps(hot->counts, &count);

  for (size_t i = 0; i < count; i++)
    targets += kind_is_indirect(jumps[i].kind);
  hot->targets = calloc(targets + 1, sizeof(*hot->targets));
  hot->edges = calloc(count + 1, sizeof(*hot->edges));
  if (!hot->targets || !hot->edges)
    return -ENOMEM;
  targets = 0;
  for (size_t i = 0; i < count; i++) {
    int r = jump_count(hot, &jumps[i], targets);

    if (r < 0)
      return r;
    targets += (size_t)r;
  }
  targets_sort(hot);
  return 0;
}

/* Code with branches but without instructions has no known block: it is not 64-bit code. */
static int unknown_mark(struct analysis_hot *hot)
{
  if (!analysis_counts_totals(hot->counts)->has_unknown_code)
    return 0;
  for (size_t i = 0; i < hot->function_count; i++)
    hot->functions[i].has_unknown |= !hot->functions[i].instructions;
  for (size_t i = 0; i < hot->branch_count; i++) {
    uint32_t function = hot_function_at(hot, &hot->branches[i].from);

    if (function == HOT_NONE)
      return -ENOMEM;
    hot->branches[i].has_unknown = hot->functions[function].has_unknown && !hot->branches[i].passed;
  }
  return 0;
}

/* ---- all of it ---- */

static int hot_fill(struct analysis_hot *hot)
{
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(hot->counts, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++)
    r = block_count(hot, &blocks[i]);
  if (r >= 0)
    r = jumps_count(hot);
  if (r >= 0)
    r = unknown_mark(hot);
  if (r >= 0)
    r = modules_fill(hot);
  return r;
}

int analysis_hot_new(struct analysis_names *names, struct analysis_code *code, const struct analysis_counts *counts,
                     const struct analysis_hot_filter *filter, struct analysis_hot **ret_hot)
{
  struct analysis_hot *hot = calloc(1, sizeof(*hot));
  int r;

  if (!hot)
    return -ENOMEM;
  *hot = (struct analysis_hot){.names = names, .code = code, .counts = counts};
  if (filter)
    hot->filter = *filter;
  r = hot_fill(hot);
  if (r < 0) {
    analysis_hot_free(hot);
    return r;
  }
  hot_functions_finish(hot);
  analysis_hot_sort(hot, ANALYSIS_HOT_FUNCTION, ANALYSIS_HOT_BY_INSTRUCTIONS);
  analysis_hot_sort(hot, ANALYSIS_HOT_EDGE, ANALYSIS_HOT_BY_COUNT);
  analysis_hot_sort(hot, ANALYSIS_HOT_BRANCH, ANALYSIS_HOT_BY_COUNT);
  analysis_hot_sort(hot, ANALYSIS_HOT_INDIRECT, ANALYSIS_HOT_BY_COUNT);
  analysis_hot_sort(hot, ANALYSIS_HOT_MODULE, ANALYSIS_HOT_BY_INSTRUCTIONS);
  *ret_hot = hot;
  return 0;
}

void analysis_hot_free(struct analysis_hot *hot)
{
  if (!hot)
    return;
  free(hot->functions);
  free(hot->is_wanted);
  hash_index_done(&hot->function_index);
  free(hot->modules);
  free(hot->edges);
  free(hot->branches);
  free(hot->indirects);
  free(hot->targets);
  free(hot->lines);
  free(hot);
}

const struct analysis_hot_function *analysis_hot_functions(const struct analysis_hot *hot, size_t *ret_count)
{
  *ret_count = hot->function_count;
  return hot->functions;
}

const struct analysis_hot_module *analysis_hot_modules(const struct analysis_hot *hot, size_t *ret_count)
{
  *ret_count = hot->module_count;
  return hot->modules;
}

const struct analysis_jump *const *analysis_hot_edges(const struct analysis_hot *hot, size_t *ret_count)
{
  *ret_count = hot->edge_count;
  return hot->edges;
}

const struct analysis_hot_branch *analysis_hot_branches(const struct analysis_hot *hot, size_t *ret_count)
{
  *ret_count = hot->branch_count;
  return hot->branches;
}

const struct analysis_hot_indirect *analysis_hot_indirects(const struct analysis_hot *hot, size_t *ret_count)
{
  *ret_count = hot->indirect_count;
  return hot->indirects;
}
