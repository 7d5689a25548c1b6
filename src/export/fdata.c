/* SPDX-License-Identifier: Apache-2.0
 *
 * BOLT's own profile, as perf2bolt would write it: for llvm-bolt -data and merge-fdata. It has a line for each edge: "1
 * NAME OFFSET 1 NAME OFFSET mispredicted count"; an end outside of the binary is "0 [unknown] 0". Besides taken
 * branches, the edges are those on which one of BOLT's blocks continues into the next: from the last instruction of the
 * one to the start of the other. The starts of BOLT's blocks are therefore needed: all targets of a function's direct
 * branches, and the executed targets of its indirect ones. Returns are not edges.
 */
#include <string.h>

#include "export/binary.h"

#define ELSEWHERE UINT64_MAX /* an end outside of the binary */

struct fdata {
  uint32_t file;
  struct binary_functions functions;
  struct tally starts; /* of blocks: `from` is the address */
  struct tally edges;
};

/* ---- starts of blocks ---- */

static bool kind_is_jump(int kind)
{
  return kind == LB_BRANCH_JCC || kind == LB_BRANCH_NEAR_REL_JMP;
}

/* Finds the targets of the direct jumps of a function. Bytes that cannot be decoded end the search. */
static int function_sweep(struct export_job *job, const struct binary_function *function)
{
  struct fdata *fdata = job->state;
  struct analysis_location location = {.file = fdata->file, .address = function->start};
  uint64_t end = function->end > function->start ? function->end : function->limit;
  struct analysis_instruction instruction;
  int r = 0;

  while (r >= 0 && location.address < end && analysis_code_instruction(job->code, &location, &instruction)) {
    if (kind_is_jump(instruction.kind) && instruction.target)
      r = tally_add(&fdata->starts, instruction.target, 0, 1);
    location.address += instruction.length;
  }
  return r;
}

/* Finds the possible jump targets of all functions that ran, and of the cold parts of functions, which jump back into
 * these. */
static int functions_sweep(struct export_job *job)
{
  const struct fdata *fdata = job->state;
  const struct binary_function *last = NULL;
  size_t count;
  const struct analysis_block *blocks = analysis_counts_all_blocks(job->counts, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    const struct binary_function *function =
      blocks[i].first.file == fdata->file ? binary_functions_find(&fdata->functions, blocks[i].first.address) : NULL;

    if (function && function != last)
      r = function_sweep(job, function);
    last = function ? function : last;
  }
  for (size_t i = 0; i < fdata->functions.count && r >= 0; i++)
    if (strstr(fdata->functions.functions[i].name, ".cold"))
      r = function_sweep(job, &fdata->functions.functions[i]);
  return r;
}

/* Finds all starts: those targets, the executed targets of indirect jumps, and symbols. */
static int starts_find(struct export_job *job)
{
  struct fdata *fdata = job->state;
  size_t count;
  const struct analysis_jump *jumps = analysis_counts_all_jumps(job->counts, &count);
  int r = functions_sweep(job);

  for (size_t i = 0; i < fdata->functions.entries.count && r >= 0; i++)
    r = tally_add(&fdata->starts, fdata->functions.entries.items[i].from, 0, 1);
  for (size_t i = 0; i < count && r >= 0; i++)
    if (jumps[i].to.file == fdata->file && jumps[i].kind == LB_BRANCH_NEAR_IND_JMP)
      r = tally_add(&fdata->starts, jumps[i].to.address, 0, 1);
  tally_finish(&fdata->starts);
  return r;
}

static bool is_start(const struct fdata *fdata, uint64_t address)
{
  size_t i = tally_seek(&fdata->starts, address);

  return i < fdata->starts.count && fdata->starts.items[i].from == address;
}

/* ---- edges ---- */

/* Takes an edge, within one function only. */
static int take_edge(struct export_job *job, uint64_t from, uint64_t next, uint64_t count)
{
  struct fdata *fdata = job->state;
  const struct binary_function *function = binary_functions_find(&fdata->functions, from);

  return function && next < function->limit ? tally_add(&fdata->edges, from, next, count) : 0;
}

/* A jump right after a conditional one ends the same block, unless something leads to it. */
static int take_passed(struct export_job *job, uint64_t from, uint64_t next, uint64_t count)
{
  struct fdata *fdata = job->state;
  struct analysis_instruction instruction;

  if (analysis_code_instruction(job->code, &(struct analysis_location){.file = fdata->file, .address = next},
                                &instruction) &&
      instruction.kind == LB_BRANCH_NEAR_REL_JMP && !is_start(fdata, next))
    return 0;
  return take_edge(job, from, next, count);
}

