/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code that is in no file go into the trace. A name for addresses that had none is valid at once, and for all
 * that ran there before: programs may write the name after the code ran. A name for addresses that have one waits until
 * the code there changes, because only then the new function runs: the trace has the change of code in its exact place.
 * A name whose code does not change (it is the same code, or never runs) waits until all that was logged before the
 * name was read is in the trace.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "process/drain.h"
#include "process/jit.h"
#include "process/target.h"

enum {
  JITS_MOST = 256,       /* spaces that make code at a time */
  NAMES_MOST = 1 << 17,  /* of a space */
  TEXTS_MOST = 32 << 20, /* bytes of their texts */
  CODES_MOST = 16 << 20, /* bytes of code of names that wait */
  WAITING_MOST = 4096,
  BATCH = 256,
  READS_MOST = 64, /* pieces of the files that are read at a time */
};

#define LOOK_SECONDS 0.1   /* between two reads */
#define QUICK_SECONDS 0.01 /* between two reads when new code appears */
#define WAIT_SECONDS 0.2
#define ALL_STEPS 0x80000000u /* no step has this number */

struct drain_name {
  uint64_t start, end;
  char *text; /* NULL: no name from here on */
  size_t length;
  uint8_t *code; /* while it waits; NULL: not known */
  double read;   /* when */
};

struct drain_jit {
  struct process_drain *drain;
  uint32_t space;
  struct process_jit *source; /* NULL: the limit was reached */
  struct drain_name *names;   /* that were valid, in their order */
  size_t count, capacity;
  struct drain_name *waiting;
  size_t waiting_count, waiting_capacity;
  struct interval_map map; /* values are numbers of names */
  size_t texts, codes;
  double looked;
  struct trace_name batch[BATCH]; /* that are not in the trace yet */
  size_t batch_count, batch_bytes;
  bool is_ordered; /* these come after all branches so far */
};

/* ---- writing ---- */

static int batch_write(struct drain_jit *jit)
{
  size_t count = jit->batch_count;

  jit->batch_count = jit->batch_bytes = 0;
  return count ? trace_writer_names(jit->drain->writer, jit->space, jit->batch, count, jit->is_ordered) : 0;
}

static int batch_add(struct drain_jit *jit, const struct drain_name *name)
{
  int r = 0;

  if (jit->batch_count == BATCH || jit->batch_bytes + name->length > TRACE_NAMES_BYTES)
    r = batch_write(jit);
  jit->batch[jit->batch_count++] = (struct trace_name){name->start, name->end - name->start, name->text, name->length};
  jit->batch_bytes += name->length;
  return r;
}

static void jit_tell_full(struct process_drain *drain)
{
  if (!drain->are_jits_full)
    message("warning: a program names more code than lbr keeps; further code has no names");
  drain->are_jits_full = true;
}

/* A name becomes valid. */
static int name_begin(struct drain_jit *jit, struct drain_name *name)
{
  struct interval interval = {.first = name->start, .last = name->end - 1};
  struct drain_name *added;
  int r;

  free(name->code);
  name->code = NULL;
  added = jit->count < NAMES_MOST ? array_append(&jit->names, &jit->count, &jit->capacity) : NULL;
  if (!added) {
    free(name->text);
    return jit->count < NAMES_MOST ? -ENOMEM : 0;
  }
  *added = *name;
  interval.value = (uint32_t)jit->count - 1;
  r = interval_map_add(&jit->map, &interval, (size_t)NAMES_MOST * 2);
  return r == -ENOMEM ? r : batch_add(jit, added);
}

/* ---- reading ---- */

static const struct drain_name *name_at(const struct drain_jit *jit, uint64_t address)
{
  const struct interval *found = interval_map_find(&jit->map, 0, address);

  return found ? &jit->names[found->value] : NULL;
}

static bool name_is(const struct drain_name *name, const struct jit_name *other)
{
  return name && name->start == other->start && name->end == other->start + other->size &&
         name->length == other->length && (!name->length || !memcmp(name->text, other->text, name->length));
}

