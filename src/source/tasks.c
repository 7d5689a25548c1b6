/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes and threads on their way into a trace. A process has a number for its address space, the modules in it, and
 * its code (tasks_code.c); a thread has a stream from its first branch on, a new one for each program that it executes.
 */
#include "source/tasks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "source/tasks_inside.h"

int world_new(const struct source_sink *sink, world_memory *memory, void *data, struct world **ret_world)
{
  struct world *world = calloc(1, sizeof(*world));
  int r = -ENOMEM;

  if (!world)
    return r;
  world->sink = sink;
  world->memory = memory;
  world->memory_data = data;
  r = symbol_cache_new(NULL, &world->cache);
  if (r >= 0)
    r = symbol_cache_add_vdso(world->cache);
  if (r < 0) {
    world_free(world);
    return r;
  }
  *ret_world = world;
  return 0;
}

static void process_clear(struct world_process *process)
{
  for (size_t i = 0; i < process->module_count; i++)
    free(process->modules[i].path);
  free(process->modules);
  process->modules = NULL;
  process->module_count = process->module_capacity = 0;
  free(process->program);
  process->program = NULL;
  process_code_clear(process);
  symbol_space_free(process->symbols);
  process->symbols = NULL;
}

static void process_free(struct world_process *process)
{
  for (size_t i = 0; i < process->later_count; i++)
    free(process->laters[i].map.path);
  free(process->laters);
  process_clear(process);
  free(process->instructions);
  free(process);
}

static void thread_free(struct world_thread *thread)
{
  free(thread->batch);
  free(thread);
}

void world_free(struct world *world)
{
  if (!world)
    return;
  for (size_t i = 0; i < WORLD_BUCKETS; i++) {
    for (struct world_thread *thread = world->threads[i], *next; thread; thread = next) {
      next = thread->link;
      thread_free(thread);
    }
    for (struct world_process *process = world->processes[i], *next; process; process = next) {
      next = process->link;
      process_free(process);
    }
  }
  world_titles_done(world);
  symbol_cache_free(world->cache);
  free(world->signals);
  free(world);
}

int world_fail(struct world *world, int error)
{
  if (error < 0 && world->error >= 0)
    world->error = error;
  return world->error;
}

/* ---- who ---- */

static struct world_process *process_look(const struct world *world, uint32_t number)
{
  struct world_process *process = world->processes[number % WORLD_BUCKETS];

  while (process && process->number != number)
    process = process->link;
  return process;
}

static struct world_process *process_get(struct world *world, uint32_t number)
{
  struct world_process *process = process_look(world, number);

  if (process)
    return process;
  if (world->process_count >= WORLD_TASKS_MAX)
    return NULL;
  process = calloc(1, sizeof(*process));
  if (!process) {
    world_fail(world, -ENOMEM);
    return NULL;
  }
  *process = (struct world_process){
    .number = number, .space = world->spaces++, .link = world->processes[number % WORLD_BUCKETS]};
  world->process_count++;
  return world->processes[number % WORLD_BUCKETS] = process;
}

static struct world_thread *thread_look(const struct world *world, uint32_t number)
{
  struct world_thread *thread = world->threads[number % WORLD_BUCKETS];

  while (thread && thread->number != number)
    thread = thread->link;
  return thread;
}

struct world_thread *world_thread(struct world *world, uint32_t process, uint32_t number)
{
  struct world_thread *thread = thread_look(world, number);
  struct world_process *owner;

  if (thread)
    return thread;
  owner = process_get(world, process);
  if (!owner || world->thread_count >= WORLD_TASKS_MAX)
    return NULL;
  thread = calloc(1, sizeof(*thread));
  if (!thread) {
    world_fail(world, -ENOMEM);
    return NULL;
  }
  *thread = (struct world_thread){.number = number, .process = owner, .link = world->threads[number % WORLD_BUCKETS]};
  owner->threads++;
  world->thread_count++;
  return world->threads[number % WORLD_BUCKETS] = thread;
}

