/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts how often each function is active in each stream, to find the outermost call of a recursion. It is a hash
 * table with open addressing. Removed keys leave no tombstones, so that its size is that of the stacks.
 */
#include <errno.h>
#include <stdlib.h>

#include "report/view_page.h"

static size_t slot_first(const struct view_active *active, uint64_t key)
{
  return (size_t)(key * UINT64_C(0x9E3779B97F4A7C15) >> 32) & (active->capacity - 1);
}

/* The slot of the key, or the free slot where it would be. */
static size_t slot_find(const struct view_active *active, uint64_t key)
{
  size_t slot = slot_first(active, key);

  while (active->keys[slot] && active->keys[slot] != key)
    slot = (slot + 1) & (active->capacity - 1);
  return slot;
}

static int active_grow(struct view_active *active)
{
  struct view_active wider = {.capacity = active->capacity ? 2 * active->capacity : 1024};

  wider.keys = calloc(wider.capacity, sizeof(*wider.keys));
  wider.counts = calloc(wider.capacity, sizeof(*wider.counts));
  if (!wider.keys || !wider.counts) {
    view_active_done(&wider);
    return -ENOMEM;
  }
  for (size_t i = 0; i < active->capacity; i++)
    if (active->keys[i]) {
      size_t slot = slot_find(&wider, active->keys[i]);

      wider.keys[slot] = active->keys[i];
      wider.counts[slot] = active->counts[i];
    }
  wider.used = active->used;
  view_active_done(active);
  *active = wider;
  return 0;
}

/* Removes a key, and moves the following ones that could not be found any more. */
static void slot_remove(struct view_active *active, size_t slot)
{
  size_t mask = active->capacity - 1, next = slot;

  for (;;) {
    active->keys[slot] = 0;
    do {
      next = (next + 1) & mask;
      if (!active->keys[next]) {
        active->used--;
        return;
      }
    } while (((next - slot_first(active, active->keys[next])) & mask) < ((next - slot) & mask));
    active->keys[slot] = active->keys[next];
    active->counts[slot] = active->counts[next];
    slot = next;
  }
}

int view_active_add(struct view_active *active, uint32_t stream, uint32_t function, int change)
{
  uint64_t key = ((uint64_t)stream << 32 | function) + 1;
  size_t slot;

  if (2 * active->used >= active->capacity && active_grow(active) < 0)
    return -ENOMEM;
  slot = slot_find(active, key);
  if (!active->keys[slot]) {
    if (change < 0)
      return 0;
    active->keys[slot] = key;
    active->counts[slot] = 0;
    active->used++;
  }
  if (change > 0)
    return (int)++active->counts[slot];
  if (--active->counts[slot])
    return (int)active->counts[slot] + 1;
  slot_remove(active, slot);
  return 1;
}

void view_active_done(struct view_active *active)
{
  free(active->keys);
  free(active->counts);
  *active = (struct view_active){0};
}
