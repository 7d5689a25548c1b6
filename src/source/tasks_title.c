/* SPDX-License-Identifier: Apache-2.0
 *
 * The titles of processes: their command lines, or the titles that they set while they run. The last title read goes
 * into the trace when a process ends or executes another program.
 */
#include <string.h>

#include "source/tasks_inside.h"

void tasks_titles(struct tasks *tasks, tasks_title_read *read, void *data)
{
  tasks->title_read = read;
  tasks->title_data = data;
}

/* A process that is gone has no title any more: the last one is kept. */
void tasks_title_look(struct tasks *tasks, uint32_t process)
{
  char text[SOURCE_TITLE_MOST];
  struct task_title *title;

  if (!process || !tasks->title_read || !tasks->title_read(tasks->title_data, process, text))
    return;
  title = id_table_find(&tasks->titles, process);
  if (!title && tasks->titles.count < TASKS_MAX)
    title = id_table_new(&tasks->titles, process, sizeof(*title));
  if (title) /* otherwise it has no title */
    memcpy(title->text, text, sizeof(text));
}

void tasks_title(const struct tasks *tasks, uint32_t process, char ret_title[SOURCE_TITLE_MOST])
{
  const struct task_title *title = id_table_find(&tasks->titles, process);

  memcpy(ret_title, title ? title->text : "", title ? sizeof(title->text) : 1);
}

void tasks_titles_look(struct tasks *tasks)
{
  for (size_t i = 0; i < tasks->processes.count; i++)
    tasks_title_look(tasks, tasks->processes.entries[i].id);
}

int tasks_title_put(struct tasks *tasks, const struct task_thread *thread)
{
  const struct task_title *title = id_table_find(&tasks->titles, thread->process->number);

  if (!title || !thread->has_stream || !tasks->sink->describe || tasks->error < 0)
    return tasks->error;
  return tasks_fail(tasks, tasks->sink->describe(tasks->sink->data, thread->stream, "title", title->text));
}

int tasks_titles_put(struct tasks *tasks)
{
  for (size_t i = 0; i < tasks->threads.count; i++)
    tasks_title_put(tasks, tasks->threads.entries[i].item);
  return tasks->error;
}

void tasks_title_forget(struct tasks *tasks, uint32_t process)
{
  id_table_drop(&tasks->titles, process);
}
