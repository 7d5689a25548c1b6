/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines, functions and branches of the modules that ran and have debug information. The executed ones are known from
 * the counts. The others are found by decoding the code of these modules, instruction by instruction: an instruction
 * with debug information makes its line one that could have run. An instruction begins wherever an executed block
 * begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "export/lcov.h"
#include "symbol/symbol.h"

/* A pass over the code of a module. */
struct sweep {
  struct export_job *job;
  struct lcov *lcov;
  uint32_t file;
  const struct analysis_block *blocks; /* of the module, by address */
  size_t block_count;
  const struct analysis_jump *jumps; /* also of the module, by address */
  size_t jump_count;
  const struct analysis_hot_function **functions; /* of all modules, by file and start */
  size_t function_count;
};

/* ---- adding ---- */

static int line_add(struct lcov *lcov, const struct lcov_line *line)
{
  const struct lcov_line *last = lcov->line_count ? &lcov->lines[lcov->line_count - 1] : NULL;
  struct lcov_line *added;

  if (!line->executed && last && last->is_wanted && last->line == line->line && last->file == line->file)
    return 0;
  added = array_append(&lcov->lines, &lcov->line_count, &lcov->line_capacity);
  if (!added)
    return -ENOMEM;
  *added = *line;
  return 0;
}

static int branch_add(struct lcov *lcov, const struct lcov_branch *branch)
{
  struct lcov_branch *added = array_append(&lcov->branches, &lcov->branch_count, &lcov->branch_capacity);

  if (!added)
    return -ENOMEM;
  *added = *branch;
  return 0;
}

static int function_add(struct lcov *lcov, const struct lcov_function *function)
{
  struct lcov_function *added = array_append(&lcov->functions, &lcov->function_count, &lcov->function_capacity);

  if (!added)
    return -ENOMEM;
  *added = *function;
  return 0;
}

/* ---- what ran ---- */

static int function_order(const void *one, const void *other)
{
  const struct analysis_hot_function *a = *(const struct analysis_hot_function *const *)one;
  const struct analysis_hot_function *b = *(const struct analysis_hot_function *const *)other;

  if (a->file != b->file)
    return a->file < b->file ? -1 : 1;
  return a->start < b->start ? -1 : a->start > b->start;
}

static uint64_t function_calls(const struct sweep *sweep, uint64_t start)
{
  const struct analysis_hot_function wanted = {.file = sweep->file, .start = start}, *key = &wanted;
  const struct analysis_hot_function **found =
    bsearch(&key, sweep->functions, sweep->function_count, sizeof(*found), function_order);

  return found ? (*found)->calls : 0;
}

/* Sets the counts of the two ways of the branch at an address. */
static void branch_count(const struct sweep *sweep, uint64_t address, struct lcov_branch *branch)
{
  struct search search = {.end = sweep->jump_count};

  while (search_next(&search))
    search_turn(&search, sweep->jumps[search.at].from.address < address);
  for (size_t i = search.first; i < sweep->jump_count && sweep->jumps[i].from.address == address; i++)
    if (sweep->jumps[i].is_passed)
      branch->passed += sweep->jumps[i].count;
    else
      branch->taken += sweep->jumps[i].count;
}

/* ---- decoding the code ---- */

/* Parts that compilers split off a function are not functions. */
static bool symbol_is_part(const char *symbol)
{
  return strstr(symbol, ".cold") || strstr(symbol, ".part.");
}

static int sweep_function(struct sweep *sweep, const struct symbol_place *place)
{
  const struct symbol_frame *frame = &place->frames[place->frame_count - 1];
  struct lcov_function function = {
    .file = frame->file,
    .line = frame->declared,
    .name = place->mangled ? place->mangled : place->symbol,
    .calls = function_calls(sweep, place->address),
  };

  if (!frame->file || !frame->declared || symbol_is_part(function.name))
    return 0;
  return function_add(sweep->lcov, &function);
}

static int sweep_branch(struct sweep *sweep, const struct analysis_location *location, const char *file, unsigned line)
{
  struct lcov_branch branch = {.file = file, .line = line, .place = location->address};
  struct symbol_place place;

  if (analysis_names_place(sweep->job->names, location, &place)) {
    branch.is_inlined = place.frame_count > 1;
    branch.function = place.symbol ? location->address - place.offset : 0;
  }
  branch_count(sweep, location->address, &branch);
  return branch_add(sweep->lcov, &branch);
}

static int sweep_instruction(struct sweep *sweep, const struct analysis_location *location,
                             const struct analysis_instruction *instruction)
{
  struct analysis_name name = {0};
  struct symbol_place place;
  const char *file;
  unsigned line;
  int r;

  if (!analysis_names_line(sweep->job->names, location, &file, &line) || !export_has_location(sweep->job, location))
    return 0;
  r = line_add(sweep->lcov, &(struct lcov_line){file, line, 0, true});
  if (r >= 0 && analysis_names_symbol(sweep->job->names, location, &name) && name.symbol && !name.offset &&
      analysis_names_place(sweep->job->names, location, &place) && place.frame_count)
    r = sweep_function(sweep, &place);
  return r >= 0 && instruction->kind == LB_BRANCH_JCC ? sweep_branch(sweep, location, file, line) : r;
}

