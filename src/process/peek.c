/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies the newest entries of a recording that another lbr makes into a trace: those that its threads have logged
 * since the last look, as far as they are still in the logs. It only reads the shared memory. The other lbr frees notes
 * that it has read, so the modules come from /proc/PID/maps: each step is given the module that now lies at its
 * address, or the code that is there if it is in no file. Everything in the shared memory is hostile input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/base.h"
#include "process/peek.h"

enum {
  ENTRIES_MOST = 1 << 23, /* of a look, divided between the threads, */
  ENTRIES_LEAST = 4096,   /* but so many of each */
  TRIES = 20,             /* to read the log of a running thread */
  MODULES_MOST = 1 << 14, /* of a process */
  USES_MOST = 1 << 14,
  CODE_MOST = 4096, /* bytes of a straight piece of code that is in no file */
};

/* The entries of a thread. */
struct reading {
  struct process_thread thread;
  size_t source; /* its process */
  uint64_t logged;
  uint32_t *entries;
  size_t count;
};

/* A module of a process that steps of an address space are in. */
struct use {
  uint32_t space;
  size_t module;
};

/* A process whose threads have logged something. */
struct source {
  int process;
  struct process_module *modules; /* by address */
  size_t module_count, module_capacity;
  struct use *uses; /* that are in the trace */
  size_t use_count, use_capacity;
};

struct look {
  struct process_peek *peek;
  struct lb_trace_writer *writer;
  bool is_first; /* the first look: takes everything that is in the logs */
  size_t share;  /* of the entries, for each thread */
  size_t left;   /* of all entries */
  struct reading *readings;
  size_t reading_count, reading_capacity;
  struct source *sources;
  size_t source_count, source_capacity;
  uint8_t *pages; /* of steps that have memory: process_step_known */
  uint8_t *seen;  /* bits of the steps of a thread that were looked at */
  int error;      /* of a module that could not be added or written */
};

/* ---- processes ---- */

static void module_add(void *data, const struct process_module *module)
{
  struct source *source = data;
  struct process_module copy = *module;

  copy.path = source->module_count < MODULES_MOST && module->start < module->end ? strdup(module->path) : NULL;
  struct process_module *added =
    copy.path ? array_append(&source->modules, &source->module_count, &source->module_capacity) : NULL;
  if (added)
    *added = copy;
  else
    free((char *)(uintptr_t)copy.path);
}

/* The process that the number in a thread's page stands for. Returns false if it has ended or cannot be read. */
static bool source_get(struct look *look, uint32_t number, size_t *ret_source)
{
  const struct process_peek *peek = look->peek;
  int process = 0;

  for (size_t i = 0; i < peek->holder_count && !process; i++)
    if (number && peek->holders[i].number == number)
      process = peek->holders[i].process;
  for (size_t i = 0; i < look->source_count; i++)
    if (look->sources[i].process == process) {
      *ret_source = i;
      return true;
    }
  struct source source = {.process = process};
  if (!process || process_modules(process, module_add, &source) < 0)
    return false;
  struct source *added = array_append(&look->sources, &look->source_count, &look->source_capacity);
  if (!added) {
    look->error = -ENOMEM;
    return false;
  }
  *added = source;
  *ret_source = look->source_count - 1;
  return true;
}

static bool module_find(const struct source *source, uint64_t address, size_t *ret_module)
{
  struct search search = {.end = source->module_count};

  while (search_next(&search))
    search_turn(&search, source->modules[search.at].start <= address);
  if (!search.first || address >= source->modules[search.first - 1].end)
    return false;
  *ret_module = search.first - 1;
  return true;
}

/* ---- threads ---- */

static const struct process_state *page_of(const struct process *process, uint32_t slot)
{
  return (const struct process_state *)(const void *)(process->memory + process_thread_offset(slot));
}

