/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the compilation unit and the function of an address. DWARF has lists for this (.debug_aranges), but not every
 * compiler writes them. The ranges of the units are therefore read once, and those of a unit's functions when an
 * address in it is first asked for. DWARF 5, 3.1 and 3.3.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "symbol/lines.h"

#define BACK_MAX 64 /* overlapping ranges that a search goes back over */

/* ---- lists of ranges ---- */

int range_list_add(struct range_list *list, const struct range *range)
{
  struct range *added = array_append(&list->ranges, &list->count, &list->capacity);

  if (!added)
    return -ENOMEM;
  *added = *range;
  return 0;
}

static int range_compare(const void *one, const void *other)
{
  const struct range *a = one, *b = other;

  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return a->end > b->end ? -1 : a->end < b->end; /* so that the smaller one is found first */
}

void range_list_finish(struct range_list *list)
{
  if (list->count)
    qsort(list->ranges, list->count, sizeof(*list->ranges), range_compare);
}

const struct range *range_list_find(const struct range_list *list, uint64_t address)
{
  struct search search = {.end = list->count};

  while (search_next(&search))
    search_turn(&search, list->ranges[search.at].start <= address);
  for (size_t i = search.first; i > 0 && search.first - i < BACK_MAX; i--)
    if (address < list->ranges[i - 1].end)
      return &list->ranges[i - 1];
  return NULL;
}

void range_list_done(struct range_list *list)
{
  free(list->ranges);
  *list = (struct range_list){0};
}

/* ---- entries ---- */

bool lines_work(struct symbol_lines *lines)
{
  if (!lines->work)
    return false;
  lines->work--;
  return true;
}

bool entry_next(struct symbol_lines *lines, Dwarf_Die *die, Dwarf_Die *ret_die)
{
  Dwarf_Die next;

  if (!lines_work(lines) || sym_dwarf_siblingof(die, &next) != 0 || next.addr <= die->addr)
    return false;
  *ret_die = next;
  return true;
}

bool entry_child(struct symbol_lines *lines, Dwarf_Die *die, Dwarf_Die *ret_die)
{
  Dwarf_Die child;

  if (!lines_work(lines) || sym_dwarf_child(die, &child) != 0 || child.addr <= die->addr)
    return false;
  *ret_die = child;
  return true;
}

int entry_holds(struct symbol_lines *lines, Dwarf_Die *die, uint64_t address)
{
  Dwarf_Addr base, start, end;
  ptrdiff_t at = 0;
  int answer = -1;

  while (lines_work(lines) && (at = sym_dwarf_ranges(die, at, &base, &start, &end)) > 0) {
    if (address >= start && address < end)
      return 1;
    answer = 0;
  }
  return answer;
}

/* Code that the linker discarded keeps its entries: at address 0, or with an end before the start. */
static bool range_is_alive(uint64_t start, uint64_t end)
{
  return start && start < end;
}

static int entry_add_ranges(struct symbol_lines *lines, Dwarf_Die *die, struct range_list *list, uint64_t value)
{
  Dwarf_Addr base, start, end;
  ptrdiff_t at = 0;
  int r = 0;

  while (r >= 0 && lines_work(lines) && (at = sym_dwarf_ranges(die, at, &base, &start, &end)) > 0)
    if (range_is_alive(start, end))
      r = range_list_add(list, &(struct range){start, end, value});
  return r;
}

/* ---- units ---- */

static int unit_add(struct symbol_lines *lines, const Dwarf_Die *die)
{
  struct unit *unit = array_append(&lines->units, &lines->count, &lines->capacity);

  if (!unit)
    return -ENOMEM;
  *unit = (struct unit){.die = *die};
  return entry_add_ranges(lines, &unit->die, &lines->ranges, lines->count - 1);
}

/* For a unit whose entries are in a separate file (-gsplit-dwarf) the functions are not read: it has lines only. */
int units_read(struct symbol_lines *lines)
{
  Dwarf_CU *unit = NULL;
  Dwarf_Die die;
  Dwarf_Half version;
  uint8_t type;
  int r = 0;

  lines->work = LINES_INDEX_MAX;
  while (r >= 0 && lines_work(lines) &&
         sym_dwarf_get_units(lines->dwarf, unit, &unit, &version, &type, &die, NULL) == 0) {
    lines->version = version > lines->version ? version : lines->version;
    if (type == DW_UT_compile || type == DW_UT_skeleton)
      r = unit_add(lines, &die);
  }
  lines->index_work = lines->work;
  range_list_finish(&lines->ranges);
  return r;
}

/* Functions can be anywhere: in namespaces, in classes, in each other. */
static int functions_read(struct symbol_lines *lines, struct unit *unit)
{
  Dwarf_Die stack[LINES_DEPTH_MAX];
  Dwarf_Die *top = stack;
  int r = 0;

  if (!entry_child(lines, &unit->die, top))
    return 0;
  while (r >= 0) {
    if (sym_dwarf_tag(top) == DW_TAG_subprogram)
      r = entry_add_ranges(lines, top, &unit->functions, sym_dwarf_dieoffset(top));
    if (top + 1 < stack + LINES_DEPTH_MAX && entry_child(lines, top, top + 1)) {
      top++;
      continue;
    }
    while (!entry_next(lines, top, top))
      if (top-- == stack)
        return r;
  }
  return r;
}

struct unit *unit_find(struct symbol_lines *lines, uint64_t address)
{
  const struct range *range = range_list_find(&lines->ranges, address);
  struct unit *unit = range ? &lines->units[range->value] : NULL;

  if (unit && !unit->is_asked) {
    unit->is_asked = true;
    lines->work = lines->index_work;
    (void)functions_read(lines, unit); /* without memory, only those that were read */
    lines->index_work = lines->work;
    range_list_finish(&unit->functions);
  }
  return unit;
}
