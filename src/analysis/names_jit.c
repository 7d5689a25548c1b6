/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code that is in no file. The functions of a space lie in layers: those of one layer do not overlap, and a
 * later function that overlaps an earlier one is in a higher layer. The location of such code is its linear address
 * with the number of its layer in the upper 16 bits, so that two functions that had the same address are two.
 */
#include "analysis/names_jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/names_inside.h"

#define FUNCTIONS_MAX (1u << 18)
#define TEXT_MAX ((size_t)64 << 20) /* bytes of all names */
#define CLUSTER_MAX 4096u           /* functions that overlap each other; more are left out */
#define SPACES_MAX 65536u
#define LAYER_SHIFT 48
#define LAYERS_MAX (1u << 16)
#define ADDRESS_MAX (UINT64_C(1) << 47) /* of user space */
#define ORIGINALS_MAX 16u               /* spaces that are copies of copies */

#define JIT_NO_LAYER UINT32_MAX

void jit_names_done(struct jit_names *jit)
{
  for (size_t i = 0; i < jit->count; i++)
    free(jit->functions[i].text);
  for (size_t i = 0; i < jit->layer_count; i++)
    free(jit->layers[i].list);
  for (size_t i = 0; i < jit->space_count; i++)
    free(jit->spaces[i].layers);
  free(jit->functions);
  free(jit->layers);
  free(jit->spaces);
  hash_index_done(&jit->space_index);
  *jit = (struct jit_names){.file = ANALYSIS_NO_FILE};
}

/* ---- spaces ---- */

static struct jit_space *space_find(const struct jit_names *jit, uint32_t number)
{
  uint64_t hash = hash_start(number);
  uint32_t i;

  for (size_t at = 0; (i = hash_index_next(&jit->space_index, hash, &at)) != HASH_NONE;)
    if (jit->spaces[i].number == number)
      return &jit->spaces[i];
  return NULL;
}

/* Returns 0, with NULL beyond the limit; or -ENOMEM. */
static int space_get(struct jit_names *jit, uint32_t number, struct jit_space **ret_space)
{
  struct jit_space *space = space_find(jit, number);

  if (!space && jit->space_count < SPACES_MAX) {
    space = array_append(&jit->spaces, &jit->space_count, &jit->space_capacity);
    if (!space)
      return -ENOMEM;
    *space = (struct jit_space){.number = number};
    if (hash_index_add(&jit->space_index, hash_start(number), jit->space_count - 1) < 0) {
      jit->space_count--;
      return -ENOMEM;
    }
  }
  *ret_space = space;
  return 0;
}

/* ---- records ---- */

static void names_tell_full(struct analysis_names *names)
{
  if (names->jit.is_full)
    return;
  names->jit.is_full = true;
  names->files->warn(names->files->data, NAMES_JIT, "more names than can be kept; some code will have no names");
}

static int function_add(struct analysis_names *names, const struct trace_names *record, const struct trace_name *name)
{
  struct jit_names *jit = &names->jit;
  struct jit_function *function;
  char text[TRACE_NAME_MAX + 1];

  if (!name->size || name->address >= ADDRESS_MAX || name->size > ADDRESS_MAX - name->address)
    return 0;
  if (jit->count >= FUNCTIONS_MAX || jit->bytes > TEXT_MAX) {
    names_tell_full(names);
    return 0;
  }
  function = array_append(&jit->functions, &jit->count, &jit->capacity);
  if (!function)
    return -ENOMEM;
  *function = (struct jit_function){
    .start = name->address,
    .end = name->address + name->size,
    .place = record->place,
    .space = record->space,
    .layer = JIT_NO_LAYER,
  };
  if (!name->length)
    return 0;
  memcpy(text, name->text, name->length);
  text[name->length] = 0;
  function->text = printable_copy(text, TRACE_NAME_MAX);
  jit->bytes += name->length;
  return function->text ? 0 : -ENOMEM;
}

static int record_add(struct analysis_names *names, const struct trace_names *record)
{
  struct jit_space *space;
  int r = space_get(&names->jit, record->space, &space);

  if (r < 0 || !space)
    return r;
  if (record->original && record->original != record->space && !space->original) {
    space->original = record->original;
    space->copied_at = record->place;
  }
  for (size_t i = 0; i < record->count && r >= 0; i++)
    r = function_add(names, record, &record->names[i]);
  return r;
}

int jit_names_take(struct analysis_names *names, const struct trace_names *record)
{
  struct jit_names *jit = &names->jit;
  int r = 0;

  if (!names->files) /* symbols are not wanted */
    return 0;
  if (!record->is_begin && jit->file == ANALYSIS_NO_FILE)
    r = names_pseudo_file(names, &jit->file);
  if (r < 0)
    return r;
  if (!record->is_begin && record->place > jit->known) {
    jit->known = record->place;
    r = record_add(names, record);
    names_change(names);
  }
  if (record->is_ahead)
    return r;
  jit->now = record->is_begin ? 0 : record->place + 1;
  names_change(names);
  return r;
}

/* ---- layers ---- */

