/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaves processes that run in the code cache of an lbr that was killed: rescue.h. Their shared memory is still there,
 * and the lock on it is free. lbr opens this memory, takes the lock, and leaves them as if it had attached to them
 * itself (detach.c). For this, the runtime in the process must be the one that this lbr has, byte for byte. The memory
 * belongs to the process: nothing is taken from it but the numbers of processes, which member.c checks.
 */
#include "process/rescue.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "process/attach.h"
#include "process/attachment.h"
#include "process/member.h"
#include "process/process.h"
#include "process/shared.h"
#include "process/target.h"

/* ---- its memory ---- */

/* Opens the descriptor of the process that leads to a file in memory. Returns a descriptor, or -1. */
static int descriptor_open(int process, uint64_t inode)
{
  char path[64];
  const struct dirent *entry;
  struct stat stat;
  int found = -1;

  snprintf(path, sizeof(path), "/proc/%d/fd", process);
  DIR *folder = opendir(path);
  while (folder && found < 0 && (entry = readdir(folder)))
    if (fstatat(dirfd(folder), entry->d_name, &stat, 0) == 0 && stat.st_ino == inode && S_ISREG(stat.st_mode))
      found = openat(dirfd(folder), entry->d_name, O_RDWR | O_CLOEXEC);
  if (folder)
    closedir(folder);
  return found;
}

static int mapping_open(int process, const struct target_map *map)
{
  char path[96];

  snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", process, (unsigned long long)map->start,
           (unsigned long long)map->end);
  return open(path, O_RDWR | O_CLOEXEC);
}

/* Opens the shared memory that the process has mapped. Returns a descriptor; -ENOENT: it has mapped none; -errno. */
static int shared_open(int process)
{
  struct target_maps maps;
  int fd = -ENOENT, r = target_maps_read(process, &maps);

  if (r < 0)
    return r;
  for (size_t i = 0; i < maps.count && fd == -ENOENT; i++)
    if (member_is_memory(&maps.list[i])) {
      fd = descriptor_open(process, maps.list[i].inode);
      fd = fd < 0 ? mapping_open(process, &maps.list[i]) : fd;
      fd = fd < 0 ? -EACCES : fd;
    }
  target_maps_done(&maps);
  return fd;
}

/* Does somebody hold the lock, or is it not known whether the lbr that made the memory lives? */
static bool is_owned(int fd)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  struct process_control control;

  return pread(fd, &control, sizeof(control), 0) != (ssize_t)sizeof(control) || control.magic != PROCESS_MAGIC ||
         !(control.options & PROCESS_LOCKED) || fcntl(fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/* Had lbr attached to the processes, rather than started them? */
static bool is_attached(int fd)
{
  struct process_control control;

  return pread(fd, &control, sizeof(control), 0) == (ssize_t)sizeof(control) && control.options & PROCESS_ATTACHED;
}

/* ---- its runtime ---- */

/* Does memory of the process hold these bytes? */
static bool has_bytes(int memory, uint64_t address, const uint8_t *bytes, size_t size)
{
  uint8_t part[PROCESS_PAGE];

  for (size_t at = 0; at < size;) {
    size_t length = size - at < sizeof(part) ? size - at : sizeof(part);

    if (pread(memory, part, length, (off_t)(address + at)) != (ssize_t)length || memcmp(part, bytes + at, length) != 0)
      return false;
    at += length;
  }
  return true;
}

/* Compares the parts of the runtime that are not written to. */
static bool is_same_runtime(int process)
{
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)process_runtime;
  const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)(process_runtime + header->e_phoff);
  struct target_maps maps;
  char path[64];

  if (target_maps_read(process, &maps) < 0)
    return false;
  uint64_t image = target_image(&maps);
  target_maps_done(&maps);
  snprintf(path, sizeof(path), "/proc/%d/mem", process);
  int memory = open(path, O_RDONLY | O_CLOEXEC);
  bool is_same = memory >= 0 && image;
  for (unsigned i = 0; i < header->e_phnum && is_same; i++, segment++)
    if (segment->p_type == PT_LOAD && !(segment->p_flags & PF_W))
      is_same = has_bytes(memory, image + segment->p_vaddr, process_runtime + segment->p_offset, segment->p_filesz);
  if (memory >= 0)
    close(memory);
  return is_same;
}

/* ---- whole ---- */

static int refuse_owned(int process, int fd)
{
  int owner = member_owner(&(struct process){.fd = fd});

  if (owner)
    message("process %d: another lbr, process %d, records it already", process, owner);
  else
    message("process %d: another lbr records it already", process);
  return -EBUSY;
}

/* Returns a descriptor of the memory, or -errno after a message. */
static int check(int process)
{
  int fd = shared_open(process), r = 0;

  if (fd < 0) {
    message("process %d: lbr records it already, or was killed; its memory cannot be opened: %s", process,
            strerror(-fd));
    return fd;
  }
  if (is_owned(fd)) {
    r = refuse_owned(process, fd);
  } else if (!is_attached(fd) || !member_is(&(struct process){.fd = fd}, process)) {
    message("process %d: it was started by an lbr that was killed, and cannot run without the recorder: restart it",
            process);
    r = -EINVAL;
  } else if (!is_same_runtime(process)) {
    message("process %d: it runs in the code cache of another build of lbr, which was killed: attach with that build, "
            "which leaves it first, or restart the process",
            process);
    r = -EINVAL;
  }
  if (r < 0)
    close(fd);
  return r < 0 ? r : fd;
}

int rescue_check(int process)
{
  int fd = check(process);

  if (fd >= 0)
    close(fd);
  return fd < 0 ? fd : 0;
}

/* Fills the process as process_attach does. Only thread pages are needed of the memory. */
static int recording_open(int pid, int fd, struct process *process)
{
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
  struct stat stat;
  size_t size = process_notes_offset();

  if (fcntl(fd, F_OFD_SETLK, &lock) < 0)
    return refuse_owned(pid, fd);
  if (fstat(fd, &stat) < 0 || (uint64_t)stat.st_size < size)
    return -EBADMSG;
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED)
    return -errno;
  process->memory = memory;
  process->memory_size = size;
  process->attachment = calloc(1, sizeof(*process->attachment));
  process->attached = malloc(sizeof(*process->attached));
  if (!process->attachment || !process->attached)
    return -ENOMEM;
  process->attached[0] = pid;
  process->attached_count = 1;
  return 0;
}

int rescue_leave(int process, tracee_wait_function *wait, void *data)
{
  int fd = shared_open(process);

  if (fd == -ENOENT)
    return 0;
  if (fd >= 0)
    close(fd);
  fd = check(process);
  if (fd < 0)
    return fd;
  struct process recording = {.pid = process, .fd = fd};
  int r = recording_open(process, fd, &recording);
  if (r >= 0) {
    message("process %d: it still runs in the code cache of an lbr that was killed; leaving that first", process);
    process_guard(&recording);
    r = process_detach(&recording, wait, data);
  } else if (r != -EBUSY) {
    message("process %d: cannot leave the code cache of an lbr that was killed: %s", process, lb_strerror(r));
  }
  process_done(&recording);
  return r;
}