/* Decodes from one address to another. */
static int sweep_piece(struct sweep *sweep, uint64_t first, uint64_t end)
{
  struct analysis_location location = {.file = sweep->file, .address = first};
  size_t block = 0;
  int r = 0;

  while (location.address < end && r >= 0) {
    struct analysis_instruction instruction = {.length = 1, .kind = -1};
    uint64_t next;

    if (analysis_code_instruction(sweep->job->code, &location, &instruction))
      r = sweep_instruction(sweep, &location, &instruction);
    next = location.address + instruction.length;
    while (block < sweep->block_count && sweep->blocks[block].first.address <= location.address)
      block++;
    if (block < sweep->block_count && sweep->blocks[block].first.address < next)
      next = sweep->blocks[block].first.address;
    location.address = next;
  }
  return r;
}

/* Whether there is debug information for the file. */
static bool file_has_lines(const struct sweep *sweep)
{
  const char *file;
  unsigned line;

  for (size_t i = 0; i < sweep->block_count; i++)
    if (analysis_names_line(sweep->job->names, &sweep->blocks[i].first, &file, &line))
      return true;
  return false;
}

static bool piece_ran(const struct sweep *sweep, const struct symbol_piece *piece)
{
  for (size_t i = 0; i < sweep->block_count; i++)
    if (sweep->blocks[i].first.address - piece->address < piece->size)
      return true;
  return false;
}

static int sweep_file(struct sweep *sweep)
{
  const struct symbol_layout *layout = analysis_names_layout(sweep->job->names, sweep->file);
  int r = 0;

  if (!layout || !file_has_lines(sweep))
    return 0;
  for (size_t i = 0; i < layout->count && r >= 0; i++)
    if (piece_ran(sweep, &layout->pieces[i]))
      r = sweep_piece(sweep, layout->pieces[i].address, layout->pieces[i].address + layout->pieces[i].size);
  return r;
}

/* The modules that were asked for; otherwise all except the system's, unless these are wanted, too. */
static bool module_is_wanted(const struct export_job *job, uint32_t number)
{
  struct analysis_file file;

  if (export_module(job))
    return export_has_file(job, number);
  return job->options.has_all_sources || (analysis_names_file(job->names, number, &file) &&
                                          !lcov_is_system(file.name) && strncmp(file.name, "/lib", 4) != 0);
}

/* Counts are sorted by file, so those of one file are contiguous. */
static int sweep_files(struct sweep *sweep)
{
  size_t blocks, jumps;
  const struct analysis_block *block = analysis_counts_all_blocks(sweep->job->counts, &blocks);
  const struct analysis_jump *jump = analysis_counts_jumps(sweep->job->counts, &jumps);
  int r = 0;

  while (blocks && r >= 0 && block->first.file != ANALYSIS_NO_FILE) {
    *sweep = (struct sweep){.job = sweep->job,
                            .lcov = sweep->lcov,
                            .file = block->first.file,
                            .blocks = block,
                            .jumps = jump,
                            .functions = sweep->functions,
                            .function_count = sweep->function_count};
    for (; blocks && block->first.file == sweep->file; block++, blocks--)
      sweep->block_count++;
    for (; jumps && jump->from.file < sweep->file; jump++, jumps--)
      sweep->jumps = jump + 1;
    for (; jumps && jump->from.file == sweep->file; jump++, jumps--)
      sweep->jump_count++;
    if (module_is_wanted(sweep->job, sweep->file))
      r = sweep_file(sweep);
  }
  return r;
}

/* ---- all of it ---- */

static int functions_index(struct sweep *sweep, const struct analysis_hot *hot)
{
  const struct analysis_hot_function *functions = analysis_hot_functions(hot, &sweep->function_count);

  sweep->functions = calloc(sweep->function_count + 1, sizeof(const struct analysis_hot_function *));
  if (!sweep->functions)
    return -ENOMEM;
  for (size_t i = 0; i < sweep->function_count; i++)
    sweep->functions[i] = &functions[i];
  qsort(sweep->functions, sweep->function_count, sizeof(*sweep->functions), function_order);
  return 0;
}

static int hot_collect(struct export_job *job, struct lcov *lcov, struct analysis_hot *hot)
{
  struct sweep sweep = {.job = job, .lcov = lcov};
  const struct analysis_hot_line *lines;
  size_t count;
  int r = analysis_hot_read_lines(hot);

  if (r >= 0)
    r = functions_index(&sweep, hot);
  lines = analysis_hot_lines(hot, &count);
  for (size_t i = 0; i < count && r >= 0; i++)
    if (lines[i].line)
      r = line_add(lcov, &(struct lcov_line){lines[i].file, lines[i].line, lines[i].executed, false});
  if (r >= 0)
    r = sweep_files(&sweep);
  free(sweep.functions);
  return r;
}

int lcov_collect(struct export_job *job, struct lcov *lcov)
{
  struct analysis_hot *hot = NULL;
  uint32_t file;
  int r = export_module(job) ? export_file(job, &file) : 0;

  if (r >= 0)
    r = analysis_hot_new(job->names, job->code, job->counts, NULL, &hot);
  if (r >= 0)
    r = hot_collect(job, lcov, hot);
  analysis_hot_free(hot);
  lcov_sort(lcov);
  return r;
}

void lcov_done(struct lcov *lcov)
{
  free(lcov->lines);
  free(lcov->functions);
  free(lcov->branches);
}
