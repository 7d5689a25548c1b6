/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the function of a location.
 */
#include "analysis/extent.h"

#include "analysis/names_inside.h"
#include "base/base.h"

#define REACH ((uint64_t)SYMBOL_REACH) /* bytes of a function in no file */

/* The earliest start and latest end of a guess: after and before known functions. */
struct bounds {
  uint64_t first, end;
};

static uint64_t greater(uint64_t one, uint64_t other)
{
  return one > other ? one : other;
}

static uint64_t less(uint64_t one, uint64_t other)
{
  return one < other ? one : other;
}

/* The segment around an address: a guess does not extend beyond it. */
static struct bounds segment_bounds(const struct names_file *file, uint64_t address)
{
  for (size_t i = 0; file->layout && i < file->layout->count; i++) {
    const struct symbol_piece *piece = &file->layout->pieces[i];

    if (address - piece->address < piece->size)
      return (struct bounds){piece->address, piece->address + piece->size};
  }
  return (struct bounds){0, UINT64_MAX};
}

static void symbols_around(const struct names_file *file, uint64_t address, uint64_t *ret_before, uint64_t *ret_after)
{
  *ret_before = 0;
  *ret_after = UINT64_MAX;
  if (file->module)
    symbol_module_around(file->module, address, ret_before, ret_after);
  else if (file->table)
    symbol_table_around(file->table, address, ret_before, ret_after);
}

/* Guesses an extent from the nearest start before and after. `known` is where symbols and unwind tables end and
 * begin. */
static void extent_guess(struct analysis_names *names, const struct analysis_location *location, struct bounds segment,
                         struct bounds known, struct analysis_extent *extent)
{
  uint64_t before, after;

  starts_around(names, location, &before, &after);
  if (before < segment.first)
    before = 0;
  if (known.first < segment.first)
    known.first = 0;
  extent->start = greater(before, known.first);
  extent->source = extent->start ? ANALYSIS_EXTENT_BY_CALL : ANALYSIS_EXTENT_BY_NOTHING;
  extent->end = less(less(after, known.end), segment.end);
  if (extent->end == UINT64_MAX || !extent->start)
    extent->end = 0;
}

static void file_guess(struct analysis_names *names, const struct analysis_location *location,
                       const struct eh_range *unwind, struct analysis_extent *extent)
{
  const struct names_file *file = &names->list[location->file];
  struct bounds known;

  symbols_around(file, location->address, &known.first, &known.end);
  known.first = greater(known.first, unwind->before);
  known.end = less(known.end, unwind->after);
  extent_guess(names, location, segment_bounds(file, location->address), known, extent);
}

/* Finds the extent from symbols and unwind tables. Returns false if they have none; `*ret_unwind` is then the range
 * between their neighbours. */
static bool extent_know(struct analysis_names *names, const struct analysis_location *location,
                        struct analysis_extent *ret_extent, struct eh_range *ret_unwind)
{
  struct analysis_extent extent = {
    .file = location->file, .space = location->space, .source = ANALYSIS_EXTENT_BY_NOTHING};
  struct analysis_name name = {0};
  bool has_file = analysis_names_symbol(names, location, &name);

  extent.module = name.module;
  if (name.symbol) {
    extent.symbol = name.symbol;
    extent.mangled = name.mangled;
    extent.start = name.start;
    extent.end = name.size ? name.start + name.size : 0;
    extent.source = ANALYSIS_EXTENT_BY_SYMBOL;
  } else if (has_file && eh_range_find(names, location->file, location->address, ret_unwind)) {
    extent.start = ret_unwind->start;
    extent.end = ret_unwind->end;
    extent.source = ANALYSIS_EXTENT_BY_UNWIND;
  }
  *ret_extent = extent;
  return extent.source != ANALYSIS_EXTENT_BY_NOTHING;
}

bool analysis_extent_known(struct analysis_names *names, const struct analysis_location *location,
                           struct analysis_extent *ret_extent)
{
  struct eh_range unwind;

  return extent_know(names, location, ret_extent, &unwind);
}

void analysis_extent_find(struct analysis_names *names, const struct analysis_location *location,
                          struct analysis_extent *ret_extent)
{
  const struct bounds nothing = {0, UINT64_MAX};
  struct eh_range unwind;

  if (extent_know(names, location, ret_extent, &unwind))
    return;
  if (ret_extent->module) {
    file_guess(names, location, &unwind, ret_extent);
  } else {
    uint64_t first = location->address > REACH ? location->address - REACH : 0;

    extent_guess(names, location, (struct bounds){first, UINT64_MAX}, nothing, ret_extent);
  }
}

int analysis_extent_name(struct text *text, const char *module, uint64_t start, enum analysis_extent_source source)
{
  const char *mark = source >= ANALYSIS_EXTENT_BY_CALL ? ANALYSIS_EXTENT_GUESS : "";
  unsigned long long address = start;

  if (source == ANALYSIS_EXTENT_BY_NOTHING)
    return module ? text_addf(text, "[%s]", module) : text_add(text, "[in no module]");
  return module ? text_addf(text, "%s+0x%llx%s", module, address, mark) : text_addf(text, "0x%llx%s", address, mark);
}