/* A log that is cut has nothing in the part that is being filled. */
static bool thread_get(const struct process *process, uint32_t slot, struct process_thread *ret_thread)
{
  if (!process_has(process, process_thread_offset(slot), PROCESS_PAGE) || !process_thread(process, slot, ret_thread))
    return false;
  if (__atomic_load_n(&page_of(process, slot)->is_cut, __ATOMIC_ACQUIRE))
    ret_thread->position = 0;
  return !process_thread_is_native(ret_thread);
}

static uint64_t thread_end(const struct process *process, const struct process_thread *thread)
{
  return thread->written * (process->part_size / sizeof(uint32_t)) + thread->position;
}

/* Where entries that begin at `at` can be read from: not within an event. */
static size_t entries_start(const uint32_t *entries, size_t count, size_t at)
{
  size_t first = at < LB_ENTRY_EVENT_WORDS ? 0 : at - LB_ENTRY_EVENT_WORDS;

  for (size_t i = first; i < at; i++)
    if (entries[i] == LB_ENTRY_EVENT)
      at = i + 1 + LB_ENTRY_EVENT_WORDS;
  return at < count ? at : count;
}

/* Drops all but the last `wanted` entries. */
static void reading_cut(struct reading *reading, size_t wanted)
{
  if (reading->count <= wanted)
    return;
  size_t start = entries_start(reading->entries, reading->count, reading->count - wanted);
  reading->count -= start;
  memmove(reading->entries, reading->entries + start, reading->count * sizeof(*reading->entries));
}

/* Copies the entries of a thread that were logged after `before`, at most `most`, and remembers how far that was. A
 * running thread may overwrite them meanwhile: the next try reads newer ones. The entries begin with some that are not
 * wanted, among which an event may begin, or with a part of the log, which begins with no rest of an event. */
static int reading_fill(struct look *look, struct reading *reading, uint64_t before, size_t most)
{
  const struct process *process = &look->peek->process;
  struct process_thread *thread = &reading->thread, now = *thread;

  for (unsigned tries = 0; tries < TRIES && !reading->count; tries++) {
    bool is_cut;

    *thread = now;
    uint64_t end = thread_end(process, thread);
    reading->logged = end > before ? end - before : 0;
    size_t wanted = reading->logged < most ? (size_t)reading->logged : most;
    look->peek->logs[thread->slot] = (struct peek_log){thread->serial, end};
    if (!wanted)
      break;
    int r =
      process_entries_last(process, thread, wanted + LB_ENTRY_EVENT_WORDS, &reading->entries, &reading->count, &is_cut);
    if (r < 0)
      return r;
    reading_cut(reading, wanted);
    if (!thread_get(process, thread->slot, &now) || now.serial != thread->serial)
      break;
  }
  return 0;
}

/* At the first look, threads that have ended count as old. */
static int thread_read(struct look *look, const struct process_thread *thread)
{
  struct peek_log *log = &look->peek->logs[thread->slot];
  uint64_t before = !look->is_first && log->serial == thread->serial ? log->end : 0;
  struct reading reading = {.thread = *thread};

  if (look->is_first && !process_thread_is_live(thread)) {
    *log = (struct peek_log){thread->serial, thread_end(&look->peek->process, thread)};
    return 0;
  }
  if (!source_get(look, thread->process, &reading.source))
    return look->error;
  size_t most = look->share < look->left ? look->share : look->left;
  int r = reading_fill(look, &reading, before, most > ENTRIES_LEAST ? most : ENTRIES_LEAST);
  look->left -= reading.count < look->left ? reading.count : look->left;
  struct reading *added = r >= 0 ? array_append(&look->readings, &look->reading_count, &look->reading_capacity) : NULL;
  if (!added) {
    free(reading.entries);
    return -ENOMEM;
  }
  *added = reading;
  return 0;
}

static int threads_read(struct look *look)
{
  const struct process *process = &look->peek->process;
  uint32_t slots = process_slots(process), alive = 0;
  struct process_thread thread;
  int r = 0;

  for (uint32_t slot = 0; slot < slots; slot++)
    alive += thread_get(process, slot, &thread) && process_thread_is_live(&thread);
  look->left = ENTRIES_MOST;
  look->share = ENTRIES_MOST / (alive ? alive : 1);
  for (uint32_t slot = 0; slot < slots && r >= 0; slot++)
    if (thread_get(process, slot, &thread))
      r = thread_read(look, &thread);
  return r;
}

