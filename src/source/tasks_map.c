/* SPDX-License-Identifier: Apache-2.0
 *
 * The program of a process and the modules in its address space. Each module goes into the trace; symbols and code are
 * looked up in them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "source/tasks_inside.h"

static int module_put(struct tasks *tasks, const struct task_process *process, const struct task_module *module)
{
  struct lb_trace_module record = {.space = process->space,
                                   .address = module->address,
                                   .size = module->size,
                                   .offset = module->offset,
                                   .name = module->path};
  struct symbol_module *file;

  if (module->path[0] == '/' && symbol_cache_module(tasks->cache, module->path, &file) >= 0) {
    const struct symbol_layout *layout = symbol_module_layout(file);

    record.build_id = layout->build_id;
    record.build_id_size = layout->build_id_size;
  }
  return tasks_fail(tasks, tasks->sink->module(tasks->sink->data, &record));
}

static int module_keep(struct task_process *process, const struct task_module *module)
{
  struct task_module *kept;
  char *path;

  if (process->module_count >= TASKS_MODULES_MAX)
    return 0; /* a copy of the space will lack it */
  path = strdup(module->path);
  kept = path ? array_append(&process->modules, &process->module_count, &process->module_capacity) : NULL;
  if (!kept) {
    free(path);
    return -ENOMEM;
  }
  *kept = *module;
  kept->path = path;
  return 0;
}

/* Adds the module to the trace and to the process. */
static int module_add(struct tasks *tasks, struct task_process *process, const struct task_module *module)
{
  const struct symbol_mapping mapping = {
    .start = module->address, .end = module->address + module->size, .offset = module->offset, .path = module->path};
  int r = 0;

  if (!process->symbols)
    r = symbol_space_new(tasks->cache, &process->symbols);
  if (r >= 0)
    r = symbol_space_add(process->symbols, &mapping);
  if (r >= 0)
    r = module_keep(process, module);
  if (r == -ENOMEM)
    return tasks_fail(tasks, r);
  return module_put(tasks, process, module);
}

static bool path_is_file(const char *path)
{
  return (path[0] == '/' && path[1] != '/' && strncmp(path, "/dev/zero", 9) != 0 && strncmp(path, "/memfd:", 7) != 0) ||
         !strcmp(path, "[vdso]");
}

/* The first mapped file is the program, or for a script its interpreter. */
static void process_see_program(struct tasks *tasks, struct task_process *process, const char *path)
{
  struct symbol_module *file;

  if (process->program || path[0] != '/')
    return;
  process->program = strdup(path);
  process->is_32 = symbol_cache_module(tasks->cache, path, &file) >= 0 && symbol_module_layout(file)->is_32;
}

int tasks_map(struct tasks *tasks, uint32_t number, const struct task_map *map)
{
  struct task_process *process = tasks_process(tasks, number);
  struct task_module module = {map->address, map->size, map->offset, (char *)(uintptr_t)map->path};

  if (!process || tasks->error < 0)
    return tasks->error;
  if (process->later_count)
    return task_later_add(tasks, process, &(struct task_later){.map = module});
  if (!map->size || map->size > UINT64_MAX - map->address)
    return 0;
  task_process_flush(tasks, process);
  task_code_forget(process, map->address, map->size);
  if (path_is_file(map->path) && strlen(map->path) <= LB_TRACE_TEXT_MAX) {
    process_see_program(tasks, process, map->path);
    return module_add(tasks, process, &module);
  }
  if (process->symbols)
    symbol_space_remove(process->symbols, map->address, map->address + map->size);
  return tasks_fail(tasks, tasks->sink->module(tasks->sink->data, &(struct lb_trace_module){.space = process->space,
                                                                                            .is_gone = true,
                                                                                            .address = map->address,
                                                                                            .size = map->size,
                                                                                            .name = ""}));
}

/* ---- all modules ---- */

void task_process_clear(struct task_process *process)
{
  for (size_t i = 0; i < process->module_count; i++)
    free(process->modules[i].path);
  free(process->modules);
  process->modules = NULL;
  process->module_count = process->module_capacity = 0;
  free(process->program);
  process->program = NULL;
  task_code_clear(process);
  symbol_space_free(process->symbols);
  process->symbols = NULL;
}

int task_process_copy(struct tasks *tasks, struct task_process *process, const struct task_process *parent)
{
  int r = 0;

  task_process_clear(process);
  process->is_32 = parent->is_32;
  process->program = parent->program ? strdup(parent->program) : NULL;
  for (size_t i = 0; i < parent->module_count && r >= 0; i++)
    r = module_add(tasks, process, &parent->modules[i]);
  return r;
}
