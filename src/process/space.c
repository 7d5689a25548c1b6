/* SPDX-License-Identifier: Apache-2.0
 *
 * The mappings of the programs' address spaces, from the notes in the shared memory. A space that fork made begins as a
 * copy of its parent. Each piece of a mapped file exists from one step number to another. A space is computed when it
 * is first asked for: a shell makes thousands, and most are never asked for. Notes are hostile input.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "process/process.h"
#include "process/shared.h"

/* No real program comes near these limits. They bound the time spent on the notes of a hostile one; addresses beyond
 * them have no names. */
enum {
  BIRTHS_MOST = 1 << 18,
  MAPS_MOST = 1 << 17, /* notes of files, of one space */
  PIECES_MOST = 1 << 14,
  CODES_MOST = 1 << 20,
  PATHS_MOST = 1 << 12,
  PATH_BYTES = 4096,
  ANCESTORS_MOST = 256,
  SPACES_MOST = 256,
};

struct piece {
  uint64_t start, end, offset;
  uint32_t since, until; /* step numbers; PROCESS_NOW: it is still mapped */
  const char *path;
};

/* Code in no file. Its bytes stay in the shared memory. */
struct code_note {
  uint64_t start, end;
  uint32_t step;
  const uint8_t *bytes;
};

struct space {
  uint32_t number;
  uint32_t map_count;
  struct piece *pieces;
  size_t piece_count, piece_capacity;
  struct code_note *codes; /* by address, then in the order of the notes */
  size_t code_count, code_capacity;
};

/* A NOTE_SPACE. */
struct birth {
  uint32_t number, parent;
  uint32_t process; /* 0: not known */
  uint64_t offset;  /* of the note; the space begins here */
  const char *path;
};

struct process_spaces {
  const struct process *process;
  struct birth *births;
  size_t birth_count, birth_capacity;
  struct space spaces[SPACES_MOST];
  size_t space_count, next; /* `next` is dropped first when there are too many */
  char **paths;             /* each path once */
  size_t path_count, path_capacity;
};

/* ---- paths ---- */

/* Returns a copy that stays valid, shared by all mappings of the file. NULL without memory. */
static const char *path_keep(struct process_spaces *spaces, const uint8_t *bytes, uint32_t length)
{
  char path[PATH_BYTES + 1], **grown;
  size_t size = length < PATH_BYTES ? length : PATH_BYTES;

  memcpy(path, bytes, size);
  path[size] = 0;
  for (size_t i = spaces->path_count; i-- > 0;)
    if (!strcmp(spaces->paths[i], path))
      return spaces->paths[i];
  if (spaces->path_count >= PATHS_MOST)
    return "";
  grown = array_grow(spaces->paths, sizeof(*grown), spaces->path_count, &spaces->path_capacity);
  if (!grown)
    return NULL;
  spaces->paths = grown;
  grown[spaces->path_count] = strdup(path);
  return grown[spaces->path_count] ? grown[spaces->path_count++] : NULL;
}

/* ---- pieces ---- */

static int piece_add(struct space *space, const struct piece *piece)
{
  struct piece *added;

  if (space->piece_count >= PIECES_MOST)
    return 0;
  added = array_append(&space->pieces, &space->piece_count, &space->piece_capacity);
  if (!added)
    return -ENOMEM;
  *added = *piece;
  return 0;
}

/* Keeps the remainder of a piece from `start` to `end`. */
static int piece_keep(struct space *space, const struct piece *piece, uint64_t start, uint64_t end)
{
  struct piece rest = *piece;

  if (start >= end)
    return 0;
  rest.offset += start - piece->start;
  rest.start = start;
  rest.end = end;
  return piece_add(space, &rest);
}

/* Unmaps a range from this step on. */
static int pieces_clear(struct space *space, uint64_t start, uint64_t end, uint32_t step)
{
  size_t count = space->piece_count;
  int result = 0;

  for (size_t i = 0; i < count && result >= 0; i++) {
    struct piece piece = space->pieces[i];

    if (piece.until != PROCESS_NOW || piece.end <= start || piece.start >= end)
      continue;
    space->pieces[i].until = step;
    result = piece_keep(space, &piece, piece.start, start);
    if (result >= 0)
      result = piece_keep(space, &piece, end, piece.end);
  }
  return result;
}

/* ---- one space ---- */

static int code_add(struct space *space, const struct process_note *note, const uint8_t *bytes)
{
  struct code_note *added;

  if (space->code_count >= CODES_MOST || note->start > UINT64_MAX - note->length)
    return 0;
  added = array_append(&space->codes, &space->code_count, &space->code_capacity);
  if (!added)
    return -ENOMEM;
  *added = (struct code_note){note->start, note->start + note->length, note->step, bytes};
  return 0;
}