/* The logs of threads that log much go back for a shorter time than those of others. Keeps the same share of each: the
 * counts of different threads can then be compared. */
static void readings_even(struct look *look)
{
  double share = 1;

  for (size_t i = 0; i < look->reading_count; i++) {
    const struct reading *reading = &look->readings[i];
    double own = reading->logged ? (double)reading->count / (double)reading->logged : 1;

    if (own > 0 && own < share)
      share = own;
  }
  for (size_t i = 0; i < look->reading_count; i++)
    reading_cut(&look->readings[i], (size_t)((double)look->readings[i].logged * share + 0.5));
}

/* ---- steps ---- */

static bool step_get(struct look *look, uint32_t number, struct lb_step *ret_step)
{
  return process_step_known(&look->peek->process, number, look->pages, ret_step);
}

static bool step_lookup(void *context, uint32_t number, struct lb_step *ret_step)
{
  return step_get(context, number, ret_step);
}

/* Returns whether the step was seen before. */
static bool step_see(struct look *look, uint32_t number)
{
  uint8_t bit = (uint8_t)(1 << number % 8), *byte = &look->seen[number / 8];
  bool was_seen = *byte & bit;

  *byte |= bit;
  return was_seen;
}

/* Writes a module, unless the address space has it already. */
static int module_use(struct look *look, struct source *source, uint32_t space, size_t number)
{
  const struct process_module *module = &source->modules[number];

  for (size_t i = source->use_count; i-- > 0;)
    if (source->uses[i].space == space && source->uses[i].module == number)
      return 0;
  if (source->use_count >= USES_MOST)
    return 0;
  struct use *added = array_append(&source->uses, &source->use_count, &source->use_capacity);
  if (!added)
    return -ENOMEM;
  *added = (struct use){space, number};
  return lb_trace_writer_module(look->writer, &(struct lb_trace_module){.space = space,
                                                                        .address = module->start,
                                                                        .size = module->end - module->start,
                                                                        .offset = module->offset,
                                                                        .name = module->path});
}

/* Code that is in no file is read from the process, which does not notice. That is its code now. */
static int code_use(struct look *look, const struct source *source, uint32_t space, uint64_t start, uint64_t end)
{
  uint8_t bytes[CODE_MOST];
  struct iovec to = {bytes, end - start}, from = {(void *)(uintptr_t)start, end - start};

  if (start >= end || end - start > sizeof(bytes) ||
      process_vm_readv(source->process, &to, 1, &from, 1, 0) != (ssize_t)(end - start))
    return 0;
  return lb_trace_writer_code(look->writer, &(struct lb_trace_code){space, start, bytes, end - start});
}

/* Writes the module of a straight piece of code that begins at `start` and ends with a step, or its bytes. */
static int piece_use(struct look *look, struct source *source, uint64_t start, const struct lb_step *step)
{
  size_t module;

  if (module_find(source, step->from, &module))
    return module_use(look, source, step->space, module);
  return code_use(look, source, step->space, start, step->from + step->length);
}

/* Writes the modules of all steps of a path. Returns 0 or negative; `ret_next` is the path that follows if it is left
 * at this step, or 0. */
static int path_use(struct look *look, struct source *source, uint32_t number, uint32_t *ret_next)
{
  struct lb_step step, head;
  int r = 0;

  *ret_next = 0;
  if (number >= look->peek->process.step_capacity || step_see(look, number) || !step_get(look, number, &step) ||
      !step_get(look, step.head, &head))
    return 0;
  *ret_next = step.next;
  if (number != step.head && step_see(look, step.head))
    return 0;
  uint64_t start = head.from;
  for (uint32_t i = 1; i <= head.count && r >= 0; i++) {
    if (!step_get(look, head.head + i, &step) || step.head != head.head)
      break;
    r = piece_use(look, source, start, &step);
    start = step.flags & LB_STEP_FOLLOW ? step.to : step.from + step.length;
  }
  return r;
}

