/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the tables, by number. A function is known by its file and where it begins (extent.h).
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/analysis.h"
#include "analysis/extent.h"
#include "analysis/filter.h"
#include "analysis/hot_table.h"
#include "base/base.h"

#define ROOM_FIRST 1024u

/* ---- names ---- */

/* A name that is written as it is always fits, also where it would not as a pattern: "[vdso]". */
static bool name_fits(const char *pattern, const char *name)
{
  return !strcmp(pattern, name) || !fnmatch(pattern, name, 0);
}

bool analysis_module_is(const struct analysis_names *names, uint32_t file, const char *name)
{
  struct analysis_file found;
  const char *slash;

  if (file == ANALYSIS_NO_FILE || !analysis_names_file(names, file, &found))
    return false;
  slash = strrchr(found.name, '/');
  return name_fits(name, slash ? slash + 1 : found.name) || (strchr(name, '/') && name_fits(name, found.name));
}

bool analysis_module_is_mapped(const struct analysis_names *names, const char *name)
{
  struct analysis_file file;

  for (uint32_t i = 0; analysis_names_file(names, i, &file); i++)
    if (analysis_module_is(names, i, name))
      return true;
  return false;
}

/* ---- the hash ---- */

static uint64_t function_hash(const struct analysis_hot_function *key)
{
  return hot_hash(key->start + !key->symbol) ^ hot_hash(key->file + ((uint64_t)key->space << 32));
}

static uint32_t *place_find(struct analysis_hot *hot, const struct analysis_hot_function *key)
{
  size_t mask = hot->function_room - 1;

  for (size_t i = function_hash(key) & mask;; i = (i + 1) & mask) {
    uint32_t number = hot->function_places[i];
    const struct analysis_hot_function *function = number ? &hot->functions[number - 1] : NULL;

    if (!function || (function->file == key->file && function->space == key->space && function->start == key->start &&
                      !function->symbol == !key->symbol))
      return &hot->function_places[i];
  }
}

static int places_grow(struct analysis_hot *hot)
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

struct analysis_extent hot_function_extent(const struct analysis_hot_function *function)
{
  return (struct analysis_extent){
    .symbol = function->symbol,
    .mangled = function->mangled,
    .module = function->module,
    .file = function->file,
    .space = function->space,
    .start = function->start,
    .end = function->size ? function->start + function->size : 0,
    .source = function->source,
  };
}

static bool function_is_wanted(const struct analysis_hot *hot, const struct analysis_hot_function *function)
{
  const struct analysis_hot_filter *filter = &hot->filter;

  if (filter->module && !analysis_module_is(hot->names, function->file, filter->module))
    return false;
  if (filter->function) {
    struct analysis_extent extent = hot_function_extent(function);

    return analysis_word_names(filter->function, hot->names, &extent);
  }
  return true;
}

static uint32_t function_add(struct analysis_hot *hot, const struct analysis_hot_function *function)
{
  struct analysis_hot_function *functions =
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

/* ---- functions ---- */

static struct analysis_hot_function function_describe(struct analysis_names *names,
                                                      const struct analysis_location *location)
{
  struct analysis_extent extent;

  analysis_extent_find(names, location, &extent);
  return (struct analysis_hot_function){
    .symbol = extent.symbol,
    .mangled = extent.mangled,
    .module = extent.module,
    .file = location->file,
    .space = location->space,
    .start = extent.start,
    .size = extent.end && !analysis_extent_is_guess(&extent) ? extent.end - extent.start : 0,
    .source = extent.source,
  };
}

uint32_t hot_function_at(struct analysis_hot *hot, const struct analysis_location *location)
{
  struct analysis_hot_function function = function_describe(hot->names, location);
  uint32_t *place;

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
static bool function_did(const struct analysis_hot_function *function)
{
  return function->instructions || function->taken || function->passed || function->calls;
}

void hot_functions_finish(struct analysis_hot *hot)
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
