/* SPDX-License-Identifier: Apache-2.0
 *
 * Descendants of processes: relatives.h.
 */
#include "process/relatives.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "process/target.h"

/* The next number in a folder of /proc, or 0: the end. */
static int number_next(DIR *folder)
{
  const struct dirent *entry;

  while ((entry = readdir(folder))) {
    int number = (int)strtol(entry->d_name, NULL, 10);

    if (number > 0)
      return number;
  }
  return 0;
}

struct family {
  int process, parent;
};

static bool has(const int *list, size_t count, int process)
{
  for (size_t i = 0; i < count; i++)
    if (list[i] == process)
      return true;
  return false;
}

static int families_read(struct family **ret_list, size_t *ret_count)
{
  struct family *list = NULL;
  size_t count = 0, capacity = 0;
  int process, r = 0;

  DIR *folder = opendir("/proc");
  if (!folder)
    return -errno;
  while (r >= 0 && (process = number_next(folder))) {
    int parent = target_parent(process);
    struct family *added = parent > 0 ? array_append(&list, &count, &capacity) : NULL;

    if (added)
      *added = (struct family){process, parent};
    else if (parent > 0)
      r = -ENOMEM;
  }
  closedir(folder);
  if (r < 0)
    free(list);
  else {
    *ret_list = list;
    *ret_count = count;
  }
  return r;
}

static int parent_of(const struct family *list, size_t count, int process)
{
  for (size_t i = 0; i < count; i++)
    if (list[i].process == process)
      return list[i].parent;
  return 0;
}

/* Processes come and go while /proc is read, so that a chain of parents may even be a ring. */
static bool descends(const struct family *list, size_t count, int process, const int *processes, size_t process_count)
{
  enum { DEPTH_MOST = 1000 };

  for (unsigned depth = 0; depth < DEPTH_MOST && process > 0; depth++) {
    process = parent_of(list, count, process);
    if (has(processes, process_count, process))
      return true;
  }
  return false;
}

int relatives_descendant(const int *processes, size_t count, const int *others, size_t other_count)
{
  struct family *list = NULL;
  size_t list_count = 0;
  int found = families_read(&list, &list_count);

  for (size_t i = 0; i < list_count && !found; i++)
    if (list[i].process != getpid() && !has(processes, count, list[i].process) &&
        !has(others, other_count, list[i].process) && descends(list, list_count, list[i].process, processes, count))
      found = list[i].process;
  free(list);
  return found;
}