static bool names_overlap(const struct drain_name *one, const struct drain_name *other)
{
  return one->start < other->end && other->start < one->end;
}

static bool name_must_wait(const struct drain_jit *jit, const struct drain_name *name)
{
  for (size_t i = 0; i < jit->waiting_count; i++)
    if (names_overlap(&jit->waiting[i], name))
      return true;
  return interval_map_overlaps(&jit->map, 0, name->start, name->end - 1);
}

static int name_wait(struct drain_jit *jit, struct drain_name *name, const struct jit_name *read)
{
  struct drain_name *added = array_append(&jit->waiting, &jit->waiting_count, &jit->waiting_capacity);

  if (!added) {
    free(name->text);
    return -ENOMEM;
  }
  if (read->code && read->size <= CODES_MOST - jit->codes) {
    name->code = malloc((size_t)read->size);
    if (name->code) {
      memcpy(name->code, read->code, (size_t)read->size);
      jit->codes += (size_t)read->size;
    }
  }
  *added = *name;
  return 0;
}

/* Takes a name from the files of the process: jit_name_function. */
static int name_take(void *data, const struct jit_name *read)
{
  struct drain_jit *jit = data;
  struct jit_name named = *read;
  struct drain_name name = {.start = read->start, .end = read->start + read->size, .read = jit->drain->now};
  const struct drain_name *before = read->moved ? name_at(jit, read->moved) : NULL;

  if (before) {
    named.text = before->text;
    named.length = before->length;
  }
  if ((read->moved && !named.length) || name_is(name_at(jit, read->start), &named))
    return 0;
  if (jit->count + jit->waiting_count >= NAMES_MOST || jit->texts > TEXTS_MOST || jit->waiting_count >= WAITING_MOST) {
    jit_tell_full(jit->drain);
    return 0;
  }
  name.length = named.length;
  name.text = named.length ? strndup(named.text, named.length) : NULL;
  if (named.length && !name.text)
    return -ENOMEM;
  jit->texts += name.length;
  return name_must_wait(jit, &name) ? name_wait(jit, &name, read) : name_begin(jit, &name);
}

/* Reads what is new. The names that are valid at once go into the trace. */
static int jit_read(struct drain_jit *jit, bool is_whole)
{
  int r = 1;

  jit->looked = jit->drain->now;
  jit->is_ordered = false;
  for (unsigned i = 0; i < READS_MOST && r > 0; i++)
    r = process_jit_read(jit->source, is_whole && !i, name_take, jit);
  return r < 0 ? r : batch_write(jit);
}

/* ---- names that wait ---- */

/* Takes a waiting name out of the list, and makes it valid. The caller settles first, and writes the batch. */
static int waiting_begin(struct drain_jit *jit, size_t number)
{
  struct drain_name name = jit->waiting[number];

  jit->waiting_count--;
  memmove(&jit->waiting[number], &jit->waiting[number + 1], (jit->waiting_count - number) * sizeof(name));
  jit->codes -= name.code ? (size_t)(name.end - name.start) : 0;
  return name_begin(jit, &name);
}

static bool extent_is_in(const struct drain_extent *extent, const struct drain_name *name)
{
  return extent->first < name->end && name->start < extent->end;
}

/* Does the code of the note belong to this name? If the program has told the bytes, they decide. */
static bool name_has_code(const struct drain_jit *jit, const struct drain_name *name, const struct process_note *note,
                          const uint8_t *bytes)
{
  const struct drain_extent *changed = &jit->drain->code.changed, *added = &jit->drain->code.added;
  uint64_t first = note->start > name->start ? note->start : name->start;
  uint64_t end = note->start + note->length < name->end ? note->start + note->length : name->end;
  const struct drain_name *before;

  if (!extent_is_in(changed, name) && !extent_is_in(added, name))
    return false;
  if (name->code)
    return first < end && !memcmp(name->code + (first - name->start), bytes + (first - note->start), end - first);
  if (extent_is_in(changed, name))
    return true;
  /* The older function never ran from its start. Execution begins now in the middle of it, or at a start whose new name
   * came much later than the old one. */
  before = name_at(jit, name->start);
  return note->start == name->start && added->first == name->start && before &&
         (before->start != name->start || name->read - before->read > LOOK_SECONDS);
}