static int note_take(struct process_spaces *spaces, struct space *space, const struct process_note *note,
                     const uint8_t *bytes)
{
  int result;

  if (note->type == NOTE_CODE)
    return code_add(space, note, bytes);
  if ((note->type != NOTE_MAP && note->type != NOTE_UNMAP) || note->start >= note->end || space->map_count >= MAPS_MOST)
    return 0;
  space->map_count++;
  result = pieces_clear(space, note->start, note->end, note->step);
  if (result < 0 || note->type == NOTE_UNMAP)
    return result;
  struct piece piece = {note->start, note->end, note->offset, note->step, PROCESS_NOW, NULL};
  piece.path = path_keep(spaces, bytes, note->length);
  return piece.path ? piece_add(space, &piece) : -ENOMEM;
}

/* A space and its ancestors, youngest first: each one's notes count up to `until`. */
struct ancestor {
  uint32_t number;
  uint64_t until;
};

static const struct birth *birth_find(const struct process_spaces *spaces, uint32_t number, uint64_t before)
{
  for (size_t i = 0; i < spaces->birth_count; i++)
    if (spaces->births[i].number == number && spaces->births[i].offset < before)
      return &spaces->births[i];
  return NULL;
}

static size_t ancestors_find(const struct process_spaces *spaces, uint32_t number,
                             struct ancestor ancestors[ANCESTORS_MOST])
{
  uint64_t until = UINT64_MAX;
  size_t count = 0;

  while (number && count < ANCESTORS_MOST) {
    const struct birth *birth = birth_find(spaces, number, until);

    ancestors[count++] = (struct ancestor){number, until};
    if (!birth)
      break;
    number = birth->parent;
    until = birth->offset;
  }
  return count;
}

static bool note_belongs(const struct process_note *note, uint64_t at, const struct ancestor *ancestors, size_t count)
{
  for (size_t i = 0; i < count; i++)
    if (ancestors[i].number == note->space && at < ancestors[i].until)
      return true;
  return false;
}

