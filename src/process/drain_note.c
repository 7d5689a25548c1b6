/* SPDX-License-Identifier: Apache-2.0
 *
 * Notes become modules and code in the trace. A note applies to the entries logged after it. If it changes what lies at
 * an address, the entries logged before it go into the trace first. A copy of a space (fork) gets the modules of the
 * original.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "process/drain.h"

enum {
  MODULES_MOST = 1 << 14, /* of a copied space */
  FILES_MOST = 1 << 16,
  PATH_MOST = 4096,
  GIVE_BACK = 1 << 20, /* bytes at a time */
  SCAN_MOST = 16 << 20,
  CLOCK_NOTES = 64, /* between two reads of the clock */
};

#define TAKE_SECONDS 0.25 /* spent on notes before anything else gets its turn */

#define STUCK_SECONDS 0.5

/* ---- files ---- */

static struct drain_file *file_find(struct process_drain *drain, const char *path, const struct file_mark *mark)
{
  for (size_t i = drain->file_count; i-- > 0;) {
    struct drain_file *file = &drain->files[i];

    if (!strcmp(file->path, path))
      return !memcmp(&file->mark, mark, sizeof(*mark)) ? file : NULL;
  }
  return NULL;
}

/* The file in its present state: if it was rewritten, its build-id is read again. Returns its number or negative. */
static int file_get(struct process_drain *drain, const char *path)
{
  struct file_mark mark = {0};
  struct stat status;
  struct drain_file *file, *files;

  if (*path == '/' && stat(path, &status) == 0)
    mark = file_mark_of(&status);
  file = file_find(drain, path, &mark);
  if (file)
    return (int)(file - drain->files);
  if (drain->file_count >= FILES_MOST)
    return LB_E_TOO_BIG;
  files = array_grow(drain->files, sizeof(*files), drain->file_count, &drain->file_capacity);
  if (!files)
    return -ENOMEM;
  drain->files = files;
  file = &files[drain->file_count];
  *file = (struct drain_file){.path = strdup(path), .mark = mark};
  if (!file->path)
    return -ENOMEM;
  if (*path == '/')
    file->build_id_size = build_id_read(path, &file->mark, file->build_id);
  return (int)drain->file_count++;
}

/* ---- modules ---- */

static int module_write(struct process_drain *drain, uint32_t space, const struct drain_module *module)
{
  const struct drain_file *file = module->is_gone ? NULL : &drain->files[module->file];
  struct lb_trace_module record = {
    .space = space,
    .is_gone = module->is_gone,
    .address = module->start,
    .size = module->end - module->start,
    .offset = module->offset,
    .name = file ? file->path : "",
    .build_id = file ? file->build_id : NULL,
    .build_id_size = file ? file->build_id_size : 0,
  };

  return lb_trace_writer_module(drain->writer, &record);
}

/* Drops the modules that the new one covers completely. Returns whether it overlaps any. */
static bool modules_cover(struct drain_space *space, const struct drain_module *module)
{
  bool is_over = false;
  size_t kept = 0;

  for (size_t i = 0; i < space->count; i++) {
    const struct drain_module *old = &space->modules[i];

    is_over |= old->start < module->end && module->start < old->end && !old->is_gone;
    if (old->start < module->start || old->end > module->end)
      space->modules[kept++] = *old;
  }
  space->count = kept;
  return is_over;
}

static bool modules_overlap(const struct drain_space *space, const struct drain_module *module)
{
  for (size_t i = 0; i < space->count; i++)
    if (space->modules[i].start < module->end && module->start < space->modules[i].end)
      return true;
  return false;
}

static int module_add(struct drain_space *space, const struct drain_module *module)
{
  struct drain_module *added;

  if (space->count >= MODULES_MOST)
    return 0;
  added = array_append(&space->modules, &space->count, &space->capacity);
  if (!added)
    return -ENOMEM;
  *added = *module;
  return 0;
}

