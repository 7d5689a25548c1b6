/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that branches lead into, by file and address, so that a program that runs twice is counted once.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/extent.h"
#include "analysis/summary_inside.h"

#define PLACES_LEAST 1024u

static bool function_is(const struct function *one, const struct function *other)
{
  return one->start == other->start && one->file == other->file && one->space == other->space &&
         one->is_place == other->is_place && !one->symbol == !other->symbol &&
         (one->source == ANALYSIS_EXTENT_BY_NOTHING) == (other->source == ANALYSIS_EXTENT_BY_NOTHING);
}

static uint32_t *place_of(const struct function_list *list, const struct function *wanted)
{
  uint64_t hash = (wanted->start ^ (uint64_t)wanted->file << 40) * UINT64_C(0x9E3779B97F4A7C15);
  size_t i = (size_t)(hash >> 32) & (list->place_count - 1);

  for (;; i = (i + 1) & (list->place_count - 1)) {
    const struct function *function = list->places[i] ? &list->functions[list->places[i] - 1] : NULL;

    if (!function || function_is(function, wanted))
      return &list->places[i];
  }
}

static int places_grow(struct function_list *list)
{
  struct function_list next = *list;

  next.place_count = list->place_count ? 2 * list->place_count : PLACES_LEAST;
  next.places = calloc(next.place_count, sizeof(*next.places));
  if (!next.places)
    return -ENOMEM;
  for (size_t i = 0; i < list->count; i++)
    *place_of(&next, &list->functions[i]) = (uint32_t)i + 1;
  free(list->places);
  *list = next;
  return 0;
}

/* Returns its number, or -ENOMEM. */
static int function_add(struct function_list *list, const struct function *function)
{
  struct function *functions;

  if (2 * (list->count + 1) > list->place_count && places_grow(list) < 0)
    return -ENOMEM;
  functions = array_grow(list->functions, sizeof(*functions), list->count, &list->capacity);
  if (!functions)
    return -ENOMEM;
  list->functions = functions;
  functions[list->count] = *function;
  *place_of(list, function) = (uint32_t)list->count + 1;
  return (int)list->count++;
}

static int function_number(struct function_list *list, const struct function *function)
{
  uint32_t place = list->place_count ? *place_of(list, function) : 0;

  if (place)
    return (int)place - 1;
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

/* What a place is a part of. */
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
  free(list->places);
  *list = (struct function_list){0};
}
