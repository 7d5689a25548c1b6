/* SPDX-License-Identifier: Apache-2.0
 *
 * Which function a location belongs to. A function is known by its file and where its symbol begins.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "report/hot_table.h"
#include "report/report.h"

#define ROOM_FIRST 1024u
#define STARTS_MAX (1u << 19) /* beyond that, code without symbols is not divided further */

/* ---- names ---- */

bool report_module_is(const struct report_names *names, uint32_t file, const char *name)
{
  struct report_file found;
  const char *base;

  if (file == REPORT_NO_FILE || !report_names_file(names, file, &found))
    return false;
  base = strrchr(found.name, '/');
  return !strcmp(found.name, name) || (base && !strcmp(base + 1, name));
}

/* ---- the hash ---- */

static uint64_t function_hash(const struct report_hot_function *key)
{
  return hot_hash(key->start + !key->symbol) ^ hot_hash(key->file + ((uint64_t)key->space << 32));
}

static uint32_t *place_find(struct report_hot *hot, const struct report_hot_function *key)
{
  size_t mask = hot->function_room - 1;

  for (size_t i = function_hash(key) & mask;; i = (i + 1) & mask) {
    uint32_t number = hot->function_places[i];
    const struct report_hot_function *function = number ? &hot->functions[number - 1] : NULL;

    if (!function || (function->file == key->file && function->space == key->space && function->start == key->start &&
                      !function->symbol == !key->symbol))
      return &hot->function_places[i];
  }
}

static int places_grow(struct report_hot *hot)
{
  size_t room = hot->function_room ? 2 * hot->function_room : ROOM_FIRST;
  uint32_t *places = calloc(room, sizeof(*places));

  if (!places)
    return -ENOMEM;
  free(hot->function_places);
  hot->function_places = places;
  hot->function_room = room;
  for (size_t i = 0; i < hot->function_count; i++)
    *place_find(hot, &hot->functions[i]) = (uint32_t)i + 1;
  return 0;
}

static bool function_is_wanted(const struct report_hot *hot, const struct report_hot_function *function)
{
  const struct report_hot_filter *filter = &hot->filter;

  if (filter->module && !report_module_is(hot->names, function->file, filter->module))
    return false;
  return !filter->function || report_symbol_is(function->symbol, function->mangled, filter->function);
}

static uint32_t function_add(struct report_hot *hot, const struct report_hot_function *function)
{
  struct report_hot_function *functions =
    array_grow(hot->functions, sizeof(*functions), hot->function_count, &hot->function_capacity);
  bool *is_wanted;

  if (!functions)
    return HOT_NONE;
  hot->functions = functions;
  is_wanted = array_grow(hot->is_wanted, sizeof(*is_wanted), hot->function_count, &hot->wanted_capacity);
  if (!is_wanted)
    return HOT_NONE;
  hot->is_wanted = is_wanted;
  functions[hot->function_count] = *function;
  is_wanted[hot->function_count] = function_is_wanted(hot, function);
  return (uint32_t)hot->function_count++;
}

/* ---- code without symbols ---- */

static int start_compare(const void *one, const void *other)
{
  return report_location_compare(one, other);
}

/* The last place before a location where code without symbols begins; 0: none is known. */
static uint64_t start_before(const struct report_hot *hot, const struct report_location *location)
{
  size_t low = 0, high = hot->start_count;

  while (low < high) {
    size_t middle = low + (high - low) / 2;

    if (report_location_compare(&hot->starts[middle], location) <= 0)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low || hot->starts[low - 1].file != location->file || hot->starts[low - 1].space != location->space)
    return 0;
  return hot->starts[low - 1].address;
}

static int start_add(struct report_hot *hot, const struct report_location *location)
{
  struct report_location *starts;

  if (hot->start_count >= STARTS_MAX ||
      (hot->start_count && report_location_is(&hot->starts[hot->start_count - 1], location)))
    return 0;
  starts = array_grow(hot->starts, sizeof(*starts), hot->start_count, &hot->start_capacity);
  if (!starts)
    return -ENOMEM;
  hot->starts = starts;
  starts[hot->start_count++] = *location;
  return 0;
}

#define CALL_SHORT 8u /* bytes: a call of the next instruction, by which code learns where it is */

/* Calls lead to starts, and so do jumps from other files: the loader's to the program, and stubs of the PLT. */
static bool jump_starts(const struct report_jump *jump)
{
  if (jump->kind == LB_BRANCH_NEAR_IND_JMP && jump->from.file != jump->to.file)
    return true;
  return (jump->kind == LB_BRANCH_NEAR_REL_CALL || jump->kind == LB_BRANCH_NEAR_IND_CALL) &&
         !(jump->from.file == jump->to.file && jump->to.address - jump->from.address < CALL_SHORT);
}

/* What lies behind the end of a symbol is not the code before it. */
static int ends_add(struct report_hot *hot)
{
  size_t count;
  const struct report_block *blocks = report_counts_blocks(hot->counts, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    struct report_location end = blocks[i].first;
    struct report_name name;

    if (!report_names_symbol(hot->names, &end, &name) || !name.symbol || !name.size)
      continue;
    end.address = name.start + name.size;
    r = start_add(hot, &end);
  }
  return r;
}

int hot_starts_find(struct report_hot *hot)
{
  size_t count;
  const struct report_jump *jumps = report_counts_jumps(hot->counts, &count);
  struct report_name name;
  int r = ends_add(hot);

  for (size_t i = 0; i < count && r >= 0; i++)
    if (jump_starts(&jumps[i]) && !(report_names_symbol(hot->names, &jumps[i].to, &name) && name.symbol))
      r = start_add(hot, &jumps[i].to);
  if (r >= 0 && hot->start_count)
    qsort(hot->starts, hot->start_count, sizeof(*hot->starts), start_compare);
  return r;
}

/* ---- functions ---- */

uint32_t hot_function_at(struct report_hot *hot, const struct report_location *location)
{
  struct report_hot_function function = {.file = location->file, .space = location->space};
  struct report_name name = {0};
  uint32_t *place;

  (void)report_names_symbol(hot->names, location, &name);
  function.symbol = name.symbol;
  function.mangled = name.mangled;
  function.module = name.module;
  function.start = name.symbol ? name.start : start_before(hot, location);
  function.size = name.symbol ? name.size : 0;
  if (hot->function_count >= hot->function_room / 2 && places_grow(hot) < 0)
    return HOT_NONE;
  place = place_find(hot, &function);
  if (!*place) {
    uint32_t number = function_add(hot, &function);

    if (number == HOT_NONE)
      return HOT_NONE;
    *place = number + 1;
  }
  return *place - 1;
}

/* A function that did nothing is there because something leads to it whose instructions are not known. */
static bool function_did(const struct report_hot_function *function)
{
  return function->instructions || function->taken || function->passed || function->calls;
}

void hot_functions_finish(struct report_hot *hot)
{
  size_t kept = 0;

  for (size_t i = 0; i < hot->function_count; i++)
    if (hot->is_wanted[i] && function_did(&hot->functions[i]))
      hot->functions[kept++] = hot->functions[i];
  hot->function_count = kept;
  free(hot->function_places);
  free(hot->is_wanted);
  hot->function_places = NULL;
  hot->is_wanted = NULL;
  hot->function_room = hot->wanted_capacity = 0;
}