/* The names that wait for this code become valid: of those that overlap each other, the first. */
static int waiting_match(struct drain_jit *jit, const struct process_note *note, const uint8_t *bytes)
{
  size_t begun = jit->count; /* names from here on began now */
  bool is_settled = false;
  int r = 0;

  jit->is_ordered = true;
  for (size_t i = 0; i < jit->waiting_count && r >= 0;) {
    bool is_taken = !name_has_code(jit, &jit->waiting[i], note, bytes);

    for (size_t k = begun; k < jit->count && !is_taken; k++)
      is_taken = jit->names[k].text && names_overlap(&jit->names[k], &jit->waiting[i]);
    if (is_taken) {
      i++;
      continue;
    }
    if (!is_settled)
      r = drain_settle_code(jit->drain, jit->space, note->step);
    is_settled = true;
    if (r >= 0)
      r = waiting_begin(jit, i);
  }
  return r < 0 ? r : batch_write(jit);
}

/* Names that have waited long enough become valid: those that were read before `limit`. */
static int waiting_end(struct drain_jit *jit, double limit)
{
  bool has_any = jit->waiting_count && jit->waiting[0].read < limit;
  int r = has_any ? drain_settle(jit->drain, jit->space, ALL_STEPS) : 0;

  jit->is_ordered = true;
  while (r >= 0 && jit->waiting_count && jit->waiting[0].read < limit)
    r = waiting_begin(jit, 0);
  return r < 0 ? r : batch_write(jit);
}

/* ---- spaces ---- */

static struct drain_jit *jit_find(const struct process_drain *drain, uint32_t space)
{
  for (size_t i = 0; i < drain->jit_count; i++)
    if (drain->jits[i]->space == space)
      return drain->jits[i];
  return NULL;
}

static void jit_free(struct drain_jit *jit)
{
  for (size_t i = 0; i < jit->count; i++)
    free(jit->names[i].text);
  for (size_t i = 0; i < jit->waiting_count; i++) {
    free(jit->waiting[i].text);
    free(jit->waiting[i].code);
  }
  free(jit->names);
  free(jit->waiting);
  interval_map_done(&jit->map);
  process_jit_free(jit->source);
  free(jit);
}

/* A page has the number of the process as it sees itself. A process that lbr has attached to may be in a namespace of
 * its own. */
static uint32_t process_outside(const struct process *process, uint32_t number)
{
  for (size_t i = 0; i < process->attached_count; i++)
    if ((uint32_t)target_inner_number(process->attached[i]) == number)
      return (uint32_t)process->attached[i];
  return number;
}

/* The process of a space; 0: not known. */
static uint32_t space_process(const struct process_drain *drain, uint32_t space)
{
  uint32_t high = __atomic_load_n(&drain_control(drain)->thread_high, __ATOMIC_ACQUIRE);

  for (uint32_t i = 0; i < high && i < PROCESS_THREADS; i++) {
    const struct process_state *page = drain_page(drain, i);

    if (__atomic_load_n(&page->status, __ATOMIC_ACQUIRE) != THREAD_FREE &&
        __atomic_load_n(&page->space, __ATOMIC_RELAXED) == space)
      return process_outside(drain->process, __atomic_load_n(&page->process, __ATOMIC_RELAXED));
  }
  return 0;
}