static int function_compare(const void *one, const void *other, void *data)
{
  const uint32_t *i = one, *k = other;
  const struct jit_names *jit = data;
  const struct jit_function *a = &jit->functions[*i], *b = &jit->functions[*k];

  if (a->space != b->space)
    return a->space < b->space ? -1 : 1;
  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return *i < *k ? -1 : *i > *k;
}

static int number_compare(const void *one, const void *other)
{
  const uint32_t *i = one, *k = other;

  return *i < *k ? -1 : *i > *k;
}

static bool functions_overlap(const struct jit_function *one, const struct jit_function *other)
{
  return one->start < other->end && other->start < one->end;
}

/* The number of the layer at this height of a space. Returns JIT_NO_LAYER beyond the limit or without memory. */
static uint32_t layer_get(struct jit_names *jit, uint32_t number, size_t height)
{
  struct jit_space *space = space_find(jit, number);
  struct jit_layer *layer;
  uint32_t *added;

  if (!space || height > space->count)
    return JIT_NO_LAYER;
  if (height < space->count)
    return space->layers[height];
  if (jit->layer_count >= LAYERS_MAX)
    return JIT_NO_LAYER;
  added = array_append(&space->layers, &space->count, &space->capacity);
  if (!added)
    return JIT_NO_LAYER;
  layer = array_append(&jit->layers, &jit->layer_count, &jit->layer_capacity);
  if (!layer) {
    space->count--;
    return JIT_NO_LAYER;
  }
  *layer = (struct jit_layer){.space = number};
  *added = (uint32_t)jit->layer_count - 1;
  return *added;
}

/* Gives each of some functions that overlap, in the order of the trace, its layer: above all earlier ones that it
 * overlaps. `heights` has room for all. */
static void cluster_lay(struct analysis_names *names, const uint32_t *numbers, size_t count, uint32_t *heights)
{
  struct jit_names *jit = &names->jit;

  for (size_t i = 0; i < count; i++) {
    struct jit_function *function = &jit->functions[numbers[i]];

    function->layer = JIT_NO_LAYER;
    heights[i] = 0;
    if (i >= CLUSTER_MAX) {
      names_tell_full(names);
      continue;
    }
    for (size_t k = 0; k < i; k++)
      if (heights[k] >= heights[i] && functions_overlap(function, &jit->functions[numbers[k]]))
        heights[i] = heights[k] + 1;
    function->layer = layer_get(jit, function->space, heights[i]);
  }
}

/* Divides the functions, which are sorted by address, into clusters that do not overlap, and lays each. */
static void clusters_lay(struct analysis_names *names, uint32_t *sorted, uint32_t *heights)
{
  struct jit_names *jit = &names->jit;

  for (size_t first = 0, end; first < jit->count; first = end) {
    uint32_t space = jit->functions[sorted[first]].space;
    uint64_t reach = 0;

    for (end = first; end < jit->count; end++) {
      const struct jit_function *function = &jit->functions[sorted[end]];

      if (function->space != space || (end > first && function->start >= reach))
        break;
      reach = function->end > reach ? function->end : reach;
    }
    if (end - first > 1)
      qsort(sorted + first, end - first, sizeof(*sorted), number_compare);
    cluster_lay(names, sorted + first, end - first, heights);
  }
}

static int layer_add(struct jit_layer *layer, uint32_t number)
{
  uint32_t *added = array_append(&layer->list, &layer->count, &layer->capacity);

  if (!added)
    return -ENOMEM;
  *added = number;
  return 0;
}

/* Puts all functions into their layers. A function that was there before keeps its layer. Without memory, code has no
 * names. */
static void layers_make(struct analysis_names *names)
{
  struct jit_names *jit = &names->jit;
  uint32_t *sorted, *heights;
  int r = 0;

  if (jit->laid == jit->count)
    return;
  jit->laid = jit->count;
  sorted = malloc(jit->count * sizeof(*sorted));
  heights = malloc(jit->count * sizeof(*heights));
  for (size_t i = 0; i < jit->layer_count; i++)
    jit->layers[i].count = 0;
  if (sorted && heights) {
    for (size_t i = 0; i < jit->count; i++)
      sorted[i] = (uint32_t)i;
    qsort_r(sorted, jit->count, sizeof(*sorted), function_compare, jit);
    clusters_lay(names, sorted, heights);
    qsort_r(sorted, jit->count, sizeof(*sorted), function_compare, jit);
    for (size_t i = 0; i < jit->count && r >= 0; i++)
      if (jit->functions[sorted[i]].layer != JIT_NO_LAYER)
        r = layer_add(&jit->layers[jit->functions[sorted[i]].layer], sorted[i]);
  }
  free(sorted);
  free(heights);
}

/* The number of functions in the layer that begin at or before an address. */
static size_t layer_up_to(const struct jit_names *jit, const struct jit_layer *layer, uint64_t address)
{
  struct search search = {.end = layer->count};

  while (search_next(&search))
    search_turn(&search, jit->functions[layer->list[search.at]].start <= address);
  return search.first;
}

