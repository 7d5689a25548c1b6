/* SPDX-License-Identifier: Apache-2.0
 *
 * Names of code that is in no file: what the process has written for perf or told gdb so far. The files are read once
 * for each address space, when an address of it needs a name.
 */
#include "session/run_jit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

enum {
  NAMES_MOST = 1 << 17,
  READS_MOST = 256, /* pieces of the files */
};

struct run_jit_space {
  uint32_t number;
  char **texts;
  size_t count, capacity;
  struct interval_map map; /* values are numbers of texts */
};

/* A later name replaces earlier ones: jit_name_function. */
static int name_take(void *data, const struct jit_name *name)
{
  struct run_jit_space *space = data;
  struct interval interval = {.first = name->start, .last = name->start + name->size - 1};
  const struct interval *moved = name->moved ? interval_map_find(&space->map, 0, name->moved) : NULL;
  char **added;

  if (name->moved && !moved)
    return 0;
  interval.value = moved ? moved->value : (uint32_t)space->count;
  if (!name->length && !moved)
    return interval_map_clear(&space->map, 0, interval.first, interval.last, NAMES_MOST) == -ENOMEM ? -ENOMEM : 0;
  if (!moved) {
    if (space->count >= NAMES_MOST)
      return 0;
    added = array_append(&space->texts, &space->count, &space->capacity);
    if (!added)
      return -ENOMEM;
    *added = strndup(name->text, name->length);
    if (!*added) {
      space->count--;
      return -ENOMEM;
    }
  }
  return interval_map_add(&space->map, &interval, NAMES_MOST) == -ENOMEM ? -ENOMEM : 0;
}

/* Without memory, code has no names. */
static void space_read(struct run_jit_space *space, struct process_spaces *spaces)
{
  struct process_jit *source;
  struct process_module module;
  uint32_t process = process_spaces_process(spaces, space->number);

  if (!process || process_jit_new(process, &source) < 0)
    return;
  for (size_t i = 0; process_spaces_module(spaces, space->number, i, &module); i++)
    process_jit_module(source, module.path, module.start, module.offset);
  for (unsigned i = 0; i < READS_MOST && process_jit_read(source, !i, name_take, space) > 0; i++)
    ;
  process_jit_free(source);
}

static struct run_jit_space *space_get(struct run_jit *jit, struct process_spaces *spaces, uint32_t number)
{
  struct run_jit_space *space;

  for (size_t i = 0; i < jit->count; i++)
    if (jit->spaces[i].number == number)
      return &jit->spaces[i];
  space = array_append(&jit->spaces, &jit->count, &jit->capacity);
  if (!space)
    return NULL;
  *space = (struct run_jit_space){.number = number};
  space_read(space, spaces);
  return space;
}

bool run_jit_find(struct run_jit *jit, struct process_spaces *spaces, uint32_t space, uint64_t address,
                  struct symbol_place *place)
{
  const struct run_jit_space *found = space_get(jit, spaces, space);
  const struct interval *name = found ? interval_map_find(&found->map, 0, address) : NULL;

  if (!name)
    return false;
  *place = (struct symbol_place){
    .module = "[jit]",
    .address = address,
    .symbol = found->texts[name->value],
    .offset = address - name->first + name->offset,
    .size = name->last - name->first + 1,
  };
  return true;
}

void run_jit_done(struct run_jit *jit)
{
  for (size_t i = 0; i < jit->count; i++) {
    for (size_t k = 0; k < jit->spaces[i].count; k++)
      free(jit->spaces[i].texts[k]);
    free(jit->spaces[i].texts);
    interval_map_done(&jit->spaces[i].map);
  }
  free(jit->spaces);
  *jit = (struct run_jit){0};
}