/* Begins to read the names of a space. Returns 0, with NULL if its process is not known; or -ENOMEM. */
static int jit_begin(struct process_drain *drain, uint32_t space, struct drain_jit **ret_jit)
{
  uint32_t process = space_process(drain, space);
  const struct drain_space *found = drain_space_get(drain, space);
  struct drain_jit *jit, **added;

  *ret_jit = NULL;
  if (!process || !found || drain->jit_count >= JITS_MOST)
    return 0;
  jit = calloc(1, sizeof(*jit));
  added = jit ? array_append(&drain->jits, &drain->jit_count, &drain->jit_capacity) : NULL;
  if (!added || process_jit_new(process, &jit->source) < 0) {
    drain->jit_count -= added != NULL;
    free(jit);
    return -ENOMEM;
  }
  *added = jit;
  jit->drain = drain;
  jit->space = space;
  for (size_t i = 0; i < found->count; i++)
    if (!found->modules[i].is_gone)
      process_jit_module(jit->source, drain->files[found->modules[i].file].path, found->modules[i].start,
                         found->modules[i].offset);
  *ret_jit = jit;
  return jit_read(jit, true);
}

/* Is the address in a file that has code of its own? */
static bool address_is_in_file(const struct process_drain *drain, uint32_t number, uint64_t address)
{
  const struct drain_space *space = number < drain->space_count ? &drain->spaces[number] : NULL;

  for (size_t i = space ? space->count : 0; i-- > 0;) {
    const struct drain_module *module = &space->modules[i];
    const char *path = module->is_gone ? "" : drain->files[module->file].path;

    if (address - module->start < module->end - module->start)
      return *path && strncmp(path, "/memfd:", strlen("/memfd:")) && strncmp(path, "/dev/", strlen("/dev/"));
  }
  return false;
}

int drain_jit_code(struct process_drain *drain, const struct process_note *note, const uint8_t *bytes,
                   enum code_news news)
{
  struct drain_jit *jit = jit_find(drain, note->space);
  int r = 0;

  if (!jit && address_is_in_file(drain, note->space, note->start))
    return 0;
  if (!jit)
    r = jit_begin(drain, note->space, &jit);
  else if (news == CODE_CHANGED || drain->now - jit->looked > QUICK_SECONDS)
    r = jit_read(jit, false);
  return r < 0 || !jit ? r : waiting_match(jit, note, bytes);
}

int drain_jit_attach(struct process_drain *drain, uint32_t space)
{
  struct drain_jit *jit = jit_find(drain, space);

  return jit || !drain->process->attachment ? 0 : jit_begin(drain, space, &jit);
}

void drain_jit_module(struct process_drain *drain, uint32_t space, const char *path, uint64_t start, uint64_t offset)
{
  struct drain_jit *jit = jit_find(drain, space);

  if (jit)
    process_jit_module(jit->source, path, start, offset);
}

int drain_jit_copy(struct process_drain *drain, uint32_t space, uint32_t original)
{
  const struct drain_jit *jit = jit_find(drain, original);

  return jit && jit->count ? trace_writer_names_copy(drain->writer, space, original) : 0;
}

int drain_jit_look(struct process_drain *drain)
{
  int r = 0;

  if (!drain->jit_count || drain->now - drain->jits_looked < LOOK_SECONDS)
    return 0;
  drain->jits_looked = drain->now;
  for (size_t i = 0; i < drain->jit_count && r >= 0; i++) {
    r = jit_read(drain->jits[i], true);
    if (r >= 0)
      r = waiting_end(drain->jits[i], drain->now - WAIT_SECONDS);
  }
  return r;
}

int drain_jit_end(struct process_drain *drain, uint32_t space)
{
  size_t kept = 0;
  int r = 0;

  for (size_t i = 0; i < drain->jit_count; i++) {
    struct drain_jit *jit = drain->jits[i];

    if (space && jit->space != space) {
      drain->jits[kept++] = jit;
      continue;
    }
    if (r >= 0)
      r = jit_read(jit, true);
    if (r >= 0)
      r = waiting_end(jit, drain->now + 1);
    jit_free(jit);
  }
  drain->jit_count = kept;
  return r;
}

void drain_jit_done(struct process_drain *drain)
{
  for (size_t i = 0; i < drain->jit_count; i++)
    jit_free(drain->jits[i]);
  free(drain->jits);
}
