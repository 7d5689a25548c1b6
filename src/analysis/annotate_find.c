/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the function that a user names. A name must be that of a function that ran. An address may be one in the run or
 * one in the file, and need not have a symbol.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/annotate.h"
#include "analysis/filter.h"
#include "analysis/hot_table.h"
#include "analysis/names_inside.h"
#include "base/base.h"

#define SPACES_MAX 4096u

struct finder {
  struct analysis_names *names;
  const struct analysis_counts *counts;
  const struct analysis_hot *hot;
  struct analysis_hot_function *found;
  size_t count, capacity;
};

/* Adds a function unless it is in the list. */
static int found_add(struct finder *finder, const struct analysis_hot_function *function)
{
  struct analysis_hot_function *added;

  for (size_t i = 0; i < finder->count; i++)
    if (finder->found[i].file == function->file && finder->found[i].space == function->space &&
        finder->found[i].start == function->start)
      return 0;
  added = array_append(&finder->found, &finder->count, &finder->capacity);
  if (!added)
    return -ENOMEM;
  *added = *function;
  return 0;
}

/* Code without symbols that lies before the first call target has no known start: it is cut to begin where it first
 * ran. */
static struct analysis_hot_function code_cut(const struct finder *finder, const struct analysis_hot_function *function)
{
  struct analysis_hot_function cut = *function;
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(finder->counts, &count);

  for (size_t i = 0; i < count; i++)
    if (blocks[i].first.file == cut.file && blocks[i].first.space == cut.space &&
        blocks[i].first.address - cut.start < cut.size) {
      cut.size -= blocks[i].first.address - cut.start;
      cut.start = blocks[i].first.address;
      break;
    }
  return cut;
}

/* ---- names ---- */

/* The ':' between a module and a name, but not one of the two in "a::b". NULL if there is none. */
static const char *word_colon(const char *word)
{
  for (const char *at = strchr(word, ':'); at; at = strchr(at, ':')) {
    if (at[1] != ':')
      return at > word ? at : NULL;
    at += 2;
  }
  return NULL;
}

/* A function whose extent is a guess is not found by its name here: code_find finds it by an address. */
static int names_find(struct finder *finder, const char *word)
{
  size_t count;
  const struct analysis_hot_function *functions = analysis_hot_functions(finder->hot, &count);
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    struct analysis_extent extent = hot_function_extent(&functions[i]);
    struct analysis_hot_function function = functions[i];

    if ((analysis_extent_is_guess(&extent) && *word != '[') || !analysis_word_names(word, finder->names, &extent))
      continue;
    if (function.source == ANALYSIS_EXTENT_BY_NOTHING)
      function = code_cut(finder, &function);
    r = found_add(finder, &function);
  }
  return r;
}

/* ---- addresses ---- */

/* Finds code without a symbol, as far as it was executed. */
static int code_find(struct finder *finder, const struct analysis_location *at)
{
  size_t count;
  const struct analysis_hot_function *functions = analysis_hot_functions(finder->hot, &count);

  for (size_t i = 0; i < count; i++)
    if (!functions[i].symbol && functions[i].file == at->file && functions[i].space == at->space &&
        at->address - functions[i].start < functions[i].size) {
      struct analysis_hot_function function = code_cut(finder, &functions[i]);

      return at->address < function.start ? 0 : found_add(finder, &function);
    }
  return 0;
}

static int location_find(struct finder *finder, const struct analysis_location *at)
{
  struct analysis_hot_function function = {.file = at->file, .space = at->space};
  struct analysis_name name;
  size_t count;
  const struct analysis_hot_function *functions = analysis_hot_functions(finder->hot, &count);

  if (!analysis_names_symbol(finder->names, at, &name) || !name.symbol)
    return code_find(finder, at);
  for (size_t i = 0; i < count; i++)
    if (functions[i].file == at->file && functions[i].start == name.start && functions[i].symbol)
      return found_add(finder, &functions[i]);
  function.symbol = name.symbol;
  function.mangled = name.mangled;
  function.module = name.module;
  function.start = name.start;
  function.size = name.size;
  return found_add(finder, &function);
}

/* Finds the function at an address of the run. */
static int linear_find(struct finder *finder, uint64_t address)
{
  int r = 0;

  for (uint32_t stream = 0; stream < SPACES_MAX && r >= 0; stream++) {
    uint32_t space = analysis_names_space(finder->names, stream);
    struct analysis_location at;

    if (space == UINT32_MAX)
      break;
    at = analysis_names_locate(finder->names, space, address);
    r = at.file == ANALYSIS_NO_FILE ? code_find(finder, &at) : location_find(finder, &at);
  }
  return r;
}