static void process_drop(struct world *world, struct world_process *process)
{
  struct world_process **link = &world->processes[process->number % WORLD_BUCKETS];

  while (*link != process)
    link = &(*link)->link;
  *link = process->link;
  world->process_count--;
  process_free(process);
}

static void thread_drop(struct world *world, struct world_thread *thread)
{
  struct world_thread **link = &world->threads[thread->number % WORLD_BUCKETS];

  while (*link != thread)
    link = &(*link)->link;
  *link = thread->link;
  world->thread_count--;
  thread->process->threads--;
  thread_free(thread);
}

/* ---- branches ---- */

/* A thread has a stream from when there is something to say of it. */
static int thread_open(struct world *world, struct world_thread *thread)
{
  const struct lb_trace_stream stream = {.space = thread->process->space,
                                         .process = thread->process->number,
                                         .thread = thread->number,
                                         .name = thread->name};
  int r;

  if (thread->has_stream)
    return 0;
  r = world->sink->stream(world->sink->data, &stream, &thread->stream);
  if (r < 0)
    return world_fail(world, r);
  thread->has_stream = true;
  world->counts.threads++;
  world->counts.processes += !thread->process->is_counted;
  thread->process->is_counted = true;
  return 0;
}

static int thread_flush(struct world *world, struct world_thread *thread)
{
  size_t count = thread->count;

  thread->count = 0;
  if (!count || world->error < 0)
    return world->error;
  return world_fail(world, world->sink->branches(world->sink->data, thread->stream, thread->batch, count));
}

int world_branch(struct world *world, struct world_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                 unsigned flags)
{
  const unsigned width = thread->process->is_32 ? LB_BRANCH_FROM_32 | LB_BRANCH_TO_32 : 0;

  assert(kind < LB_BRANCH_KINDS && thread->count < WORLD_BATCH);
  if (world->error < 0 || thread_open(world, thread) < 0)
    return world->error;
  if (!thread->batch && !(thread->batch = malloc(WORLD_BATCH * sizeof(*thread->batch))))
    return world_fail(world, -ENOMEM);
  thread->batch[thread->count++] = (struct lb_branch){
    .from = from, .to = to, .kind = (uint8_t)kind, .flags = (uint8_t)(flags | width), .from_cpl = 3, .to_cpl = 3};
  return thread->count == WORLD_BATCH ? thread_flush(world, thread) : 0;
}

int world_gap(struct world *world, struct world_thread *thread, enum lb_trace_gap_reason reason, uint64_t count)
{
  struct lb_trace_gap gap = {.stream = LB_TRACE_ALL, .reason = (uint8_t)reason, .count = thread ? count : 0};

  if (!thread)
    world_flush(world);
  else if (thread_open(world, thread) >= 0)
    thread_flush(world, thread);
  if (world->error < 0)
    return world->error;
  if (thread)
    gap.stream = thread->stream;
  world->counts.lost += reason == LB_TRACE_LOST;
  return world_fail(world, world->sink->gap(world->sink->data, &gap));
}

/* Of all threads, or those of one process: before what lies there changes. */
static int threads_flush(struct world *world, const struct world_process *process)
{
  for (size_t i = 0; i < WORLD_BUCKETS; i++)
    for (struct world_thread *thread = world->threads[i]; thread; thread = thread->link)
      if (!process || thread->process == process)
        thread_flush(world, thread);
  return world->error;
}

int world_flush(struct world *world)
{
  return threads_flush(world, NULL);
}

/* ---- what lies where ---- */

static int module_put(struct world *world, const struct world_process *process, const struct world_module *module)
{
  struct lb_trace_module record = {.space = process->space,
                                   .address = module->address,
                                   .size = module->size,
                                   .offset = module->offset,
                                   .name = module->path};
  struct symbol_module *file;

  if (module->path[0] == '/' && symbol_cache_module(world->cache, module->path, &file) >= 0) {
    const struct symbol_layout *layout = symbol_module_layout(file);

    record.build_id = layout->build_id;
    record.build_id_size = layout->build_id_size;
  }
  return world_fail(world, world->sink->module(world->sink->data, &record));
}