/* Adds a module at its addresses, or removes what was there. */
static int module_change(struct process_drain *drain, const struct process_note *note,
                         const struct drain_module *module)
{
  struct drain_space *space = drain_space_get(drain, note->space);
  int r = 0;

  if (!space || space->is_over)
    return 0;
  if (modules_cover(space, module))
    r = drain_settle(drain, note->space, note->step);
  if (r < 0)
    return r;
  space = &drain->spaces[note->space]; /* drain_settle opens threads, also of other spaces: the array may have moved */
  if (!module->is_gone || modules_overlap(space, module))
    r = module_add(space, module);
  return r < 0 ? r : module_write(drain, note->space, module);
}

/* ---- the kinds of notes ---- */

static int note_map(struct process_drain *drain, const struct process_note *note, const uint8_t *bytes)
{
  struct drain_module module = {.start = note->start, .end = note->end, .offset = note->offset};
  char path[PATH_MOST];
  int file;

  if (note->end <= note->start || note->length >= sizeof(path))
    return 0;
  memcpy(path, bytes, note->length);
  path[note->length] = 0;
  file = file_get(drain, path);
  if (file < 0)
    return file == LB_E_TOO_BIG ? 0 : file;
  module.file = (uint32_t)file;
  drain_jit_module(drain, note->space, path, note->start, note->offset);
  return module_change(drain, note, &module);
}

static int note_unmap(struct process_drain *drain, const struct process_note *note)
{
  struct drain_module module = {.start = note->start, .end = note->end, .is_gone = true};

  return note->end > note->start ? module_change(drain, note, &module) : 0;
}

static int note_code(struct process_drain *drain, const struct process_note *note, const uint8_t *bytes)
{
  uint8_t *copy = malloc((size_t)note->length + 1);
  enum code_news news;
  int r = 0;

  if (!copy)
    return -ENOMEM;
  memcpy(copy, bytes, note->length);
  news = drain_code_take(drain, note->space, note->start, copy, note->length);
  if (news == CODE_CHANGED)
    r = drain_settle_code(drain, note->space, note->step);
  if (r >= 0 && news != CODE_KNOWN)
    r = drain_jit_code(drain, note, copy, news);
  if (r >= 0 && news != CODE_KNOWN)
    r = lb_trace_writer_code(drain->writer, &(struct lb_trace_code){note->space, note->start, copy, note->length});
  free(copy);
  return r;
}

/* A copy of a space gets the modules of the original. */
static int note_space(struct process_drain *drain, const struct process_note *note)
{
  struct drain_space *space, *original;
  int r = drain_space_begins(drain, note->space, note->end);

  if (r < 0 || !note->end || note->end >= drain->space_count || note->end == note->space ||
      drain_space_is_over(drain, note->space))
    return r;
  space = &drain->spaces[note->space];
  original = &drain->spaces[note->end];
  for (size_t i = 0; i < original->count && r >= 0; i++) {
    r = module_add(space, &original->modules[i]);
    if (r >= 0)
      r = module_write(drain, note->space, &original->modules[i]);
  }
  return r < 0 ? r : drain_jit_copy(drain, note->space, (uint32_t)note->end);
}

static int note_take(struct process_drain *drain, const struct process_note *note, const uint8_t *bytes)
{
  if (!drain_space_get(drain, note->space)) /* too many spaces: this one gets no names */
    return 0;
  switch (note->type) {
  case NOTE_MAP:
    return note_map(drain, note, bytes);
  case NOTE_UNMAP:
    return note_unmap(drain, note);
  case NOTE_CODE:
    return note_code(drain, note, bytes);
  case NOTE_SPACE:
    return note_space(drain, note);
  case NOTE_STEPS:
    return drain_space_steps(drain, note->space, note->start, note->end);
  case NOTE_NONE:
    return drain_space_fails(drain, note->space);
  case NOTE_KEPT:
    drain_space_keep(drain, note->space);
    return 0;
  default:
    return 0;
  }
}

/* ---- all ---- */

