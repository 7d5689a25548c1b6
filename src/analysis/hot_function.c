/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of the tables, by number. A function is identified by its file and start (extent.h).
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

/* ---- names ---- */

/* A literal name always matches, even if it would not as a pattern: "[vdso]". */
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

/* ---- lookup ---- */

static uint64_t function_hash(const struct analysis_hot_function *key)
{
  return hash_mix(hash_start(key->start), (uint64_t)key->file << 32 | key->space);
}

static uint32_t function_find(const struct analysis_hot *hot, const struct analysis_hot_function *key)
{
  uint64_t hash = function_hash(key);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&hot->function_index, hash, &at)) != HASH_NONE;) {
    const struct analysis_hot_function *function = &hot->functions[number];

    if (function->file == key->file && function->space == key->space && function->start == key->start &&
        !function->symbol == !key->symbol)
      break;
  }
  return number;
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
  if (hash_index_add(&hot->function_index, function_hash(function), hot->function_count) < 0)
    return HOT_NONE;
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
  uint32_t number = function_find(hot, &function);

  return number == HASH_NONE ? function_add(hot, &function) : number;
}

/* Whether the function did anything. One that did not is listed because a jump leads to it and its instructions are
 * unknown. */
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
  hash_index_done(&hot->function_index);
  free(hot->is_wanted);
  hot->is_wanted = NULL;
  hot->wanted_capacity = 0;
}
