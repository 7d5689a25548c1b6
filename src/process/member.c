/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the processes that run in the code cache of a recording: member.h. Their thread pages have their numbers, but
 * not all of these help: a process in another PID namespace writes the number that it has there, and a child of fork
 * writes none before it has run for the first time. Such processes are found by their mappings, in /proc.
 */
#include "process/member.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/attach.h"
#include "process/process.h"
#include "process/shared.h"
#include "process/target.h"

bool member_is_memory(const struct target_map *map)
{
  return !strncmp(map->path, "/memfd:lbr-shared", 17);
}

enum member { NOT_MEMBER, MEMBER, OWNER };

/* Is the file of the memory open in the process? The runtime of a program that was just executed has not mapped it yet.
 */
static bool has_descriptor(int process, const struct stat *own)
{
  char path[64];
  const struct dirent *entry;
  struct stat other;
  bool has_it = false;

  snprintf(path, sizeof(path), "/proc/%d/fd", process);
  DIR *folder = opendir(path);
  while (folder && !has_it && (entry = readdir(folder)))
    has_it = fstatat(dirfd(folder), entry->d_name, &other, 0) == 0 && other.st_ino == own->st_ino &&
             other.st_dev == own->st_dev;
  if (folder)
    closedir(folder);
  return has_it;
}

/* A process may have passed the memory to others, which map it without the runtime: those must not be left. */
static enum member member_kind(const struct process *recording, int process)
{
  struct target_maps maps;
  struct stat own;
  bool has_memory = false;

  if (recording->fd <= 0)
    return process_is_ours(recording, (uint32_t)process) ? MEMBER : NOT_MEMBER;
  if (fstat(recording->fd, &own) < 0 || target_maps_read(process, &maps) < 0)
    return NOT_MEMBER;
  for (size_t i = 0; i < maps.count; i++)
    has_memory |= maps.list[i].inode == own.st_ino && member_is_memory(&maps.list[i]);
  bool has_image = target_image(&maps);
  target_maps_done(&maps);
  if (has_image)
    return has_memory || has_descriptor(process, &own) ? MEMBER : NOT_MEMBER;
  return has_memory ? OWNER : NOT_MEMBER;
}

bool member_is(const struct process *recording, int process)
{
  return member_kind(recording, process) == MEMBER;
}

static const struct process_state *page_of(const struct process *recording, uint32_t slot)
{
  return (const struct process_state *)(const void *)(recording->memory + process_thread_offset(slot));
}

static bool is_running(const struct process_state *page)
{
  uint32_t status = __atomic_load_n(&page->status, __ATOMIC_ACQUIRE);

  return (status == THREAD_LIVE && page->end != END_EXEC) || status == THREAD_STARTING;
}

/* By the numbers in the thread pages. */
static int find_by_number(const struct process *recording)
{
  for (uint32_t slot = 0; slot < process_slots(recording); slot++) {
    const struct process_state *page = page_of(recording, slot);
    uint32_t number = __atomic_load_n(&page->process, __ATOMIC_RELAXED);

    if (is_running(page) && !page->numbering && number && number <= INT32_MAX && member_is(recording, (int)number))
      return (int)number;
  }
  return 0;
}

/* By the mappings of all processes but this one, in the order of their numbers. */
static int find_by_maps(const struct process *recording, enum member kind)
{
  DIR *folder = opendir("/proc");
  const struct dirent *entry;
  int found = 0;

  while (folder && !found && (entry = readdir(folder))) {
    int number = (int)strtol(entry->d_name, NULL, 10);

    if (number > 0 && number != getpid() && member_kind(recording, number) == kind)
      found = number;
  }
  if (folder)
    closedir(folder);
  return found;
}

/* Can there be a process whose number is not known? Each process has an address space of its own, which it counts. */
static bool has_unknown(const struct process *recording)
{
  const struct process_control *control = (const struct process_control *)(const void *)recording->memory;

  return recording->fd > 0 && __atomic_load_n(&control->space_count, __ATOMIC_RELAXED) != recording->attached_count;
}

int member_find(const struct process *recording)
{
  int found = find_by_number(recording);

  return found || !has_unknown(recording) ? found : find_by_maps(recording, MEMBER);
}

int member_owner(const struct process *recording)
{
  return find_by_maps(recording, OWNER);
}
