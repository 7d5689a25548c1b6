/* SPDX-License-Identifier: Apache-2.0
 *
 * What processes are called: their command lines, or the titles that they set while they run. The last that was read
 * goes into the trace when a process ends or executes another program.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source/tasks_inside.h"

void tasks_titles(struct tasks *tasks, tasks_title_read *read, void *data)
{
  tasks->title_read = read;
  tasks->title_data = data;
}

static struct task_title *title_find(const struct tasks *tasks, uint32_t process)
{
  struct task_title *title = tasks->titles[process % TASKS_BUCKETS];

  while (title && title->number != process)
    title = title->link;
  return title;
}

static struct task_title *title_new(struct tasks *tasks, uint32_t process)
{
  struct task_title *title = tasks->title_count < TASKS_MAX ? calloc(1, sizeof(*title)) : NULL;

  if (!title)
    return NULL; /* without it, then */
  title->number = process;
  title->link = tasks->titles[process % TASKS_BUCKETS];
  tasks->title_count++;
  return tasks->titles[process % TASKS_BUCKETS] = title;
}

/* A process that is gone has no title any more: the last one stays. */
void tasks_title_look(struct tasks *tasks, uint32_t process)
{
  char text[SOURCE_TITLE_MOST];
  struct task_title *title;

  if (!process || !tasks->title_read || !tasks->title_read(tasks->title_data, process, text))
    return;
  title = title_find(tasks, process);
  if (!title)
    title = title_new(tasks, process);
  if (title)
    memcpy(title->text, text, sizeof(text));
}

void tasks_title(const struct tasks *tasks, uint32_t process, char ret_title[SOURCE_TITLE_MOST])
{
  const struct task_title *title = title_find(tasks, process);

  memcpy(ret_title, title ? title->text : "", title ? sizeof(title->text) : 1);
}

void tasks_titles_look(struct tasks *tasks)
{
  for (size_t i = 0; i < TASKS_BUCKETS; i++)
    for (const struct task_process *process = tasks->processes[i]; process; process = process->link)
      tasks_title_look(tasks, process->number);
}

int tasks_title_put(struct tasks *tasks, const struct task_thread *thread)
{
  const struct task_title *title = title_find(tasks, thread->process->number);

  if (!title || !thread->has_stream || !tasks->sink->describe || tasks->error < 0)
    return tasks->error;
  return tasks_fail(tasks, tasks->sink->describe(tasks->sink->data, thread->stream, "title", title->text));
}

int tasks_titles_put(struct tasks *tasks)
{
  for (size_t i = 0; i < TASKS_BUCKETS; i++)
    for (const struct task_thread *thread = tasks->threads[i]; thread; thread = thread->link)
      tasks_title_put(tasks, thread);
  return tasks->error;
}

void tasks_title_forget(struct tasks *tasks, uint32_t process)
{
  struct task_title **link = &tasks->titles[process % TASKS_BUCKETS], *title;

  while (*link && (*link)->number != process)
    link = &(*link)->link;
  title = *link;
  if (!title)
    return;
  *link = title->link;
  tasks->title_count--;
  free(title);
}

void tasks_titles_done(struct tasks *tasks)
{
  for (size_t i = 0; i < TASKS_BUCKETS; i++)
    while (tasks->titles[i])
      tasks_title_forget(tasks, tasks->titles[i]->number);
}
