/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of source lines. Each instruction that ran goes to the line of the innermost function that it was inlined
 * from. A line may have many instructions, of which some run more often than others, and copies of itself wherever it
 * was inlined: it ran as often as the busiest instruction of a copy, and its copies add up.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/filter.h"
#include "analysis/hot_table.h"
#include "base/base.h"
#include "symbol/symbol.h"

#define ROOM_FIRST 4096u

/* A copy of a line. */
struct copy {
  uint64_t hash; /* of where it is: the function that exists, and the calls that were inlined */
  uint64_t executed;
  uint32_t line; /* number + 1; 0: the place is empty */
};

struct line_maker {
  struct analysis_hot *hot;
  uint32_t *places; /* a hash of lines: number + 1, or 0 */
  size_t room;
  struct copy *copies; /* a hash */
  size_t copy_count, copy_room;
  const struct analysis_jump *jumps; /* those that are not behind us */
  size_t jumps_left;
};

static uint64_t word_hash(const char *word)
{
  uint64_t hash = 14695981039346656037u;

  for (; word && *word; word++)
    hash = (hash ^ (unsigned char)*word) * 1099511628211u;
  return hash;
}

/* ---- lines ---- */

static bool word_is(const char *one, const char *other)
{
  return one == other || (one && other && !strcmp(one, other));
}

static uint32_t *line_place(struct line_maker *maker, const struct analysis_hot_line *line)
{
  uint64_t hash = hot_hash(word_hash(line->file) + line->line) ^ word_hash(line->function);

  for (size_t i = hash & (maker->room - 1);; i = (i + 1) & (maker->room - 1)) {
    uint32_t number = maker->places[i];
    const struct analysis_hot_line *other = number ? &maker->hot->lines[number - 1] : NULL;

    if (!other ||
        (other->line == line->line && word_is(other->file, line->file) && word_is(other->function, line->function)))
      return &maker->places[i];
  }
}

static int lines_grow(struct line_maker *maker)
{
  size_t room = maker->room ? 2 * maker->room : ROOM_FIRST;
  uint32_t *places = calloc(room, sizeof(*places));

  if (!places)
    return -ENOMEM;
  free(maker->places);
  maker->places = places;
  maker->room = room;
  for (size_t i = 0; i < maker->hot->line_count; i++)
    *line_place(maker, &maker->hot->lines[i]) = (uint32_t)i + 1;
  return 0;
}

/* The number of a line, or HOT_NONE without memory. */
static uint32_t line_get(struct line_maker *maker, const struct analysis_hot_line *line)
{
  struct analysis_hot *hot = maker->hot;
  struct analysis_hot_line *lines;
  uint32_t *place;

  if (hot->line_count >= maker->room / 2 && lines_grow(maker) < 0)
    return HOT_NONE;
  place = line_place(maker, line);
  if (*place)
    return *place - 1;
  lines = array_grow(hot->lines, sizeof(*lines), hot->line_count, &hot->line_capacity);
  if (!lines)
    return HOT_NONE;
  hot->lines = lines;
  lines[hot->line_count++] = *line;
  *place = (uint32_t)hot->line_count;
  return *place - 1;
}

/* ---- copies ---- */

static struct copy *copy_place(struct copy *copies, size_t room, uint64_t hash, uint32_t line)
{
  for (size_t i = hot_hash(hash + line) & (room - 1);; i = (i + 1) & (room - 1))
    if (!copies[i].line || (copies[i].line == line && copies[i].hash == hash))
      return &copies[i];
}

static int copies_grow(struct line_maker *maker)
{
  size_t room = maker->copy_room ? 2 * maker->copy_room : ROOM_FIRST;
  struct copy *copies = calloc(room, sizeof(*copies));

  if (!copies)
    return -ENOMEM;
  for (size_t i = 0; i < maker->copy_room; i++)
    if (maker->copies[i].line)
      *copy_place(copies, room, maker->copies[i].hash, maker->copies[i].line) = maker->copies[i];
  free(maker->copies);
  maker->copies = copies;
  maker->copy_room = room;
  return 0;
}

static uint64_t copy_hash(const struct analysis_location *at, const struct symbol_place *place)
{
  uint64_t hash = hot_hash(at->file) ^ (place->symbol ? place->address - place->offset : 0);

  for (size_t i = 1; i < place->frame_count; i++)
    hash = hot_hash(hash ^ place->frames[i].line ^ (uint64_t)place->frames[i].column << 32);
  return hash;
}

static int copy_count(struct line_maker *maker, uint32_t line, uint64_t hash, uint64_t executed)
{
  struct copy *copy;

  if (maker->copy_count >= maker->copy_room / 2 && copies_grow(maker) < 0)
    return -ENOMEM;
  copy = copy_place(maker->copies, maker->copy_room, hash, line + 1);
  maker->copy_count += !copy->line;
  copy->line = line + 1;
  copy->hash = hash;
  copy->executed = executed > copy->executed ? executed : copy->executed;
  return 0;
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

/* The branches of the instruction. Both come in the same order. */
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
  return copy_count(maker, number, copy_hash(&ran->at, &place), ran->executed);
}

int analysis_hot_read_lines(struct analysis_hot *hot)
{
  struct line_maker maker = {.hot = hot};
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(hot->counts, &count);
  int r;

  maker.jumps = analysis_counts_jumps(hot->counts, &maker.jumps_left);
  r = analysis_blocks_walk(hot->code, blocks, count, ran_count, &maker);
  for (size_t i = 0; i < maker.copy_room; i++)
    if (maker.copies[i].line)
      hot->lines[maker.copies[i].line - 1].executed += maker.copies[i].executed;
  free(maker.places);
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
