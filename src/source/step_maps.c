/* SPDX-License-Identifier: Apache-2.0
 *
 * The executable mappings of a process as the kernel lists them. proc(5).
 */
#include "source/step_maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define MAPS_MAX 65536u

/* ---- the list ---- */

static bool map_is(const struct step_map *map, const struct step_map *other)
{
  return map->process == other->process && map->start == other->start && map->end == other->end &&
         map->offset == other->offset && !strcmp(map->path, other->path);
}

static bool maps_mark(struct step_maps *maps, const struct step_map *map)
{
  for (size_t i = 0; i < maps->count; i++)
    if (map_is(&maps->maps[i], map)) {
      maps->maps[i].is_there = true;
      return true;
    }
  return false;
}

static void maps_add(struct step_maps *maps, const struct step_map *map)
{
  struct step_map *added;
  char *path;

  if (maps->count >= MAPS_MAX)
    return;
  path = strdup(map->path);
  added = path ? array_append(&maps->maps, &maps->count, &maps->capacity) : NULL;
  if (!added) {
    free(path);
    return;
  }
  *added = *map;
  added->is_there = true;
  added->path = path;
}

static void maps_remove(struct step_maps *maps, size_t place)
{
  free(maps->maps[place].path);
  maps->maps[place] = maps->maps[--maps->count];
}

void step_maps_forget(struct step_maps *maps, uint32_t process)
{
  for (size_t i = maps->count; i-- > 0;)
    if (maps->maps[i].process == process)
      maps_remove(maps, i);
}

void step_maps_fork(struct step_maps *maps, uint32_t parent, uint32_t process)
{
  size_t count = maps->count;

  if (parent == process)
    return;
  step_maps_forget(maps, process);
  for (size_t i = 0; i < count && i < maps->count; i++)
    if (maps->maps[i].process == parent) {
      struct step_map map = maps->maps[i];

      map.process = process;
      maps_add(maps, &map);
    }
}

void step_maps_done(struct step_maps *maps)
{
  while (maps->count)
    maps_remove(maps, maps->count - 1);
  free(maps->maps);
}

/* ---- reading ---- */

/* "START-END r-xp OFFSET DEVICE INODE PATH". Returns false for a mapping that is not executable, or an invalid line. */
static bool line_parse(char *line, struct step_map *map)
{
  char permissions[5];
  int behind = 0;

  line[strcspn(line, "\n")] = 0;
  if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &map->start, &map->end, permissions,
             &map->offset, &behind) != 4 ||
      !behind || permissions[2] != 'x')
    return false;
  map->path = line + behind;
  return true;
}

void step_maps_read(struct step_maps *maps, struct source *source, uint32_t process)
{
  char path[64], line[4608];
  struct step_map map = {.process = process};

  FILE *file;

  snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", process);
  file = fopen(path, "re");
  if (!file)
    return;
  for (size_t i = 0; i < maps->count; i++)
    maps->maps[i].is_there = maps->maps[i].process != process;
  while (fgets(line, sizeof(line), file))
    if (line_parse(line, &map) && !maps_mark(maps, &map)) {
      tasks_map(source->tasks, process, &(struct task_map){map.start, map.end - map.start, map.offset, map.path});
      maps_add(maps, &map);
    }
  fclose(file);
  for (size_t i = maps->count; i-- > 0;)
    if (!maps->maps[i].is_there)
      maps_remove(maps, i);
}

void step_maps_name(const struct source *source, uint32_t process, char name[17])
{
  char path[64];

  snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", process);
  if (source->kernel->file_read(source->kernel->data, path, name, 17) < 0)
    *name = 0;
  name[strcspn(name, "\n")] = 0;
}