static struct jit_function *layer_find(const struct jit_names *jit, const struct jit_layer *layer, uint64_t address)
{
  size_t i = layer_up_to(jit, layer, address);
  struct jit_function *function = i ? &jit->functions[layer->list[i - 1]] : NULL;

  return function && address < function->end ? function : NULL;
}

/* ---- lookup ---- */

/* The function at an address of a space before a place in the trace, or NULL. `*future` gets the first one that comes
 * later, unless it is set. */
static struct jit_function *space_at(const struct jit_names *jit, const struct jit_space *space, uint64_t address,
                                     uint64_t now, struct jit_function **future)
{
  struct jit_function *later = NULL;

  for (size_t i = space->count; i-- > 0;) {
    struct jit_function *function = layer_find(jit, &jit->layers[space->layers[i]], address);

    if (function && function->place < now)
      return function;
    later = function ? function : later;
  }
  *future = *future ? *future : later;
  return NULL;
}

static const struct jit_function *function_at(struct analysis_names *names, uint32_t number, uint64_t address)
{
  struct jit_names *jit = &names->jit;
  struct jit_function *future = NULL;
  uint64_t now = jit->now;

  layers_make(names);
  for (unsigned i = 0; i < ORIGINALS_MAX; i++) {
    const struct jit_space *space = space_find(jit, number);
    const struct jit_function *function = space ? space_at(jit, space, address, now, &future) : NULL;

    if (function)
      return function;
    if (!space || !space->original)
      break;
    number = space->original;
    now = space->copied_at < now ? space->copied_at : now;
  }
  return future;
}

bool jit_names_locate(struct analysis_names *names, uint32_t space, uint64_t address,
                      struct analysis_location *ret_location)
{
  const struct jit_function *function = names->jit.count ? function_at(names, space, address) : NULL;

  if (!function || !function->text)
    return false;
  *ret_location = (struct analysis_location){
    .file = names->jit.file,
    .address = address | (uint64_t)function->layer << LAYER_SHIFT,
  };
  return true;
}

uint64_t jit_names_reach(struct analysis_names *names, uint32_t space, uint64_t address)
{
  const struct jit_names *jit = &names->jit;
  uint64_t reach = UINT64_MAX;

  if (!jit->count)
    return reach;
  layers_make(names);
  for (unsigned i = 0; i < ORIGINALS_MAX; i++) {
    const struct jit_space *found = space_find(jit, space);

    for (size_t k = 0; found && k < found->count; k++) {
      const struct jit_layer *layer = &jit->layers[found->layers[k]];
      size_t at = layer_up_to(jit, layer, address);
      uint64_t end = at ? jit->functions[layer->list[at - 1]].end : 0;

      if (end > address && end - address < reach)
        reach = end - address;
      if (at < layer->count && jit->functions[layer->list[at]].start - address < reach)
        reach = jit->functions[layer->list[at]].start - address;
    }
    if (!found || !found->original)
      break;
    space = found->original;
  }
  return reach;
}

bool jit_names_is_file(const struct analysis_names *names, uint32_t file)
{
  return file != ANALYSIS_NO_FILE && file == names->jit.file;
}

bool jit_names_symbol(struct analysis_names *names, uint64_t linked, struct analysis_name *name)
{
  const struct jit_names *jit = &names->jit;
  uint64_t layer = linked >> LAYER_SHIFT, address = linked & ((UINT64_C(1) << LAYER_SHIFT) - 1);
  const struct jit_function *function;

  layers_make(names);
  function = layer < jit->layer_count ? layer_find(jit, &jit->layers[layer], address) : NULL;
  if (!function || !function->text)
    return false;
  name->symbol = function->text;
  name->offset = address - function->start;
  name->size = function->end - function->start;
  return true;
}

bool jit_names_lower(struct analysis_names *names, uint64_t *linked)
{
  const struct jit_names *jit = &names->jit;
  uint64_t number = *linked >> LAYER_SHIFT;
  const struct jit_space *space = number < jit->layer_count ? space_find(jit, jit->layers[number].space) : NULL;

  for (size_t i = 1; space && i < space->count; i++)
    if (space->layers[i] == number) {
      *linked = (*linked & ((UINT64_C(1) << LAYER_SHIFT) - 1)) | (uint64_t)space->layers[i - 1] << LAYER_SHIFT;
      return true;
    }
  return false;
}

bool jit_names_displace(struct analysis_names *names, const struct trace_names *record)
{
  const struct jit_names *jit = &names->jit;

  if (!names->files || record->is_begin || record->is_ahead)
    return false;
  if (record->place > jit->known) /* it was not given ahead */
    return true;
  layers_make(names);
  for (size_t i = 0; i < record->count; i++) {
    const struct jit_space *space = space_find(jit, record->space);
    const struct trace_name *name = &record->names[i];
    const struct jit_function *lowest =
      space && space->count ? layer_find(jit, &jit->layers[space->layers[0]], name->address) : NULL;

    /* a function of the lowest layer overlaps no earlier one of its space */
    if (!space || space->original || !lowest || lowest->place != record->place || lowest->start != name->address)
      return true;
  }
  return false;
}
