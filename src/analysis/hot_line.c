/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of source lines. Each executed instruction counts for the line of the innermost function that it was
 * inlined from. A line may have many instructions, of which some run more often than others, and copies of itself
 * wherever it was inlined: it ran as often as the busiest instruction of a copy, and its copies add up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/filter.h"
#include "analysis/hot_table.h"
#include "base/base.h"
#include "symbol/symbol.h"

/* A copy of a line. */
struct copy {
  uint64_t hash; /* of its place (the real function and the inlined calls) and of the line */
  uint64_t executed;
  uint32_t line; /* its number */
};

struct line_maker {
  struct analysis_hot *hot;
  struct hash_index line_index; /* of lines by file, number and function */
  struct copy *copies;
  size_t copy_count, copy_capacity;
  struct hash_index copy_index;
  const struct analysis_jump *jumps; /* the jumps that are not done yet */
  size_t jumps_left;
};

/* ---- lines ---- */

static bool word_is(const char *one, const char *other)
{
  return one == other || (one && other && !strcmp(one, other));
}

static uint64_t line_hash(const struct analysis_hot_line *line)
{
  return hash_mix_string(hash_mix_string(hash_start(line->line), line->file), line->function);
}

/* The number of a line, or HOT_NONE without memory. */
static uint32_t line_get(struct line_maker *maker, const struct analysis_hot_line *line)
{
  struct analysis_hot *hot = maker->hot;
  uint64_t hash = line_hash(line);
  struct analysis_hot_line *added;
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&maker->line_index, hash, &at)) != HASH_NONE;) {
    const struct analysis_hot_line *other = &hot->lines[number];

    if (other->line == line->line && word_is(other->file, line->file) && word_is(other->function, line->function))
      return number;
  }
  added = array_append(&hot->lines, &hot->line_count, &hot->line_capacity);
  if (!added)
    return HOT_NONE;
  *added = *line;
  if (hash_index_add(&maker->line_index, hash, hot->line_count - 1) < 0)
    return HOT_NONE;
  return (uint32_t)hot->line_count - 1;
}

/* ---- copies ---- */

static uint64_t copy_hash(uint32_t line, const struct analysis_location *at, const struct symbol_place *place)
{
  uint64_t hash =
    hash_mix(hash_start((uint64_t)line << 32 | at->file), place->symbol ? place->address - place->offset : 0);

  for (size_t i = 1; i < place->frame_count; i++)
    hash = hash_mix(hash, place->frames[i].line ^ (uint64_t)place->frames[i].column << 32);
  return hash;
}

static int copy_count(struct line_maker *maker, uint32_t line, uint64_t hash, uint64_t executed)
{
  struct copy *copy;
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&maker->copy_index, hash, &at)) != HASH_NONE;) {
    copy = &maker->copies[number];
    if (copy->line == line && copy->hash == hash) {
      copy->executed = executed > copy->executed ? executed : copy->executed;
      return 0;
    }
  }
  copy = array_append(&maker->copies, &maker->copy_count, &maker->copy_capacity);
  if (!copy)
    return -ENOMEM;
  *copy = (struct copy){hash, executed, line};
  return hash_index_add(&maker->copy_index, hash, maker->copy_count - 1);
}

/* ---- instructions ---- */

static bool place_is_wanted(const struct analysis_hot *hot, const struct analysis_location *at,
                            const struct symbol_place *place)
{
  const char *wanted = hot->filter.function;
  struct analysis_extent extent;

  if (hot->filter.module && !analysis_module_is(hot->names, at->file, hot->filter.module))
    return false;
  if (!wanted || analysis_symbol_is(place->symbol, place->mangled, wanted))
    return true;
  for (size_t i = 0; i < place->frame_count; i++)
    if (place->frames[i].function && analysis_symbol_is(place->frames[i].function, NULL, wanted))
      return true;
  if (!analysis_word_is_place(wanted))
    return false;
  analysis_extent_find(hot->names, at, &extent);
  return analysis_word_names(wanted, hot->names, &extent);
}

static int location_order(const struct analysis_location *one, const struct analysis_location *other)
{
  if (one->file != other->file)
    return one->file < other->file ? -1 : 1;
  if (one->space != other->space)
    return one->space < other->space ? -1 : 1;
  return one->address < other->address ? -1 : one->address > other->address;
}

/* Counts the branches of the instruction. Instructions and jumps are in the same order. */
static void jumps_count(struct line_maker *maker, const struct analysis_location *at, struct analysis_hot_line *line)
{
  for (; maker->jumps_left && location_order(&maker->jumps->from, at) <= 0; maker->jumps++, maker->jumps_left--) {
    if (location_order(&maker->jumps->from, at) < 0)
      continue;
    if (maker->jumps->is_passed)
      line->passed += maker->jumps->count;
    else
      line->taken += maker->jumps->count;
  }
}

static int ran_count(void *data, const struct analysis_ran *ran)
{
  struct line_maker *maker = data;
  struct analysis_hot *hot = maker->hot;
  struct analysis_hot_line line = {0};
  struct symbol_place place;
  struct analysis_name name = {0};
  uint32_t number;

  if (!analysis_names_place(hot->names, &ran->at, &place))
    place = (struct symbol_place){0};
  if (!place_is_wanted(hot, &ran->at, &place))
    return 0;
  if (!place.frame_count || !place.frames[0].file) {
    hot->without_line += ran->executed;
    return 0;
  }
  (void)analysis_names_symbol(hot->names, &ran->at, &name);
  line.file = place.frames[0].file;
  line.line = place.frames[0].line;
  line.function = place.frames[0].function ? place.frames[0].function : place.symbol;
  line.module = name.module;
  number = line_get(maker, &line);
  if (number == HOT_NONE)
    return -ENOMEM;
  hot->lines[number].instructions += ran->executed;
  hot->lines[number].is_inlined |= place.frame_count > 1;
  jumps_count(maker, &ran->at, &hot->lines[number]);
  return copy_count(maker, number, copy_hash(number, &ran->at, &place), ran->executed);
}

int analysis_hot_read_lines(struct analysis_hot *hot)
{
  struct line_maker maker = {.hot = hot};
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(hot->counts, &count);
  int r;

  maker.jumps = analysis_counts_jumps(hot->counts, &maker.jumps_left);
  r = analysis_blocks_walk(hot->code, blocks, count, ran_count, &maker);
  for (size_t i = 0; i < maker.copy_count; i++)
    hot->lines[maker.copies[i].line].executed += maker.copies[i].executed;
  hash_index_done(&maker.line_index);
  hash_index_done(&maker.copy_index);
  free(maker.copies);
  if (r < 0)
    return r;
  analysis_hot_sort(hot, ANALYSIS_HOT_LINE, ANALYSIS_HOT_BY_INSTRUCTIONS);
  return 0;
}

const struct analysis_hot_line *analysis_hot_lines(const struct analysis_hot *hot, size_t *ret_count)
{
  *ret_count = hot->line_count;
  return hot->lines;
}

uint64_t analysis_hot_without_line(const struct analysis_hot *hot)
{
  return hot->without_line;
}