static int module_keep(struct world_process *process, const struct world_module *module)
{
  struct world_module *modules;

  if (process->module_count >= WORLD_MODULES_MAX)
    return 0; /* a copy of the space will not have it */
  modules = array_grow(process->modules, sizeof(*modules), process->module_count, &process->module_capacity);
  if (!modules)
    return -ENOMEM;
  process->modules = modules;
  modules[process->module_count] = *module;
  modules[process->module_count].path = strdup(module->path);
  return modules[process->module_count].path ? (process->module_count++, 0) : -ENOMEM;
}

/* The module goes into the trace and into what the process knows. */
static int module_add(struct world *world, struct world_process *process, const struct world_module *module)
{
  const struct symbol_mapping mapping = {
    .start = module->address, .end = module->address + module->size, .offset = module->offset, .path = module->path};
  int r = 0;

  if (!process->symbols)
    r = symbol_space_new(world->cache, &process->symbols);
  if (r >= 0)
    r = symbol_space_add(process->symbols, &mapping);
  if (r >= 0)
    r = module_keep(process, module);
  if (r == -ENOMEM)
    return world_fail(world, r);
  return module_put(world, process, module);
}

static bool path_is_file(const char *path)
{
  return (path[0] == '/' && path[1] != '/' && strncmp(path, "/dev/zero", 9) != 0 && strncmp(path, "/memfd:", 7) != 0) ||
         !strcmp(path, "[vdso]");
}

/* The first file that is mapped is the program, or for a script its interpreter. */
static void process_see_program(struct world *world, struct world_process *process, const char *path)
{
  struct symbol_module *file;

  if (process->program || path[0] != '/')
    return;
  process->program = strdup(path);
  process->is_32 = symbol_cache_module(world->cache, path, &file) >= 0 && symbol_module_layout(file)->is_32;
}

static int later_add(struct world *world, struct world_process *process, const struct world_later *later)
{
  struct world_later *laters;

  if (process->later_count >= WORLD_MODULES_MAX)
    return 0;
  laters = array_grow(process->laters, sizeof(*laters), process->later_count, &process->later_capacity);
  if (!laters)
    return world_fail(world, -ENOMEM);
  process->laters = laters;
  laters[process->later_count] = *later;
  laters[process->later_count].map.path = strdup(later->map.path);
  if (!laters[process->later_count].map.path)
    return world_fail(world, -ENOMEM);
  process->later_count++;
  return 0;
}

int world_map(struct world *world, uint32_t number, const struct world_map *map)
{
  struct world_process *process = process_get(world, number);
  struct world_module module = {map->address, map->size, map->offset, (char *)(uintptr_t)map->path};

  if (!process || world->error < 0)
    return world->error;
  if (process->later_count)
    return later_add(world, process, &(struct world_later){.map = module});
  if (!map->size || map->size > UINT64_MAX - map->address)
    return 0;
  threads_flush(world, process);
  process_code_forget(process, map->address, map->size);
  if (path_is_file(map->path) && strlen(map->path) <= LB_TRACE_TEXT_MAX) {
    process_see_program(world, process, map->path);
    return module_add(world, process, &module);
  }
  if (process->symbols)
    symbol_space_remove(process->symbols, map->address, map->address + map->size);
  return world_fail(world, world->sink->module(world->sink->data, &(struct lb_trace_module){.space = process->space,
                                                                                            .is_gone = true,
                                                                                            .address = map->address,
                                                                                            .size = map->size,
                                                                                            .name = ""}));
}

/* ---- what happens to them ---- */

int world_exec(struct world *world, uint32_t number, uint32_t thread_number, const char *name)
{
  struct world_thread *thread = world_thread(world, number, thread_number);
  struct world_process *process;

  if (!thread)
    return world->error;
  process = thread->process;
  threads_flush(world, process);
  world_title_put(world, thread);
  world_title_forget(world, number);
  if (process->is_counted || process->module_count) /* else nobody has heard of its address space */
    process->space = world->spaces++;
  process_clear(process);
  process->is_32 = false;
  thread->has_stream = thread->is_at = thread->is_out = thread->is_begun = false;
  thread->frame_count = 0;
  return world_name(world, number, thread_number, name);
}

