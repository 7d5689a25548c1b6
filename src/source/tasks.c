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

int tasks_new(const struct source_sink *sink, tasks_memory *memory, void *data, struct tasks **ret_tasks)
{
  struct tasks *tasks = calloc(1, sizeof(*tasks));
  int r = -ENOMEM;

  if (!tasks)
    return r;
  tasks->sink = sink;
  tasks->memory = memory;
  tasks->memory_data = data;
  r = symbol_cache_new(NULL, &tasks->cache);
  if (r >= 0)
    r = symbol_cache_add_vdso(tasks->cache);
  if (r < 0) {
    tasks_free(tasks);
    return r;
  }
  *ret_tasks = tasks;
  return 0;
}

static void process_clear(struct task_process *process)
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

static void process_free(struct task_process *process)
{
  for (size_t i = 0; i < process->later_count; i++)
    free(process->laters[i].map.path);
  free(process->laters);
  process_clear(process);
  free(process->instructions);
  free(process);
}

static void thread_free(struct task_thread *thread)
{
  free(thread->batch);
  free(thread);
}

void tasks_free(struct tasks *tasks)
{
  if (!tasks)
    return;
  for (size_t i = 0; i < TASKS_BUCKETS; i++) {
    for (struct task_thread *thread = tasks->threads[i], *next; thread; thread = next) {
      next = thread->link;
      thread_free(thread);
    }
    for (struct task_process *process = tasks->processes[i], *next; process; process = next) {
      next = process->link;
      process_free(process);
    }
  }
  tasks_titles_done(tasks);
  symbol_cache_free(tasks->cache);
  free(tasks->signals);
  free(tasks);
}

int tasks_fail(struct tasks *tasks, int error)
{
  if (error < 0 && tasks->error >= 0)
    tasks->error = error;
  return tasks->error;
}

/* ---- who ---- */

static struct task_process *process_look(const struct tasks *tasks, uint32_t number)
{
  struct task_process *process = tasks->processes[number % TASKS_BUCKETS];

  while (process && process->number != number)
    process = process->link;
  return process;
}

static struct task_process *process_get(struct tasks *tasks, uint32_t number)
{
  struct task_process *process = process_look(tasks, number);

  if (process)
    return process;
  if (tasks->process_count >= TASKS_MAX)
    return NULL;
  process = calloc(1, sizeof(*process));
  if (!process) {
    tasks_fail(tasks, -ENOMEM);
    return NULL;
  }
  *process =
    (struct task_process){.number = number, .space = tasks->spaces++, .link = tasks->processes[number % TASKS_BUCKETS]};
  tasks->process_count++;
  return tasks->processes[number % TASKS_BUCKETS] = process;
}

static struct task_thread *thread_look(const struct tasks *tasks, uint32_t number)
{
  struct task_thread *thread = tasks->threads[number % TASKS_BUCKETS];

  while (thread && thread->number != number)
    thread = thread->link;
  return thread;
}

struct task_thread *tasks_thread(struct tasks *tasks, uint32_t process, uint32_t number)
{
  struct task_thread *thread = thread_look(tasks, number);
  struct task_process *owner;

  if (thread)
    return thread;
  owner = process_get(tasks, process);
  if (!owner || tasks->thread_count >= TASKS_MAX)
    return NULL;
  thread = calloc(1, sizeof(*thread));
  if (!thread) {
    tasks_fail(tasks, -ENOMEM);
    return NULL;
  }
  *thread = (struct task_thread){.number = number, .process = owner, .link = tasks->threads[number % TASKS_BUCKETS]};
  owner->threads++;
  tasks->thread_count++;
  return tasks->threads[number % TASKS_BUCKETS] = thread;
}

static void process_drop(struct tasks *tasks, struct task_process *process)
{
  struct task_process **link = &tasks->processes[process->number % TASKS_BUCKETS];

  while (*link != process)
    link = &(*link)->link;
  *link = process->link;
  tasks->process_count--;
  process_free(process);
}

static void thread_drop(struct tasks *tasks, struct task_thread *thread)
{
  struct task_thread **link = &tasks->threads[thread->number % TASKS_BUCKETS];

  while (*link != thread)
    link = &(*link)->link;
  *link = thread->link;
  tasks->thread_count--;
  thread->process->threads--;
  thread_free(thread);
}

/* ---- branches ---- */

/* A thread has a stream from when there is something to say of it. */
static int thread_open(struct tasks *tasks, struct task_thread *thread)
{
  const struct lb_trace_stream stream = {.space = thread->process->space,
                                         .process = thread->process->number,
                                         .thread = thread->number,
                                         .name = thread->name};
  int r;

  if (thread->has_stream)
    return 0;
  r = tasks->sink->stream(tasks->sink->data, &stream, &thread->stream);
  if (r < 0)
    return tasks_fail(tasks, r);
  thread->has_stream = true;
  tasks->counts.threads++;
  tasks->counts.processes += !thread->process->is_counted;
  thread->process->is_counted = true;
  return 0;
}

