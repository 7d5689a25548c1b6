/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that branches lead into, by file and address, so that a program that runs twice has one entry.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/extent.h"
#include "analysis/summary_inside.h"

static bool function_is(const struct function *one, const struct function *other)
{
  return one->start == other->start && one->file == other->file && one->space == other->space &&
         one->is_place == other->is_place && !one->symbol == !other->symbol &&
         (one->source == ANALYSIS_EXTENT_BY_NOTHING) == (other->source == ANALYSIS_EXTENT_BY_NOTHING);
}

static uint64_t function_hash(const struct function *function)
{
  return hash_mix(hash_start(function->start), (uint64_t)function->file << 32 | function->space);
}

/* Returns its number, or -ENOMEM. */
static int function_add(struct function_list *list, const struct function *function)
{
  struct function *added = array_append(&list->functions, &list->count, &list->capacity);

  if (!added)
    return -ENOMEM;
  if (hash_index_add(&list->index, function_hash(function), list->count - 1) < 0) {
    list->count--;
    return -ENOMEM;
  }
  *added = *function;
  return (int)list->count - 1;
}

static int function_number(struct function_list *list, const struct function *function)
{
  uint64_t hash = function_hash(function);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&list->index, hash, &at)) != HASH_NONE;)
    if (function_is(&list->functions[number], function))
      return (int)number;
  return list->count < FUNCTIONS_MAX ? function_add(list, function) : 0;
}

static struct function function_make(const struct analysis_extent *extent)
{
  return (struct function){
    .start = extent->start,
    .file = extent->file,
    .space = extent->space,
    .symbol = extent->symbol,
    .module = extent->module,
    .source = extent->source,
  };
}

int function_list_find(struct analysis_summary *summary, uint32_t space, uint64_t address)
{
  struct function_list *list = &summary->functions;
  struct function function = {.file = NO_FILE, .source = ANALYSIS_EXTENT_BY_NOTHING};
  struct analysis_location location;
  struct analysis_extent extent;
  bool is_known;

  if (!list->count && function_add(list, &function) < 0)
    return -ENOMEM;
  if (!summary->names)
    return 0;
  location = analysis_names_locate(summary->names, space, address);
  is_known = analysis_extent_known(summary->names, &location, &extent);
  function = function_make(&extent);
  if (!is_known) {
    function.start = location.address;
    function.is_place = true;
  }
  return function_number(list, &function);
}

/* ---- places ---- */

/* The function that a place belongs to. */
static struct function place_function(struct analysis_summary *summary, const struct function *place)
{
  struct analysis_location location = {place->file, place->space, place->start};
  struct analysis_extent extent;

  analysis_extent_find(summary->names, &location, &extent);
  return function_make(&extent);
}

bool function_list_is_same(struct analysis_summary *summary, uint32_t one, uint32_t other)
{
  const struct function *a = &summary->functions.functions[one], *b = &summary->functions.functions[other];
  struct function c, d;

  if (one == other)
    return true;
  if (!a->is_place || !b->is_place || a->file != b->file || a->space != b->space)
    return false;
  c = place_function(summary, a);
  d = place_function(summary, b);
  return function_is(&c, &d);
}

int function_list_join(struct analysis_summary *summary)
{
  struct function_list *list = &summary->functions;
  size_t count = list->count;

  for (size_t i = 0; i < count; i++) {
    struct function whole, *place = &list->functions[i];
    int number;

    if (!place->is_place || !place->branches)
      continue;
    whole = place_function(summary, place);
    number = function_number(list, &whole);
    if (number < 0)
      return number;
    place = &list->functions[i]; /* the list may have grown */
    list->functions[number].branches += place->branches;
    list->functions[number].entries += place->entries;
    place->branches = place->entries = 0;
  }
  return 0;
}

void function_list_done(struct function_list *list)
{
  free(list->functions);
  hash_index_done(&list->index);
  *list = (struct function_list){0};
}
