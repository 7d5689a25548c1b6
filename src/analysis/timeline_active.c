/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts how often each function is active in each stream, which tells the outermost call of a recursion. Functions
 * that are no longer active are removed when they are the majority, so that the memory is bounded by the stacks.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "analysis/timeline_inside.h"

#define SWEEP_LEAST 1024u /* functions that are kept without a sweep */

struct active_function {
  uint32_t stream, function;
  uint32_t count;
};

static uint64_t active_hash(uint32_t stream, uint32_t function)
{
  return hash_start((uint64_t)stream << 32 | function);
}

/* NULL: it is not there. */
static struct active_function *active_find(const struct timeline_active *active, uint32_t stream, uint32_t function)
{
  uint64_t hash = active_hash(stream, function);
  uint32_t number;

  for (size_t at = 0; (number = hash_index_next(&active->index, hash, &at)) != HASH_NONE;)
    if (active->functions[number].function == function && active->functions[number].stream == stream)
      return &active->functions[number];
  return NULL;
}

/* Removes the functions that are not active. */
static int active_sweep(struct timeline_active *active)
{
  size_t count = active->count;
  int r = 0;

  hash_index_clear(&active->index);
  active->count = 0;
  for (size_t i = 0; i < count && r >= 0; i++) {
    const struct active_function function = active->functions[i];

    if (!function.count)
      continue;
    r = hash_index_add(&active->index, active_hash(function.stream, function.function), active->count);
    active->functions[active->count++] = function;
  }
  return r;
}

static int active_append(struct timeline_active *active, uint32_t stream, uint32_t function)
{
  struct active_function *grown;

  if (active->count >= SWEEP_LEAST && active->count / 2 > active->running && active_sweep(active) < 0)
    return -ENOMEM;
  grown = array_grow(active->functions, sizeof(*grown), active->count, &active->capacity);
  if (!grown)
    return -ENOMEM;
  active->functions = grown;
  if (hash_index_add(&active->index, active_hash(stream, function), active->count) < 0)
    return -ENOMEM;
  grown[active->count++] = (struct active_function){stream, function, 0};
  return 0;
}

int timeline_active_add(struct timeline_active *active, uint32_t stream, uint32_t function, int change)
{
  struct active_function *found = active_find(active, stream, function);

  assert(change == 1 || change == -1);
  if (change > 0) {
    if (!found && active_append(active, stream, function) < 0)
      return -ENOMEM;
    if (!found)
      found = &active->functions[active->count - 1];
    active->running += !found->count;
    return (int)++found->count;
  }
  if (!found || !found->count)
    return 0;
  active->running -= found->count == 1;
  return (int)found->count--;
}

void timeline_active_done(struct timeline_active *active)
{
  free(active->functions);
  hash_index_done(&active->index);
  *active = (struct timeline_active){0};
}
