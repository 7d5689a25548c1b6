/* SPDX-License-Identifier: Apache-2.0
 *
 * Modules that are mapped, in chains by their address space: a process that begins to run in a space, or returns to it,
 * gets all of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/perf_feed.h"

#define MODULES_MAX (1u << 20)
#define CHAIN_MAX (1u << 16)
#define BYTES_MAX (UINT64_C(64) << 20) /* of names and build-ids */

static bool module_covers(const struct lb_trace_module *over, const struct lb_trace_module *module)
{
  return over->space == module->space && module->address >= over->address &&
         module->address - over->address < over->size && module->size <= over->size - (module->address - over->address);
}

/* Removes the modules that the new one covers. Returns how many are left in its chain. */
static size_t modules_cover(struct perf_modules *modules, const struct lb_trace_module *over)
{
  uint32_t *link = &modules->chains[over->space % PERF_SPACES];
  size_t left = 0;

  while (*link != PERF_NO_MODULE) {
    struct perf_module *module = &modules->modules[*link];
    uint32_t number = *link;

    if (!module_covers(over, &module->module)) {
      link = &module->next;
      left++;
      continue;
    }
    *link = module->next;
    modules->bytes -= module->bytes;
    free((char *)module->module.name);
    module->module.name = NULL;
    module->next = modules->free;
    modules->free = number;
  }
  return left;
}

static int chains_make(struct perf_modules *modules)
{
  if (modules->chains)
    return 0;
  modules->chains = malloc(PERF_SPACES * sizeof(*modules->chains));
  if (!modules->chains)
    return -ENOMEM;
  for (size_t i = 0; i < PERF_SPACES; i++)
    modules->chains[i] = PERF_NO_MODULE;
  modules->free = PERF_NO_MODULE;
  return 0;
}

/* An unused one, or PERF_NO_MODULE without memory. */
static uint32_t module_new(struct perf_modules *modules)
{
  uint32_t number = modules->free;
  struct perf_module *added;

  if (number != PERF_NO_MODULE) {
    modules->free = modules->modules[number].next;
    return number;
  }
  added = array_append(&modules->modules, &modules->count, &modules->capacity);
  if (!added)
    return PERF_NO_MODULE;
  *added = (struct perf_module){0};
  return (uint32_t)modules->count - 1;
}

/* Copies name and build-id into one allocation. */
static int module_copy(struct perf_module *copy, const struct lb_trace_module *module)
{
  size_t length = strlen(module->name) + 1;
  char *bytes = malloc(length + module->build_id_size);

  if (!bytes)
    return -ENOMEM;
  memcpy(bytes, module->name, length);
  if (module->build_id_size)
    memcpy(bytes + length, module->build_id, module->build_id_size);
  *copy = (struct perf_module){.module = *module, .bytes = length + module->build_id_size};
  copy->module.name = bytes;
  copy->module.build_id = (const uint8_t *)bytes + length;
  return 0;
}

/* Appends it to its chain, to keep the order. */
static void module_link(struct perf_modules *modules, uint32_t number)
{
  uint32_t *link = &modules->chains[modules->modules[number].module.space % PERF_SPACES];

  while (*link != PERF_NO_MODULE)
    link = &modules->modules[*link].next;
  *link = number;
  modules->modules[number].next = PERF_NO_MODULE;
}

int perf_modules_take(struct perf_modules *modules, const struct lb_trace_module *module)
{
  struct perf_module copy;
  uint32_t number;
  size_t left;

  if (chains_make(modules) < 0)
    return -ENOMEM;
  left = modules_cover(modules, module);
  if (module->is_gone)
    return 0;
  if (left >= CHAIN_MAX || modules->count >= MODULES_MAX || modules->bytes > BYTES_MAX) {
    modules->is_full = true;
    return 0;
  }
  if (module_copy(&copy, module) < 0)
    return -ENOMEM;
  number = module_new(modules);
  if (number == PERF_NO_MODULE) {
    free((char *)copy.module.name);
    return -ENOMEM;
  }
  modules->modules[number] = copy;
  modules->bytes += copy.bytes;
  module_link(modules, number);
  return 0;
}

/* The first module of a space in the rest of a chain. */
static const struct perf_module *chain_find(const struct perf_modules *modules, uint32_t number, uint32_t space)
{
  while (number != PERF_NO_MODULE && modules->modules[number].module.space != space)
    number = modules->modules[number].next;
  return number == PERF_NO_MODULE ? NULL : &modules->modules[number];
}

const struct perf_module *perf_modules_first(const struct perf_modules *modules, uint32_t space)
{
  return modules->chains ? chain_find(modules, modules->chains[space % PERF_SPACES], space) : NULL;
}

const struct perf_module *perf_modules_next(const struct perf_modules *modules, const struct perf_module *module)
{
  return chain_find(modules, module->next, module->module.space);
}

void perf_modules_done(struct perf_modules *modules)
{
  for (size_t i = 0; i < modules->count; i++)
    free((char *)modules->modules[i].module.name);
  free(modules->modules);
  free(modules->chains);
}
