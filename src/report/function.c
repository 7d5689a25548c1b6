/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that branches lead into: symbols by file and address, so that a program that runs twice is counted
 * once.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/summary.h"

#define PLACES_LEAST 1024u

static uint32_t *place_of(const struct function_list *list, uint32_t file, uint64_t start)
{
  uint64_t hash = (start ^ (uint64_t)file << 40) * UINT64_C(0x9E3779B97F4A7C15);
  size_t i = (size_t)(hash >> 32) & (list->place_count - 1);

  for (;; i = (i + 1) & (list->place_count - 1)) {
    const struct function *function = list->places[i] ? &list->functions[list->places[i] - 1] : NULL;

    if (!function || (function->file == file && function->start == start))
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
    *place_of(&next, list->functions[i].file, list->functions[i].start) = (uint32_t)i + 1;
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
  *place_of(list, function->file, function->start) = (uint32_t)list->count + 1;
  return (int)list->count++;
}

int function_list_find(struct report_summary *summary, uint32_t space, uint64_t address)
{
  struct function_list *list = &summary->functions;
  struct function function = {.file = NO_FILE, .start = NO_START};
  struct report_name name;
  uint32_t place;

  if (!list->count && function_add(list, &function) < 0)
    return -ENOMEM;
  if (!summary->names || !report_names_find(summary->names, space, address, &name))
    return 0;
  function.file = name.file;
  function.start = name.symbol ? name.start : NO_START;
  function.symbol = name.symbol;
  function.module = name.module;
  place = *place_of(list, function.file, function.start);
  if (place)
    return (int)place - 1;
  return list->count < FUNCTIONS_MAX ? function_add(list, &function) : 0;
}

void function_list_done(struct function_list *list)
{
  free(list->functions);
  free(list->places);
  *list = (struct function_list){0};
}