/* Finds the function at an address of a file that took part in the run; in any file if `target` is NULL. */
static int linked_find(struct finder *finder, const struct analysis_target *target, uint64_t address)
{
  size_t count;
  const struct analysis_block *blocks = analysis_counts_blocks(finder->counts, &count);
  uint32_t last = ANALYSIS_NO_FILE;
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    struct analysis_location at = {.file = blocks[i].first.file, .address = address};
    struct analysis_name name;

    if (at.file == ANALYSIS_NO_FILE || at.file == last)
      continue;
    last = at.file;
    if (!analysis_names_symbol(finder->names, &at, &name) ||
        (target && !analysis_target_is_module(target, name.module)))
      continue;
    if (name.symbol || target)
      r = location_find(finder, &at);
    else
      r = code_find(finder, &at);
  }
  return r;
}

/* ---- words ---- */

/* Finds code without a symbol, or a function that never ran, by its address. */
static int addresses_find(struct finder *finder, const char *word)
{
  struct analysis_target target;
  char *copy = strdup(word);
  int r = copy ? analysis_target_parse(copy, &target) : -ENOMEM;

  if (r < 0) {
    r = r == -ENOMEM ? r : 0;
  } else if (!target.symbol) {
    r = linear_find(finder, target.first);
    if (r >= 0 && !finder->count)
      r = linked_find(finder, NULL, target.first);
  } else if (target.is_offset) {
    r = linked_find(finder, &target, target.first);
  }
  free(copy);
  return r;
}

int analysis_functions_find(struct analysis_names *names, const struct analysis_counts *counts,
                            const struct analysis_hot *hot, const char *word,
                            struct analysis_hot_function **ret_functions)
{
  struct finder finder = {.names = names, .counts = counts, .hot = hot};
  int r = names_find(&finder, word);

  if (r >= 0 && !finder.count)
    r = addresses_find(&finder, word);
  if (r < 0) {
    free(finder.found);
    return r;
  }
  *ret_functions = finder.found;
  return (int)finder.count;
}

/* ---- suggestions ---- */

/* A part of a name is closer than any mistyped name. */
static size_t name_distance(const char *symbol, const char *word)
{
  size_t length = strcspn(symbol, "(");
  char name[65];

  if (strlen(word) >= 3 && strcasestr(symbol, word))
    return 0;
  if (length >= sizeof(name))
    return SIZE_MAX;
  memcpy(name, symbol, length);
  name[length] = '\0';
  return word_distance(name, word);
}

size_t analysis_functions_near(const struct analysis_hot *hot, const char *word, const char **ret_names, size_t count)
{
  size_t function_count, found = 0, distances[16];
  const struct analysis_hot_function *functions = analysis_hot_functions(hot, &function_count);
  const char *colon = word_colon(word);

  word = colon ? colon + 1 : word;
  count = count < 16 ? count : 16;
  for (size_t i = 0; i < function_count; i++) {
    size_t distance = functions[i].symbol ? name_distance(functions[i].symbol, word) : SIZE_MAX, at = found;

    if (distance > (strlen(word) + 1) / 3)
      continue;
    while (at > 0 && distance < distances[at - 1])
      at--;
    if (at >= count)
      continue;
    found = found < count ? found + 1 : count;
    memmove(&distances[at + 1], &distances[at], (found - at - 1) * sizeof(*distances));
    memmove(&ret_names[at + 1], &ret_names[at], (found - at - 1) * sizeof(*ret_names));
    distances[at] = distance;
    ret_names[at] = functions[i].symbol;
  }
  return found;
}

const char *analysis_functions_idle(const struct analysis_names *names, const char *word)
{
  const char *colon = word_colon(word);
  uint64_t address;

  for (size_t i = 0; i < names->count; i++) {
    const struct names_file *file = &names->list[i];

    if (colon && (strlen(file->base) != (size_t)(colon - word) || strncmp(file->base, word, strlen(file->base))))
      continue;
    if ((file->module && symbol_module_address(file->module, colon ? colon + 1 : word, &address)) ||
        symbol_table_address(file->table, colon ? colon + 1 : word, &address))
      return file->base;
  }
  return NULL;
}