static int take_straight(struct export_job *job, uint64_t first, uint64_t last, uint64_t count)
{
  struct fdata *fdata = job->state;
  struct analysis_location location = {.file = fdata->file, .address = first};
  struct analysis_instruction instruction;
  size_t i = tally_seek(&fdata->starts, first + 1);
  int r = 0;

  while (r >= 0 && i < fdata->starts.count && fdata->starts.items[i].from <= last &&
         analysis_code_instruction(job->code, &location, &instruction)) {
    uint64_t from = location.address;

    location.address += instruction.length;
    while (i < fdata->starts.count && fdata->starts.items[i].from < location.address)
      i++;
    if (location.address <= last && is_start(fdata, location.address))
      r = take_edge(job, from, location.address, count);
  }
  return r;
}

static int take_returned(struct export_job *job, uint64_t from, uint64_t next, uint64_t count)
{
  const struct fdata *fdata = job->state;

  return is_start(fdata, next) ? take_edge(job, from, next, count) : 0;
}

static int take_branch(struct export_job *job, const struct binary_branch *branch)
{
  struct fdata *fdata = job->state;

  if (branch->call || (branch->has_from &&
                       (branch->kind == LB_BRANCH_NEAR_RET || !binary_functions_find(&fdata->functions, branch->from))))
    return 0;
  return tally_add(&fdata->edges, branch->has_from ? branch->from : ELSEWHERE, branch->has_to ? branch->to : ELSEWHERE,
                   branch->count);
}

/* ---- lines ---- */

/* BOLT's name for an entry of the procedure linkage table is the function's name followed by @PLT. */
static bool put_linkage(struct export_job *job, uint64_t address)
{
  const struct fdata *fdata = job->state;
  struct analysis_name name = {0};
  const char *symbol;
  size_t length;

  if (!analysis_names_symbol(job->names, &(struct analysis_location){.file = fdata->file, .address = address}, &name) ||
      !name.symbol || name.offset)
    return false;
  symbol = name.mangled ? name.mangled : name.symbol;
  length = strlen(symbol);
  if (length < 4 || strcmp(symbol + length - 4, "@plt") != 0)
    return false;
  export_print(job, "1 %.*s@PLT 0 ", (int)(length - 4), symbol);
  return true;
}

static void put_end(struct export_job *job, uint64_t address)
{
  const struct fdata *fdata = job->state;
  const struct binary_function *function =
    address == ELSEWHERE ? NULL : binary_functions_find(&fdata->functions, address);

  if (function)
    export_print(job, "1 %s %llx ", function->name, (unsigned long long)(address - function->start));
  else if (address == ELSEWHERE || !put_linkage(job, address))
    export_print(job, "0 [unknown] 0 ");
}

static int fdata_end(struct export_job *job)
{
  static const struct binary_visitor visitor = {take_straight, take_passed, take_returned, take_branch};
  struct fdata *fdata = job->state;
  int r = export_file(job, &fdata->file);

  if (r >= 0)
    r = binary_functions_read(job, &fdata->functions);
  if (r >= 0)
    r = starts_find(job);
  if (r >= 0)
    r = binary_straights(job, &visitor);
  if (r >= 0)
    r = binary_branches(job, &visitor);
  tally_finish(&fdata->edges);
  if (r >= 0 && !fdata->edges.count)
    return export_fail(job, "the trace has no branches in functions of %s", binary_name(job, fdata->file));
  for (size_t i = 0; i < fdata->edges.count && r >= 0; i++) {
    put_end(job, fdata->edges.items[i].from);
    put_end(job, fdata->edges.items[i].to);
    export_print(job, "0 %llu\n", (unsigned long long)fdata->edges.items[i].count);
  }
  return r;
}

static void fdata_done(struct export_job *job)
{
  struct fdata *fdata = job->state;

  binary_functions_done(&fdata->functions);
  tally_done(&fdata->starts);
  tally_done(&fdata->edges);
}

const struct export_format export_format_fdata = {
  .name = "fdata",
  .what = "BOLT's own profile of a binary, for llvm-bolt -data and merge-fdata",
  .suffix = ".fdata",
  .needs = EXPORT_COUNTS,
  .state_size = sizeof(struct fdata),
  .end = fdata_end,
  .done = fdata_done,
};
