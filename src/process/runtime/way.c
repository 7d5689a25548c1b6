/* SPDX-License-Identifier: Apache-2.0
 *
 * The entries for the lookup tables that come with a snapshot. A process that begins with a snapshot has empty tables,
 * and each target of an indirect branch would go through the dispatcher once. So a snapshot lists the targets of each
 * module, and they are put into the tables of a thread that maps the module.
 */
#include <linux/mman.h>

#include "process/runtime/runtime.h"

/* The program's entry goes through the dispatcher: module_enter. */
static bool has_way(const struct unit *unit)
{
  return unit->indirect && !unit->is_stale && unit->address != the_runtime.entry;
}

uint32_t ways_count(const struct runtime *runtime)
{
  uint32_t count = 0;

  for (uint32_t i = 0; i < runtime->pool->unit_count; i++)
    count += has_way(&runtime->units[i]);
  return count;
}

/* Counts the ways of each module; with `ways`, also writes them there. */
static void ways_walk(const struct runtime *runtime, struct module_list *modules, struct way *ways)
{
  for (uint32_t i = 0; i < runtime->pool->unit_count; i++) {
    const struct unit *unit = &runtime->units[i];
    const struct module *found = has_way(unit) ? module_find(runtime, unit->address) : NULL;
    struct module *module = found ? &modules->modules[found - runtime->modules.modules] : NULL;

    if (!module)
      continue;
    if (ways)
      ways[module->way_first + module->way_count] = (struct way){unit->address, unit->indirect, unit->is_indirect_wide};
    module->way_count++;
  }
}

void ways_save(const struct runtime *runtime, struct module_list *modules, struct way *ways)
{
  uint32_t first = 0;

  for (uint32_t i = 0; i < modules->count; i++)
    modules->modules[i].way_count = 0;
  ways_walk(runtime, modules, NULL);
  for (uint32_t i = 0; i < modules->count; i++) {
    modules->modules[i].way_first = first;
    first += modules->modules[i].way_count;
    modules->modules[i].way_count = 0;
  }
  ways_walk(runtime, modules, ways);
}

bool ways_map(struct runtime *runtime, int fd, uint64_t offset, uint64_t size)
{
  return !size ||
         !is_failure(kernel_map((uint64_t)runtime->ways, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, offset));
}

/* The ways lead to the pool that came with the snapshot, which is given up when it is full: they are then of no use. */
void ways_publish(struct thread *thread, const struct module *module)
{
  const struct way *way = thread->runtime->ways + module->way_first;

  if (thread->runtime->age != 1)
    return;
  for (const struct way *end = way + module->way_count; way < end; way++)
    cache_offer(thread, way);
}