static bool is_note(const struct process *process, uint64_t offset, uint64_t used)
{
  const uint8_t *bytes = process->memory + process_notes_offset() + offset;
  struct process_note note;

  memcpy(&note, bytes, offsetof(struct process_note, space));
  if (note.size < sizeof(note) || note.size > PROCESS_NOTE_MOST) /* the rest may lie in a page that was never written */
    return false;
  memcpy(&note, bytes, sizeof(note));
  return note.type >= NOTE_MAP && note.type < NOTE_TYPES && note.length <= PROCESS_NOTE_MOST &&
         note.size == ((sizeof(note) + (uint64_t)note.length + 7) & ~7ull) && note.size <= used - offset;
}

/* The offset of the next data at or after `at`, or `used`. */
static uint64_t notes_data(const struct process *process, uint64_t at, uint64_t used)
{
  const uint64_t start = process_notes_offset();
  off_t data = process->fd > 0 ? lseek(process->fd, (off_t)(start + at), SEEK_DATA) : (off_t)(start + at);

  return data < 0 || (uint64_t)data >= start + used ? used : ((uint64_t)data - start + 7) & ~7ull;
}

/* A thread that is killed while it writes a note leaves a hole of unknown size. Searches a part of the written bytes
 * for the next plausible note, which need not be a real one, because a program can write anything there. Returns 1; 0
 * if there is none so far; -1 if there is more to search. */
static int notes_skip(struct process_drain *drain, uint64_t used)
{
  const uint64_t start = process_notes_offset();
  uint64_t at = drain->note_scan > drain->note_offset ? drain->note_scan : drain->note_offset + 8;

  for (uint64_t end = at + SCAN_MOST; at < end && at + sizeof(struct process_note) <= used; at += 8) {
    if ((start + at) % PROCESS_PAGE == 0 || at == drain->note_scan || at == drain->note_offset + 8) {
      uint64_t data = notes_data(drain->process, at, used);

      end += data - at;
      at = data;
    }
    if (at + sizeof(struct process_note) <= used && is_note(drain->process, at, used)) {
      drain->note_offset = at;
      return 1;
    }
  }
  drain->note_scan = at;
  return at + sizeof(struct process_note) <= used ? -1 : 0;
}

/* Notes that were taken are not read again. Gives their memory back. */
static void notes_give_back(struct process_drain *drain)
{
  uint64_t end = drain->note_offset / GIVE_BACK * GIVE_BACK;

  if (end <= drain->notes_given)
    return;
  madvise(drain->process->memory + process_notes_offset() + drain->notes_given, end - drain->notes_given, MADV_REMOVE);
  drain->notes_given = end;
}

/* Returns 0; 1 if the time ran out before all were taken; or negative. */
static int notes_take(struct process_drain *drain, uint64_t used)
{
  double end = clock_seconds() + TAKE_SECONDS;
  struct process_note note;
  const uint8_t *bytes;
  bool is_late = false;
  int r = 0;

  for (unsigned i = 1; r >= 0 && !is_late && drain->note_offset < used &&
                       process_note(drain->process, &drain->note_offset, &note, &bytes);
       i++) {
    drain->note_stuck = 0;
    r = note_take(drain, &note, bytes);
    is_late = i % CLOCK_NOTES == 0 && clock_seconds() > end;
  }
  notes_give_back(drain);
  return r < 0 ? r : is_late && drain->note_offset < used;
}

int drain_notes(struct process_drain *drain)
{
  uint64_t used = __atomic_load_n(&drain_control(drain)->notes_used, __ATOMIC_ACQUIRE);
  int r;

  if (used > drain->process->notes_size)
    used = drain->process->notes_size;
  do {
    r = notes_take(drain, used);
    if (r < 0 || drain->note_offset >= used)
      return r < 0 ? r : 1;
    if (r > 0)
      return 0;
    if (!drain->note_stuck) {
      drain->note_stuck = drain->now;
      drain->note_scan = 0;
    }
    if (drain->now - drain->note_stuck < STUCK_SECONDS)
      return 0;
    r = notes_skip(drain, used);
  } while (r > 0);
  return r < 0 ? 0 : 1;
}

void drain_notes_done(struct process_drain *drain)
{
  for (size_t i = 0; i < drain->file_count; i++)
    free(drain->files[i].path);
  drain_code_done(&drain->code);
  free(drain->files);
}
