/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the recordings that other lbr processes make now. Their shared memory is a file without a name, which lbr and
 * the recorded processes have open: /proc/PID/fd shows it to everyone who may trace one of them. The file is opened for
 * reading only. Anyone can make such a file, so its size, its seals and its contents are checked.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "process/peek.h"
#include "process/target.h"

enum {
  PEEKS_MOST = 256,
  HOLDERS_MOST = 1 << 16,
  DESCRIPTORS_MOST = 1 << 16, /* of a process that are looked at */
};

#define NOTES_SIZE_MOST (UINT64_C(1) << 40)
#define SHARED_LINK "/memfd:lbr-shared"

/* ---- one file ---- */

/* Takes the sizes from the control page. Returns whether they make sense and the file has the size that they give. */
static bool sizes_take(struct process *process, uint64_t file_size)
{
  struct process_control control;

  if (pread(process->fd, &control, sizeof(control), 0) != sizeof(control) || control.magic != PROCESS_MAGIC)
    return false;
  uint32_t part = control.part_size, steps = control.step_capacity;
  if (part < PROCESS_PART_LEAST || part > PROCESS_PART_MOST || part & (part - 1) || steps > PROCESS_STEPS_MOST ||
      steps % PROCESS_STEPS_UNIT || control.notes_size % PROCESS_PAGE || control.notes_size > NOTES_SIZE_MOST)
    return false;
  process->part_size = part;
  process->step_capacity = steps;
  process->notes_size = control.notes_size;
  process->memory_size =
    process_logs_offset(control.notes_size, steps) + (uint64_t)PROCESS_THREADS * PROCESS_PARTS * part;
  return process->memory_size + PROCESS_REST_SIZE == file_size;
}

/* Maps the memory of a descriptor for reading. Nobody can make a sealed file shorter: reading it cannot raise SIGBUS.
 * Returns 0 or -errno; the descriptor stays the caller's if it fails. */
static int memory_map(struct process *process)
{
  struct stat status;
  int seals = fcntl(process->fd, F_GET_SEALS);

  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(process->fd, &status) < 0 ||
      !sizes_take(process, (uint64_t)status.st_size))
    return -EINVAL;
  void *memory = mmap(NULL, process->memory_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, process->fd, 0);
  if (memory == MAP_FAILED)
    return -errno;
  process->memory = memory;
  return 0;
}

