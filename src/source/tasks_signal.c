/* SPDX-License-Identifier: Apache-2.0
 *
 * Signals that came to threads, as somebody has told, until the branches of their threads come to them.
 */
#include <string.h>

#include "base/base.h"
#include "source/tasks_inside.h"

static void signal_drop(struct world *world, size_t place)
{
  struct world_signal *signals = world->signals + place;

  memmove(signals, signals + 1, (--world->signal_count - place) * sizeof(*signals));
}

void world_signals_forget(struct world *world, uint32_t thread)
{
  for (size_t i = world->signal_count; i-- > 0;)
    if (world->signals[i].thread == thread)
      signal_drop(world, i);
}

void world_signal(struct world *world, uint32_t thread, uint64_t at, uint64_t handler)
{
  struct world_signal *signals =
    world->signal_count < WORLD_SIGNALS
      ? array_grow(world->signals, sizeof(*signals), world->signal_count, &world->signal_capacity)
      : NULL;

  if (!signals) /* a gap will tell */
    return;
  world->signals = signals;
  signals[world->signal_count++] = (struct world_signal){thread, at, handler};
}

static size_t signal_find(const struct world *world, const struct world_thread *thread, uint64_t at)
{
  size_t place = 0;

  while (place < world->signal_count &&
         (world->signals[place].thread != thread->number || world->signals[place].at != at))
    place++;
  return place;
}

bool world_signal_is(const struct world *world, const struct world_thread *thread, uint64_t at)
{
  return signal_find(world, thread, at) < world->signal_count;
}

bool world_signal_take(struct world *world, const struct world_thread *thread, uint64_t at, uint64_t *ret_handler)
{
  size_t place = signal_find(world, thread, at);

  if (place == world->signal_count)
    return false;
  *ret_handler = world->signals[place].handler;
  signal_drop(world, place);
  while (place-- > 0)
    if (world->signals[place].thread == thread->number)
      signal_drop(world, place);
  return true;
}