int world_exec_later(struct world *world, uint32_t number, uint32_t thread_number, const char *name)
{
  struct world_thread *thread = world_thread(world, number, thread_number);

  if (!thread)
    return world->error;
  if (!thread->is_begun && !thread->is_forked && !thread->process->later_count)
    return world_exec(world, number, thread_number, name);
  return later_add(world, thread->process,
                   &(struct world_later){true, thread_number, {.path = (char *)(uintptr_t)name}});
}

bool world_exec_is_due(const struct world_thread *thread)
{
  return thread->process->later_count && thread->process->laters[0].thread == thread->number;
}

/* One program and what was mapped for it. */
bool world_exec_take(struct world *world, struct world_thread *thread)
{
  struct world_process *process = thread->process;
  struct world_later *laters = process->laters;
  size_t count = process->later_count, done = 1;

  if (!world_exec_is_due(thread))
    return false;
  process->later_count = 0; /* so that these count now */
  world_exec(world, process->number, thread->number, laters[0].map.path);
  for (; done < count && !laters[done].is_exec; done++)
    world_map(world, process->number,
              &(struct world_map){laters[done].map.address, laters[done].map.size, laters[done].map.offset,
                                  laters[done].map.path});
  for (size_t i = 0; i < done; i++)
    free(laters[i].map.path);
  memmove(laters, laters + done, (count - done) * sizeof(*laters));
  process->later_count = count - done;
  return true;
}

static int process_copy(struct world *world, struct world_process *process, const struct world_process *parent)
{
  int r = 0;

  process_clear(process);
  process->is_32 = parent->is_32;
  process->program = parent->program ? strdup(parent->program) : NULL;
  for (size_t i = 0; i < parent->module_count && r >= 0; i++)
    r = module_add(world, process, &parent->modules[i]);
  return r;
}

int world_fork(struct world *world, uint32_t number, uint32_t thread_number, uint32_t parent_number,
               uint32_t parent_thread)
{
  const struct world_thread *creator;
  struct world_thread *thread = thread_look(world, thread_number);
  struct world_process *parent;
  bool is_new;

  if (thread) /* its end was not seen; a forged record may name it as its own creator */
    world_exit(world, thread->process->number, thread_number);
  creator = thread_look(world, parent_thread);
  parent = process_look(world, parent_number);
  is_new = !process_look(world, number);
  thread = world_thread(world, number, thread_number);
  if (!thread)
    return world->error;
  thread->is_forked = true;
  if (creator)
    memcpy(thread->name, creator->name, sizeof(thread->name));
  if (is_new && parent && parent != thread->process)
    return process_copy(world, thread->process, parent);
  return world->error;
}

int world_name(struct world *world, uint32_t process, uint32_t number, const char *name)
{
  struct world_thread *thread = world_thread(world, process, number);

  if (!thread || !strncmp(thread->name, name, sizeof(thread->name) - 1))
    return world->error;
  strncpy(thread->name, name, sizeof(thread->name) - 1);
  thread->name[sizeof(thread->name) - 1] = 0;
  if (!thread->has_stream || !world->sink->describe)
    return world->error;
  return world_fail(world, world->sink->describe(world->sink->data, thread->stream, "name", thread->name));
}

int world_exit(struct world *world, uint32_t number, uint32_t thread_number)
{
  struct world_thread *thread = thread_look(world, thread_number);
  struct world_process *process;

  (void)number;
  if (!thread)
    return world->error;
  process = thread->process;
  thread_flush(world, thread);
  world_title_put(world, thread);
  world_signals_forget(world, thread_number);
  thread_drop(world, thread);
  if (!process->threads) {
    world_title_forget(world, process->number);
    process_drop(world, process);
  }
  return world->error;
}

/* ---- questions ---- */

uint32_t world_space(const struct world_thread *thread)
{
  return thread->process->space;
}

uint32_t world_number(const struct world_thread *thread)
{
  return thread->process->number;
}

bool world_is_32(const struct world_thread *thread)
{
  return thread->process->is_32;
}

struct world_counts world_counts(const struct world *world)
{
  return world->counts;
}