/* Whether lbr still reads the logs, or waits for the end of the program: it holds a lock as long as it exists. */
static bool peek_goes_on(const struct process_peek *peek)
{
  const struct process_control *control = (const struct process_control *)(const void *)peek->process.memory;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

  if (process_is_destroyed(&peek->process) || __atomic_load_n(&control->is_closed, __ATOMIC_RELAXED))
    return false;
  if (!(__atomic_load_n(&control->options, __ATOMIC_RELAXED) & PROCESS_LOCKED))
    return true;
  return fcntl(peek->process.fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

static void peek_free(struct process_peek *peek)
{
  process_done(&peek->process);
  free(peek->holders);
  free(peek);
}

/* Opens a descriptor of a process. NULL: it cannot be read, is no shared memory, or there is no memory. */
static struct process_peek *peek_open(int folder, const char *name, const struct stat *status)
{
  struct process_peek *peek = calloc(1, sizeof(*peek));

  if (!peek)
    return NULL;
  peek->device = status->st_dev;
  peek->inode = status->st_ino;
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  peek->process.fd = fd;
  if (fd <= 0 || memory_map(&peek->process) < 0) {
    if (fd >= 0)
      close(fd);
    free(peek);
    return NULL;
  }
  return peek;
}

/* ---- all processes ---- */

static struct process_peek *peek_get(struct process_peeks *peeks, int folder, const char *name)
{
  struct stat status;

  if (fstatat(folder, name, &status, 0) < 0 || !S_ISREG(status.st_mode))
    return NULL;
  for (size_t i = 0; i < peeks->count; i++)
    if (peeks->list[i]->inode == status.st_ino && peeks->list[i]->device == status.st_dev)
      return peeks->list[i];
  struct process_peek *peek = peeks->count < PEEKS_MOST ? peek_open(folder, name, &status) : NULL;
  struct process_peek **added = peek ? array_append(&peeks->list, &peeks->count, &peeks->capacity) : NULL;
  if (added)
    *added = peek;
  else if (peek)
    peek_free(peek);
  return added ? peek : NULL;
}

static int holder_add(struct process_peek *peek, int process)
{
  if (!peek->is_found)
    peek->holder_count = 0;
  peek->is_found = true;
  for (size_t i = peek->holder_count; i-- > 0;)
    if (peek->holders[i].process == process)
      return 0;
  if (peek->holder_count >= HOLDERS_MOST)
    return 0;
  struct peek_holder *added = array_append(&peek->holders, &peek->holder_count, &peek->holder_capacity);
  if (!added)
    return -ENOMEM;
  *added = (struct peek_holder){process, (uint32_t)target_inner_number(process)};
  return 0;
}

static bool is_shared_memory(int folder, const char *name)
{
  char target[64];
  ssize_t size = readlinkat(folder, name, target, sizeof(target));

  return size >= (ssize_t)strlen(SHARED_LINK) && !memcmp(target, SHARED_LINK, strlen(SHARED_LINK));
}

/* Is its name that of lbr? Everyone may know that. */
static bool is_lbr(int process)
{
  char path[64], name[32] = "";

  snprintf(path, sizeof(path), "/proc/%d/comm", process);
  FILE *file = fopen(path, "re");
  if (!file)
    return false;
  bool is_read = fgets(name, sizeof(name), file);
  fclose(file);
  return is_read && !strcmp(name, "lbr\n");
}

static int descriptors_look(struct process_peeks *peeks, int process)
{
  char path[64];
  const struct dirent *entry;
  int r = 0;

  snprintf(path, sizeof(path), "/proc/%d/fd", process);
  DIR *folder = opendir(path);
  if (!folder) {
    peeks->refused += (errno == EACCES || errno == EPERM) && is_lbr(process);
    return 0;
  }
  for (unsigned i = 0; r >= 0 && i < DESCRIPTORS_MOST && (entry = readdir(folder)); i++) {
    if (entry->d_name[0] == '.' || !is_shared_memory(dirfd(folder), entry->d_name))
      continue;
    struct process_peek *peek = peek_get(peeks, dirfd(folder), entry->d_name);
    r = peek ? holder_add(peek, process) : 0;
  }
  closedir(folder);
  return r;
}

/* Closes the recordings that are over. */
static void peeks_sort_out(struct process_peeks *peeks)
{
  size_t kept = 0;

  for (size_t i = 0; i < peeks->count; i++) {
    struct process_peek *peek = peeks->list[i];

    if (peek->is_found && peek_goes_on(peek))
      peeks->list[kept++] = peek;
    else
      peek_free(peek);
  }
  peeks->count = kept;
}

int process_peeks_look(struct process_peeks *peeks)
{
  const struct dirent *entry;
  uint64_t number;
  int r = 0;

  for (size_t i = 0; i < peeks->count; i++)
    peeks->list[i]->is_found = false;
  peeks->refused = 0;
  DIR *folder = opendir("/proc");
  if (!folder)
    return -errno;
  while (r >= 0 && (entry = readdir(folder)))
    if (number_parse(entry->d_name, &number) >= 0 && number <= INT32_MAX && number != (uint64_t)getpid())
      r = descriptors_look(peeks, (int)number);
  closedir(folder);
  peeks_sort_out(peeks);
  return r;
}

void process_peeks_done(struct process_peeks *peeks)
{
  for (size_t i = 0; i < peeks->count; i++)
    peek_free(peeks->list[i]);
  free(peeks->list);
  *peeks = (struct process_peeks){0};
}
