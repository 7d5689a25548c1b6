/* SPDX-License-Identifier: Apache-2.0
 *
 * Numbers the functions and finds the function of an address. The answer for an address is cached until a mapping or
 * the list of function starts changes.
 */
#include "analysis/calls_function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names_inside.h"

#define TARGETS (1u << 16) /* slots of the hash table */
#define STARTS_LATE 4096u  /* most starts of functions that are found during the walk */
#define PLT_ENTRY 16u      /* bytes */
#define COLD ".cold"

int called_list_init(struct called_list *list, struct analysis_names *names)
{
  *list = (struct called_list){.names = names, .targets = calloc(TARGETS, sizeof(*list->targets))};
  return list->targets ? 0 : -ENOMEM;
}

void called_list_done(struct called_list *list)
{
  free(list->functions);
  hash_index_done(&list->index);
  free(list->targets);
  *list = (struct called_list){0};
}

/* ---- functions ---- */

static uint64_t function_hash(const struct called *function)
{
  const struct analysis_location *location = &function->called.location;

  return hash_mix(hash_start(function->start), (uint64_t)location->file << 32 | location->space);
}

static uint32_t function_find(const struct called_list *list, const struct called *wanted)
{
  const struct analysis_location *location = &wanted->called.location;
  uint64_t hash = function_hash(wanted);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&list->index, hash, &at)) != HASH_NONE;) {
    const struct called *function = &list->functions[number];

    if (function->start == wanted->start && function->called.location.file == location->file &&
        function->called.location.space == location->space)
      break;
  }
  return number;
}

/* Adds a function to the list and gives its number. Returns 0, or -ENOMEM. */
static int function_add(struct called_list *list, const struct called *function, uint32_t *ret_number)
{
  struct called *added = array_append(&list->functions, &list->count, &list->capacity);

  if (!added)
    return -ENOMEM;
  if (hash_index_add(&list->index, function_hash(function), list->count - 1) < 0) {
    list->count--;
    return -ENOMEM;
  }
  *added = *function;
  *ret_number = (uint32_t)list->count - 1;
  return 0;
}

/* ---- properties from names ---- */

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
  uint8_t flags = TARGET_IS_EXACT;

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

/* "f.cold", or in the form of C++ names "f(int) [clone .cold]". */
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

/* The code before the first entry of a PLT, to which all of them jump, has no symbol. */
static bool extent_is_plt(struct analysis_names *names, const struct analysis_extent *extent)
{
  struct analysis_location at = {.file = extent->file, .address = extent->start};
  struct analysis_name name;
  size_t length;

  if (extent->source != ANALYSIS_EXTENT_BY_UNWIND || extent->end - extent->start <= PLT_ENTRY)
    return false;
  at.address += PLT_ENTRY;
  if (!analysis_names_symbol(names, &at, &name) || !name.symbol)
    return false;
  length = strlen(name.symbol);
  return length > 4 && !strcmp(name.symbol + length - 4, "@plt");
}

static void function_describe(struct called_list *list, const struct analysis_location *location,
                              struct called *ret_function)
{
  struct analysis_extent extent;

  analysis_extent_find(list->names, location, &extent);
  *ret_function = (struct called){
    .called = {.symbol = extent.symbol,
               .module = extent.module,
               .location = *location,
               .end = extent.end,
               .source = extent.source},
    .start = extent.start,
    .flags = extent.symbol                         ? flags_of(extent.symbol)
             : extent_is_plt(list->names, &extent) ? TARGET_IS_EXACT | TARGET_IS_STUB
             : analysis_extent_is_guess(&extent)   ? 0
                                                   : TARGET_IS_EXACT,
  };
  if (extent.source != ANALYSIS_EXTENT_BY_NOTHING)
    ret_function->called.location.address = extent.start;
}

/* A call leads to unknown code: a function begins there. */
static int target_begin(struct called_list *list, const struct analysis_location *location)
{
  int r = list->names->starts.count < STARTS_LATE ? analysis_starts_add(list->names, location) : 0;

  if (r > 0)
    names_change(list->names);
  return r;
}

/* If there are too many functions, all further ones share the last number. */
static int function_number(struct called_list *list, const struct called *function, uint32_t *ret_number)
{
  uint32_t number = function_find(list, function);

  if (number == HASH_NONE && list->count >= CALLED_MAX + (CALLED_MAX >> 2))
    number = (uint32_t)list->count - 1;
  if (number == HASH_NONE)
    return function_add(list, function, ret_number);
  *ret_number = number;
  return 0;
}

static int target_find(struct called_list *list, bool is_call, struct target *target)
{
  struct analysis_location location = analysis_names_locate(list->names, target->space, target->address);
  struct called function;
  int r;

  if (is_call && target_begin(list, &location) < 0)
    return -ENOMEM;
  function_describe(list, &location, &function);
  r = function_number(list, &function, &target->function);
  target->flags = function.flags;
  if (function.start == location.address && function.called.source != ANALYSIS_EXTENT_BY_NOTHING)
    target->flags |= TARGET_IS_START;
  return r;
}

int called_list_find(struct called_list *list, uint32_t space, uint64_t address, bool is_call,
                     struct target *ret_target)
{
  uint64_t hash = (address ^ (uint64_t)space << 48) * UINT64_C(0x9E3779B97F4A7C15);
  struct target *target = &list->targets[hash >> 48];
  int r = 0;

  if (target->address != address || target->space != space ||
      target->generation != analysis_names_generation(list->names) ||
      (is_call && !(target->flags & (TARGET_IS_START | TARGET_IS_EXACT)))) {
    *target = (struct target){.address = address, .space = space};
    r = target_find(list, is_call, target);
    if (r >= 0)
      target->generation = analysis_names_generation(list->names);
  }
  *ret_target = *target;
  return r;
}