static int thread_flush(struct tasks *tasks, struct task_thread *thread)
{
  size_t count = thread->count;

  thread->count = 0;
  if (!count || tasks->error < 0)
    return tasks->error;
  return tasks_fail(tasks, tasks->sink->branches(tasks->sink->data, thread->stream, thread->batch, count));
}

int tasks_branch(struct tasks *tasks, struct task_thread *thread, uint64_t from, uint64_t to, unsigned kind,
                 unsigned flags)
{
  const unsigned width = thread->process->is_32 ? LB_BRANCH_FROM_32 | LB_BRANCH_TO_32 : 0;

  assert(kind < LB_BRANCH_KINDS && thread->count < TASKS_BATCH);
  if (tasks->error < 0 || thread_open(tasks, thread) < 0)
    return tasks->error;
  if (!thread->batch && !(thread->batch = malloc(TASKS_BATCH * sizeof(*thread->batch))))
    return tasks_fail(tasks, -ENOMEM);
  thread->batch[thread->count++] = (struct lb_branch){
    .from = from, .to = to, .kind = (uint8_t)kind, .flags = (uint8_t)(flags | width), .from_cpl = 3, .to_cpl = 3};
  return thread->count == TASKS_BATCH ? thread_flush(tasks, thread) : 0;
}

int tasks_gap(struct tasks *tasks, struct task_thread *thread, enum lb_trace_gap_reason reason, uint64_t count)
{
  struct lb_trace_gap gap = {.stream = LB_TRACE_ALL, .reason = (uint8_t)reason, .count = thread ? count : 0};

  if (!thread)
    tasks_flush(tasks);
  else if (thread_open(tasks, thread) >= 0)
    thread_flush(tasks, thread);
  if (tasks->error < 0)
    return tasks->error;
  if (thread)
    gap.stream = thread->stream;
  tasks->counts.lost += reason == LB_TRACE_LOST;
  return tasks_fail(tasks, tasks->sink->gap(tasks->sink->data, &gap));
}

/* Of all threads, or those of one process: before what lies there changes. */
static int threads_flush(struct tasks *tasks, const struct task_process *process)
{
  for (size_t i = 0; i < TASKS_BUCKETS; i++)
    for (struct task_thread *thread = tasks->threads[i]; thread; thread = thread->link)
      if (!process || thread->process == process)
        thread_flush(tasks, thread);
  return tasks->error;
}

int tasks_flush(struct tasks *tasks)
{
  return threads_flush(tasks, NULL);
}

/* ---- what lies where ---- */

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
  struct task_module *modules;

  if (process->module_count >= TASKS_MODULES_MAX)
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

/* The first file that is mapped is the program, or for a script its interpreter. */
static void process_see_program(struct tasks *tasks, struct task_process *process, const char *path)
{
  struct symbol_module *file;

  if (process->program || path[0] != '/')
    return;
  process->program = strdup(path);
  process->is_32 = symbol_cache_module(tasks->cache, path, &file) >= 0 && symbol_module_layout(file)->is_32;
}

static int later_add(struct tasks *tasks, struct task_process *process, const struct task_later *later)
{
  struct task_later *laters;

  if (process->later_count >= TASKS_MODULES_MAX)
    return 0;
  laters = array_grow(process->laters, sizeof(*laters), process->later_count, &process->later_capacity);
  if (!laters)
    return tasks_fail(tasks, -ENOMEM);
  process->laters = laters;
  laters[process->later_count] = *later;
  laters[process->later_count].map.path = strdup(later->map.path);
  if (!laters[process->later_count].map.path)
    return tasks_fail(tasks, -ENOMEM);
  process->later_count++;
  return 0;
}

