/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions by number, and the way from addresses to them. A symbol table tells where functions begin; without one, a
 * call tells. What was found for an address is kept until something else may lie there.
 */
#include "report/calls_function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TARGETS (1u << 16) /* places of the hash */
#define PLACES_LEAST 4096u
#define COLD ".cold"

int called_list_init(struct called_list *list, struct report_names *names)
{
  *list = (struct called_list){.names = names, .targets = calloc(TARGETS, sizeof(*list->targets))};
  return list->targets ? 0 : -ENOMEM;
}

void called_list_done(struct called_list *list)
{
  free(list->functions);
  free(list->places);
  free(list->targets);
  *list = (struct called_list){0};
}

/* ---- functions ---- */

static uint32_t *place_of(const struct called_list *list, uint32_t file, uint32_t space, uint64_t start)
{
  uint64_t hash = (start ^ (uint64_t)file << 40 ^ (uint64_t)space << 20) * UINT64_C(0x9E3779B97F4A7C15);
  size_t i = (size_t)(hash >> 32) & (list->place_count - 1);

  for (;; i = (i + 1) & (list->place_count - 1)) {
    const struct called *function = list->places[i] ? &list->functions[list->places[i] - 1] : NULL;

    if (!function || (function->start == start && function->called.location.file == file &&
                      function->called.location.space == space))
      return &list->places[i];
  }
}

static int places_grow(struct called_list *list)
{
  struct called_list next = *list;

  next.place_count = list->place_count ? 2 * list->place_count : PLACES_LEAST;
  next.places = calloc(next.place_count, sizeof(*next.places));
  if (!next.places)
    return -ENOMEM;
  for (size_t i = 0; i < list->count; i++) {
    const struct report_location *location = &list->functions[i].called.location;

    *place_of(&next, location->file, location->space, list->functions[i].start) = (uint32_t)i + 1;
  }
  free(list->places);
  list->places = next.places;
  list->place_count = next.place_count;
  return 0;
}

/* The number of a function that is in the list from now on. Returns 0, or -ENOMEM. */
static int function_add(struct called_list *list, const struct called *function, uint32_t *ret_number)
{
  const struct report_location *location = &function->called.location;
  struct called *functions;

  functions = array_grow(list->functions, sizeof(*functions), list->count, &list->capacity);
  if (!functions)
    return -ENOMEM;
  list->functions = functions;
  functions[list->count] = *function;
  *place_of(list, location->file, location->space, function->start) = (uint32_t)list->count + 1;
  *ret_number = (uint32_t)list->count++;
  return 0;
}

/* ---- what names say ---- */

static bool name_is_one_of(const char *name, const char *const *words)
{
  for (; *words; words++)
    if (!strcmp(name, *words))
      return true;
  return false;
}

static uint8_t flags_of(const char *symbol)
{
  static const char *const points[] = {"setjmp", "_setjmp", "__setjmp", "sigsetjmp", "__sigsetjmp", NULL};
  size_t length = strlen(symbol);
  uint8_t flags = TARGET_HAS_SYMBOL;

  if (length > 4 && !strcmp(symbol + length - 4, "@plt"))
    flags |= TARGET_IS_STUB;
  else if (!strncmp(symbol, "_dl_runtime_", strlen("_dl_runtime_"))) /* resolve, profile; one for each processor */
    flags |= TARGET_IS_RESOLVER;
  else if (name_is_one_of(symbol, points))
    flags |= TARGET_IS_SETJMP;
  else if (strstr(symbol, COLD))
    flags |= TARGET_IS_COLD;
  return flags;
}

/* "f.cold", and as C++ names are shown "f(int) [clone .cold]". */
bool called_is_part(const struct called *part, const struct called *whole)
{
  const char *cold = part->flags & TARGET_IS_COLD ? strstr(part->called.symbol, COLD) : NULL;
  size_t length;

  if (!cold || !whole->called.symbol || part->called.location.file != whole->called.location.file)
    return false;
  length = (size_t)(cold - part->called.symbol);
  if (length >= 7 && !strncmp(cold - 7, " [clone", 7))
    length -= 7;
  else if (length >= 8 && !strncmp(cold - 8, " [clone ", 8))
    length -= 8;
  return !strncmp(part->called.symbol, whole->called.symbol, length) && !whole->called.symbol[length];
}

/* ---- from addresses to functions ---- */

/* Code without a symbol: a function if it was called there, now or before, else the rest of its file. */
static bool start_is_known(const struct called_list *list, const struct report_location *location)
{
  return *place_of(list, location->file, location->space, location->address) != 0;
}

static void function_describe(struct called_list *list, const struct report_location *location, bool is_call,
                              struct called *ret_function)
{
  struct report_name name = {0};

  *ret_function = (struct called){.called.location = *location, .start = CALLED_REST};
  if (report_names_symbol(list->names, location, &name)) {
    ret_function->called.module = name.module;
    ret_function->called.symbol = name.symbol;
  }
  if (name.symbol) {
    ret_function->called.location.address = name.start;
    ret_function->start = name.start;
    ret_function->flags = flags_of(name.symbol);
  } else if ((is_call && list->count < CALLED_MAX) || start_is_known(list, location)) {
    ret_function->start = location->address;
  }
}

/* Too many functions: the last number is for all that come behind. */
static int function_number(struct called_list *list, const struct called *function, uint32_t *ret_number)
{
  const struct report_location *location = &function->called.location;
  uint32_t place = *place_of(list, location->file, location->space, function->start);

  if (!place && list->count >= CALLED_MAX + (CALLED_MAX >> 2))
    place = (uint32_t)list->count;
  if (place) {
    *ret_number = place - 1;
    return 0;
  }
  list->starts += !(function->flags & TARGET_HAS_SYMBOL) && function->start != CALLED_REST;
  return function_add(list, function, ret_number);
}

static int target_find(struct called_list *list, bool is_call, struct target *target)
{
  struct report_location location = report_names_locate(list->names, target->space, target->address);
  struct called function;
  int r;

  if (2 * (list->count + 1) > list->place_count && places_grow(list) < 0)
    return -ENOMEM;
  function_describe(list, &location, is_call, &function);
  r = function_number(list, &function, &target->function);
  target->flags = function.flags;
  if (function.start == location.address)
    target->flags |= TARGET_IS_START;
  return r;
}

int called_list_find(struct called_list *list, uint32_t space, uint64_t address, bool is_call,
                     struct target *ret_target)
{
  uint32_t generation = report_names_generation(list->names);
  uint64_t hash = (address ^ (uint64_t)space << 48) * UINT64_C(0x9E3779B97F4A7C15);
  struct target *target = &list->targets[hash >> 48];
  int r = 0;

  if (target->address != address || target->space != space || target->generation != generation ||
      (is_call && !(target->flags & (TARGET_IS_START | TARGET_HAS_SYMBOL)))) {
    *target = (struct target){.address = address, .space = space};
    r = target_find(list, is_call, target);
    if (r >= 0)
      target->generation = generation;
  }
  *ret_target = *target;
  return r;
}