/* Writes the modules of all paths that the entries name. */
static int entries_use(struct look *look, struct source *source, const uint32_t *entries, size_t count)
{
  int r = 0;

  for (size_t i = 0; i < count && r >= 0; i++) {
    uint32_t next;

    if (entries[i] == LB_ENTRY_EVENT) {
      i += LB_ENTRY_EVENT_WORDS;
      continue;
    }
    r = path_use(look, source, entries[i] & ~LB_ENTRY_ENTER, &next);
    if (r >= 0 && next)
      r = path_use(look, source, next, &next);
  }
  return r;
}

/* ---- the trace ---- */

/* The addresses of events belong to the space of the thread, which gets all modules. */
static int reading_write(struct look *look, const struct reading *reading)
{
  struct source *source = &look->sources[reading->source];
  const struct process_thread *thread = &reading->thread;
  struct lb_trace_stream stream = {
    .space = thread->space, .process = (uint32_t)source->process, .thread = thread->thread, .name = thread->name};
  int r = 0;

  look->seen = calloc((size_t)look->peek->process.step_capacity / 8 + 1, 1);
  if (!look->seen)
    return -ENOMEM;
  for (size_t i = 0; i < source->module_count && r >= 0; i++)
    r = module_use(look, source, thread->space, i);
  if (r >= 0)
    r = entries_use(look, source, reading->entries, reading->count);
  if (r >= 0)
    r = lb_trace_writer_stream(look->writer, &stream, &stream.number);
  if (r >= 0)
    r = lb_trace_writer_entries(look->writer, stream.number, reading->entries, reading->count);
  free(look->seen);
  return r;
}

static int look_write(struct look *look)
{
  int r = 0;

  lb_trace_writer_paths(look->writer, step_lookup, look);
  for (size_t i = 0; i < look->reading_count && r >= 0; i++)
    r = reading_write(look, &look->readings[i]);
  return r;
}

static void look_done(struct look *look)
{
  for (size_t i = 0; i < look->reading_count; i++)
    free(look->readings[i].entries);
  for (size_t i = 0; i < look->source_count; i++) {
    for (size_t j = 0; j < look->sources[i].module_count; j++)
      free((char *)(uintptr_t)look->sources[i].modules[j].path);
    free(look->sources[i].modules);
    free(look->sources[i].uses);
  }
  free(look->readings);
  free(look->sources);
  free(look->pages);
}

static struct process_peek_view view_of(const struct look *look, double seconds)
{
  struct process_peek_view view = {.seconds = look->is_first ? 0 : seconds, .threads = look->reading_count};

  view.processes = look->source_count;
  view.process = look->source_count ? look->sources[0].process : 0;
  for (size_t i = 0; i < look->reading_count; i++) {
    view.entries += look->readings[i].count;
    view.logged += look->readings[i].logged;
  }
  return view;
}

int process_peek_write(struct process_peek *peek, struct lb_trace_writer *writer, struct process_peek_view *ret_view)
{
  struct look look = {.peek = peek, .writer = writer, .is_first = !(peek->looked > 0)};
  double now = clock_seconds(), seconds = now - peek->looked;
  int r = 0;

  peek->looked = now;
  look.pages = calloc(process_step_pages(&peek->process), 1);
  r = look.pages ? threads_read(&look) : -ENOMEM;
  if (r >= 0 && !look.is_first)
    readings_even(&look);
  if (r >= 0)
    r = look_write(&look);
  struct process_peek_view view = view_of(&look, seconds);
  view.branches = lb_trace_writer_size(writer).branches;
  int closed = lb_trace_writer_close(writer);
  r = r < 0 ? r : closed;
  look_done(&look);
  if (r >= 0)
    *ret_view = view;
  return r;
}