static int code_compare(const void *one, const void *other)
{
  const struct code_note *a = one, *b = other;

  if (a->start != b->start)
    return a->start < b->start ? -1 : 1;
  return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

static int space_read(struct process_spaces *spaces, struct space *space)
{
  struct ancestor ancestors[ANCESTORS_MOST];
  size_t count = ancestors_find(spaces, space->number, ancestors);
  struct process_note note;
  const uint8_t *bytes;
  uint64_t offset = 0, at = 0;
  int result = 0;

  for (; result >= 0 && process_note(spaces->process, &offset, &note, &bytes); at = offset)
    if (note_belongs(&note, at, ancestors, count))
      result = note_take(spaces, space, &note, bytes);
  if (space->code_count)
    qsort(space->codes, space->code_count, sizeof(*space->codes), code_compare);
  return result;
}

static void space_done(struct space *space)
{
  free(space->pieces);
  free(space->codes);
  *space = (struct space){0};
}

/* The space with this number, computed now if necessary. NULL without memory. */
static struct space *space_get(struct process_spaces *spaces, uint32_t number)
{
  struct space *space;

  for (size_t i = 0; i < spaces->space_count; i++)
    if (spaces->spaces[i].number == number)
      return &spaces->spaces[i];
  if (spaces->space_count < SPACES_MOST) {
    space = &spaces->spaces[spaces->space_count++];
  } else {
    space = &spaces->spaces[spaces->next++ % SPACES_MOST];
    space_done(space);
  }
  space->number = number;
  if (space_read(spaces, space) >= 0)
    return space;
  space_done(space);
  space->number = number; /* remembers the failure: it is not computed again */
  return NULL;
}

/* ---- all of them ---- */

static int births_read(struct process_spaces *spaces)
{
  struct process_note note;
  const uint8_t *bytes;
  uint64_t offset = 0;

  for (uint64_t at = 0; process_note(spaces->process, &offset, &note, &bytes); at = offset) {
    struct birth *added;
    const char *path;

    if (note.type != NOTE_SPACE || spaces->birth_count >= BIRTHS_MOST)
      continue;
    path = path_keep(spaces, bytes, note.length);
    added = path ? array_append(&spaces->births, &spaces->birth_count, &spaces->birth_capacity) : NULL;
    if (!added)
      return -ENOMEM;
    uint32_t parent = note.end <= UINT32_MAX ? (uint32_t)note.end : 0;
    *added = (struct birth){note.space, parent, (uint32_t)note.start, at, path};
  }
  return 0;
}

int process_spaces_new(const struct process *process, struct process_spaces **ret_spaces)
{
  struct process_spaces *spaces = calloc(1, sizeof(*spaces));

  if (!spaces)
    return -ENOMEM;
  spaces->process = process;
  if (births_read(spaces) < 0) {
    process_spaces_free(spaces);
    return -ENOMEM;
  }
  *ret_spaces = spaces;
  return 0;
}

void process_spaces_free(struct process_spaces *spaces)
{
  if (!spaces)
    return;
  for (size_t i = 0; i < spaces->space_count; i++)
    space_done(&spaces->spaces[i]);
  for (size_t i = 0; i < spaces->path_count; i++)
    free(spaces->paths[i]);
  free(spaces->paths);
  free(spaces->births);
  free(spaces);
}

/* ---- questions ---- */

static const struct piece *piece_find(const struct space *space, uint64_t address, uint32_t step)
{
  for (size_t i = space->piece_count; i-- > 0;) {
    const struct piece *piece = &space->pieces[i];
    bool is_then = piece->since <= step && (step < piece->until || piece->until == PROCESS_NOW);

    if (is_then && piece->start <= address && address < piece->end)
      return piece;
  }
  return NULL;
}

/* Finds the space of a step. Returns false if there is no such step. */
static bool step_space(const struct process_spaces *spaces, uint32_t number, uint32_t *ret_space)
{
  struct lb_step step;

  if (number == PROCESS_NOW || !process_step(spaces->process, number, &step))
    return false;
  *ret_space = step.space;
  return true;
}

bool process_spaces_find(struct process_spaces *spaces, uint32_t space, uint32_t step, uint64_t address,
                         struct process_module *ret_module)
{
  const struct piece *piece = NULL;
  const struct space *found;
  uint32_t own;

  if (step_space(spaces, step, &own) && (found = space_get(spaces, own)))
    piece = piece_find(found, address, step);
  if (!piece && (found = space_get(spaces, space)))
    piece = piece_find(found, address, PROCESS_NOW);
  if (!piece)
    return false;
  *ret_module = (struct process_module){piece->start, piece->end, piece->offset, piece->path};
  return true;
}

/* How many pieces of code begin at the address or before. */
static size_t codes_before(const struct space *space, uint64_t address)
{
  struct search search = {.end = space->code_count};

  while (search_next(&search))
    search_turn(&search, space->codes[search.at].start <= address);
  return search.first;
}

/* The newest code that is not newer than the step; if there is none, the oldest that is. Looks at a limited number of
 * pieces that begin before the address, because a piece is only one path long. */
static const struct code_note *code_find(const struct space *space, uint64_t address, uint32_t step)
{
  const struct code_note *best = NULL;
  size_t at = codes_before(space, address);

  for (unsigned tries = 0; at-- > 0 && tries < 512; tries++) {
    const struct code_note *code = &space->codes[at];
    bool is_then = code->step <= step, was_then = best && best->step <= step;

    if (address >= code->end)
      continue;
    if (!best || (is_then && (!was_then || code->step > best->step)) ||
        (!is_then && !was_then && code->step < best->step))
      best = code;
  }
  return best;
}

static uint32_t control_code_lost(const struct process *process)
{
  struct process_control control;

  memcpy(&control, process->memory, sizeof(control));
  return control.code_lost;
}

size_t process_spaces_code(struct process_spaces *spaces, uint32_t space, uint32_t step, uint64_t address,
                           uint8_t *bytes, size_t size)
{
  const struct code_note *code = NULL;
  const struct space *found;
  uint32_t own, lost = control_code_lost(spaces->process);

  if (lost && step >= lost) /* the known bytes may be out of date */
    return 0;
  if (step_space(spaces, step, &own) && (found = space_get(spaces, own)))
    code = code_find(found, address, step);
  if (!code && (found = space_get(spaces, space)))
    code = code_find(found, address, PROCESS_NOW);
  if (!code)
    return 0;
  if (size > code->end - address)
    size = (size_t)(code->end - address);
  memcpy(bytes, code->bytes + (address - code->start), size);
  return size;
}

bool process_spaces_module(struct process_spaces *spaces, uint32_t space, size_t number,
                           struct process_module *ret_module)
{
  const struct space *found = space_get(spaces, space);

  for (size_t i = 0; found && i < found->piece_count; i++)
    if (found->pieces[i].until == PROCESS_NOW && !number--) {
      const struct piece *piece = &found->pieces[i];

      *ret_module = (struct process_module){piece->start, piece->end, piece->offset, piece->path};
      return true;
    }
  return false;
}

uint32_t process_spaces_process(const struct process_spaces *spaces, uint32_t space)
{
  const struct birth *birth = birth_find(spaces, space, UINT64_MAX);

  return birth ? birth->process : 0;
}

const char *process_spaces_program(struct process_spaces *spaces, uint32_t space)
{
  uint64_t before = UINT64_MAX;
  const struct birth *birth;

  for (unsigned i = 0; i < ANCESTORS_MOST && (birth = birth_find(spaces, space, before)); i++) {
    if (*birth->path)
      return birth->path;
    before = birth->offset;
    space = birth->parent;
  }
  return "";
}
