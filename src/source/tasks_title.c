/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes are called: their command lines, or the titles that they set while they run. The last that was read
 * goes into the trace when a process ends or executes another program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/tasks_inside.h"

void world_titles(struct world *world, world_title_read *read, void *data)
{
  world->title_read = read;
  world->title_data = data;
}

static struct world_title *title_find(const struct world *world, uint32_t process)
{
  struct world_title *title = world->titles[process % WORLD_BUCKETS];

  while (title && title->number != process)
    title = title->link;
  return title;
}

static struct world_title *title_new(struct world *world, uint32_t process)
{
  struct world_title *title = world->title_count < WORLD_TASKS_MAX ? calloc(1, sizeof(*title)) : NULL;

  if (!title)
    return NULL; /* without it, then */
  title->number = process;
  title->link = world->titles[process % WORLD_BUCKETS];
  world->title_count++;
  return world->titles[process % WORLD_BUCKETS] = title;
}

/* A process that is gone has no title any more: the last one stays. */
void world_title_look(struct world *world, uint32_t process)
{
  char text[SOURCE_TITLE_MOST];
  struct world_title *title;

  if (!process || !world->title_read || !world->title_read(world->title_data, process, text))
    return;
  title = title_find(world, process);
  if (!title)
    title = title_new(world, process);
  if (title)
    memcpy(title->text, text, sizeof(text));
}

void world_title(const struct world *world, uint32_t process, char ret_title[SOURCE_TITLE_MOST])
{
  const struct world_title *title = title_find(world, process);

  memcpy(ret_title, title ? title->text : "", title ? sizeof(title->text) : 1);
}

void world_titles_look(struct world *world)
{
  for (size_t i = 0; i < WORLD_BUCKETS; i++)
    for (const struct world_process *process = world->processes[i]; process; process = process->link)
      world_title_look(world, process->number);
}

int world_title_put(struct world *world, const struct world_thread *thread)
{
  const struct world_title *title = title_find(world, thread->process->number);

  if (!title || !thread->has_stream || !world->sink->describe || world->error < 0)
    return world->error;
  return world_fail(world, world->sink->describe(world->sink->data, thread->stream, "title", title->text));
}

int world_titles_put(struct world *world)
{
  for (size_t i = 0; i < WORLD_BUCKETS; i++)
    for (const struct world_thread *thread = world->threads[i]; thread; thread = thread->link)
      world_title_put(world, thread);
  return world->error;
}

void world_title_forget(struct world *world, uint32_t process)
{
  struct world_title **link = &world->titles[process % WORLD_BUCKETS], *title;

  while (*link && (*link)->number != process)
    link = &(*link)->link;
  title = *link;
  if (!title)
    return;
  *link = title->link;
  world->title_count--;
  free(title);
}

void world_titles_done(struct world *world)
{
  for (size_t i = 0; i < WORLD_BUCKETS; i++)
    while (world->titles[i])
      world_title_forget(world, world->titles[i]->number);
}