int tasks_map(struct tasks *tasks, uint32_t number, const struct task_map *map)
{
  struct task_process *process = process_get(tasks, number);
  struct task_module module = {map->address, map->size, map->offset, (char *)(uintptr_t)map->path};

  if (!process || tasks->error < 0)
    return tasks->error;
  if (process->later_count)
    return later_add(tasks, process, &(struct task_later){.map = module});
  if (!map->size || map->size > UINT64_MAX - map->address)
    return 0;
  threads_flush(tasks, process);
  process_code_forget(process, map->address, map->size);
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

/* ---- what happens to them ---- */

int tasks_exec(struct tasks *tasks, uint32_t number, uint32_t thread_number, const char *name)
{
  struct task_thread *thread = tasks_thread(tasks, number, thread_number);
  struct task_process *process;

  if (!thread)
    return tasks->error;
  process = thread->process;
  threads_flush(tasks, process);
  tasks_title_put(tasks, thread);
  tasks_title_forget(tasks, number);
  if (process->is_counted || process->module_count) /* else nobody has heard of its address space */
    process->space = tasks->spaces++;
  process_clear(process);
  process->is_32 = false;
  thread->has_stream = thread->is_at = thread->is_out = thread->is_begun = false;
  thread->frame_count = 0;
  return tasks_name(tasks, number, thread_number, name);
}

int tasks_exec_later(struct tasks *tasks, uint32_t number, uint32_t thread_number, const char *name)
{
  struct task_thread *thread = tasks_thread(tasks, number, thread_number);

  if (!thread)
    return tasks->error;
  if (!thread->is_begun && !thread->is_forked && !thread->process->later_count)
    return tasks_exec(tasks, number, thread_number, name);
  return later_add(tasks, thread->process,
                   &(struct task_later){true, thread_number, {.path = (char *)(uintptr_t)name}});
}

bool tasks_exec_is_due(const struct task_thread *thread)
{
  return thread->process->later_count && thread->process->laters[0].thread == thread->number;
}

/* One program and what was mapped for it. */
bool tasks_exec_take(struct tasks *tasks, struct task_thread *thread)
{
  struct task_process *process = thread->process;
  struct task_later *laters = process->laters;
  size_t count = process->later_count, done = 1;

  if (!tasks_exec_is_due(thread))
    return false;
  process->later_count = 0; /* so that these count now */
  tasks_exec(tasks, process->number, thread->number, laters[0].map.path);
  for (; done < count && !laters[done].is_exec; done++)
    tasks_map(tasks, process->number,
              &(struct task_map){laters[done].map.address, laters[done].map.size, laters[done].map.offset,
                                 laters[done].map.path});
  for (size_t i = 0; i < done; i++)
    free(laters[i].map.path);
  memmove(laters, laters + done, (count - done) * sizeof(*laters));
  process->later_count = count - done;
  return true;
}

static int process_copy(struct tasks *tasks, struct task_process *process, const struct task_process *parent)
{
  int r = 0;

  process_clear(process);
  process->is_32 = parent->is_32;
  process->program = parent->program ? strdup(parent->program) : NULL;
  for (size_t i = 0; i < parent->module_count && r >= 0; i++)
    r = module_add(tasks, process, &parent->modules[i]);
  return r;
}

int tasks_fork(struct tasks *tasks, uint32_t number, uint32_t thread_number, uint32_t parent_number,
               uint32_t parent_thread)
{
  const struct task_thread *creator;
  struct task_thread *thread = thread_look(tasks, thread_number);
  struct task_process *parent;
  bool is_new;

  if (thread) /* its end was not seen; a forged record may name it as its own creator */
    tasks_exit(tasks, thread->process->number, thread_number);
  creator = thread_look(tasks, parent_thread);
  parent = process_look(tasks, parent_number);
  is_new = !process_look(tasks, number);
  thread = tasks_thread(tasks, number, thread_number);
  if (!thread)
    return tasks->error;
  thread->is_forked = true;
  if (creator)
    memcpy(thread->name, creator->name, sizeof(thread->name));
  if (is_new && parent && parent != thread->process)
    return process_copy(tasks, thread->process, parent);
  return tasks->error;
}

int tasks_name(struct tasks *tasks, uint32_t process, uint32_t number, const char *name)
{
  struct task_thread *thread = tasks_thread(tasks, process, number);

  if (!thread || !strncmp(thread->name, name, sizeof(thread->name) - 1))
    return tasks->error;
  strncpy(thread->name, name, sizeof(thread->name) - 1);
  thread->name[sizeof(thread->name) - 1] = 0;
  if (!thread->has_stream || !tasks->sink->describe)
    return tasks->error;
  return tasks_fail(tasks, tasks->sink->describe(tasks->sink->data, thread->stream, "name", thread->name));
}

int tasks_exit(struct tasks *tasks, uint32_t number, uint32_t thread_number)
{
  struct task_thread *thread = thread_look(tasks, thread_number);
  struct task_process *process;

  (void)number;
  if (!thread)
    return tasks->error;
  process = thread->process;
  thread_flush(tasks, thread);
  tasks_title_put(tasks, thread);
  tasks_signals_forget(tasks, thread_number);
  thread_drop(tasks, thread);
  if (!process->threads) {
    tasks_title_forget(tasks, process->number);
    process_drop(tasks, process);
  }
  return tasks->error;
}

/* ---- questions ---- */

uint32_t tasks_space(const struct task_thread *thread)
{
  return thread->process->space;
}

uint32_t tasks_number(const struct task_thread *thread)
{
  return thread->process->number;
}

bool tasks_is_32(const struct task_thread *thread)
{
  return thread->process->is_32;
}

struct task_counts tasks_counts(const struct tasks *tasks)
{
  return tasks->counts;
}
