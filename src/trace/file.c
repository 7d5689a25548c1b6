/* SPDX-License-Identifier: Apache-2.0
 *
 * The file of a trace that is being written: see file.h. It is newly created, readable by its owner only, and never
 * through a symbolic link, which an attacker may have planted.
 */
#include "trace/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether `path` is written to directly. Returns 1; 0 for a regular file or if nothing is there; or -errno. */
static int path_is_special(const char *path)
{
  struct stat status;

  if (lstat(path, &status) < 0)
    return errno == ENOENT ? 0 : -errno;
  if (S_ISLNK(status.st_mode)) {
    /* The trace would replace the link. This is right for a link to a file, but not for /dev/stdout. */
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
      return S_ISDIR(status.st_mode) ? -EISDIR : -ELOOP;
    return 0;
  }
  if (S_ISDIR(status.st_mode))
    return -EISDIR;
  if (S_ISBLK(status.st_mode) || S_ISSOCK(status.st_mode))
    return -EINVAL;
  return S_ISREG(status.st_mode) ? 0 : 1;
}

int trace_file_open(struct trace_file *file, const char *path)
{
  struct trace_file new = {.fd = -1};
  int r = path_is_special(path);
  bool is_special = r > 0;

  if (r < 0)
    return r;
  new.path = strdup(path);
  if (!new.path || (!is_special && asprintf(&new.temporary, "%s.incomplete", path) < 0)) {
    free(new.path);
    return -ENOMEM;
  }
  if (is_special)
    new.fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  else
    new.fd = open(new.temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (new.fd < 0) {
    r = -errno;
    free(new.temporary);
    free(new.path);
    return r;
  }
  *file = new;
  return 0;
}

void trace_file_take(struct trace_file *file, int fd)
{
  *file = (struct trace_file){.fd = fd};
}

int trace_file_write(struct trace_file *file, const void *bytes, size_t size)
{
  const char *at = bytes;

  while (size > 0) {
    ssize_t done = write(file->fd, at, size);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return -errno;
    at += done;
    size -= (size_t)done;
    file->size += (uint64_t)done;
  }
  return 0;
}

int trace_file_close(struct trace_file *file, int error)
{
  if (close(file->fd) < 0 && error >= 0 && errno != EINTR)
    error = -errno;
  if (error >= 0 && file->temporary && rename(file->temporary, file->path) < 0)
    error = -errno;
  free(file->temporary);
  free(file->path);
  return error;
}
