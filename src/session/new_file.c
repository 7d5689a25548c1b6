/* SPDX-License-Identifier: Apache-2.0
 *
 * A file that gets its name only when it is complete.
 */
#include "session/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "lastbranch/trace.h"
#include "session/leftover.h"

/* "a.html" for "/tmp/a.lbr", "a.lbr.incomplete" and "a". NULL without memory. */
static char *name_make(const char *trace, const char *suffix)
{
  static const char *const ends[] = {".incomplete", ".lbr", ".trace"};
  const char *base = strrchr(trace, '/') ? strrchr(trace, '/') + 1 : trace;
  size_t length = strlen(base);
  char *name;

  for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
    size_t end = strlen(ends[i]);

    if (length > end && !strncmp(base + length - end, ends[i], end))
      length -= end;
  }
  return asprintf(&name, "%.*s%s", (int)length, base, suffix) < 0 ? NULL : name;
}

/* A trace cannot be made again without a whole run, and its name is easily given in place of the output's. */
static bool is_trace(const char *name)
{
  struct lb_trace_reader *reader;

  if (lb_trace_reader_open(name, &reader) < 0)
    return false;
  lb_trace_reader_close(reader);
  return true;
}

static int file_create(struct new_file *file)
{
  struct stat status;
  bool is_there = stat(file->name, &status) == 0;

  if (is_there && !S_ISREG(status.st_mode))
    return open(file->name, O_WRONLY | O_CLOEXEC);
  if (is_there && is_trace(file->name)) {
    errno = EEXIST;
    return -1;
  }
  if (asprintf(&file->temporary, "%s.XXXXXX", file->name) < 0) {
    file->temporary = NULL;
    errno = ENOMEM;
    return -1;
  }
  return leftover_create(file->temporary);
}

int new_file_open(struct new_file *file, const char *trace, const char *name, const char *suffix)
{
  int r;

  *file = (struct new_file){.fd = STDOUT_FILENO};
  if (name && !strcmp(name, "-"))
    return 0;
  file->name = name ? strdup(name) : name_make(trace, suffix);
  file->fd = file->name ? file_create(file) : -1;
  if (file->fd >= 0)
    return 0;
  r = file->name ? -errno : -ENOMEM;
  if (r == -EEXIST)
    message("%s: refusing to overwrite a trace; choose another name, or remove it first", file->name);
  else
    message("%s: %s", file->name ? file->name : trace, lb_strerror(r));
  return r;
}

int new_file_create(const char *name)
{
  struct new_file file = {.name = (char *)(uintptr_t)name};
  int r = file.fd = file_create(&file);

  if (r < 0)
    r = -errno;
  else if (file.temporary && rename(file.temporary, name) < 0) {
    r = -errno;
    close(file.fd);
    unlink(file.temporary);
  }
  leftover_forget(file.temporary);
  free(file.temporary);
  return r;
}

/* Uses a link, so that there is a file of that name at any moment. Not every file system has links. */
static void back_up(const char *name, const char *old, const char *temporary)
{
  if (link(name, temporary) < 0) {
    rename(name, old);
    return;
  }
  rename(temporary, old);
  unlink(temporary); /* it still exists if both names were of one file */
}

void new_file_back_up(const char *name)
{
  struct stat status;
  char *old = NULL, *temporary = NULL;

  if (lstat(name, &status) < 0 || !S_ISREG(status.st_mode))
    return;
  if (asprintf(&old, "%s.old", name) < 0)
    old = NULL;
  if (asprintf(&temporary, "%s.old.%d", name, (int)getpid()) < 0)
    temporary = NULL;
  if (old && temporary)
    back_up(name, old, temporary);
  free(old);
  free(temporary);
}

int new_file_write(void *data, const void *bytes, size_t size)
{
  struct new_file *file = data;

  while (size) {
    ssize_t done = write(file->fd, bytes, size);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return -errno;
    bytes = (const char *)bytes + done;
    file->size += (size_t)done;
    size -= (size_t)done;
  }
  return 0;
}

int new_file_rewrite(void *data, uint64_t offset, const void *bytes, size_t size)
{
  struct new_file *file = data;
  off_t now = lseek(file->fd, 0, SEEK_CUR);
  off_t start = now - (off_t)file->size; /* others may have written to standard output before */

  if (now < 0 || start < 0 || fcntl(file->fd, F_GETFL) & O_APPEND)
    return -ESPIPE;
  while (size) {
    ssize_t done = pwrite(file->fd, bytes, size, start + (off_t)offset);

    if (done < 0 && errno == EINTR)
      continue;
    if (done < 0)
      return -errno;
    bytes = (const char *)bytes + done;
    offset += (size_t)done;
    size -= (size_t)done;
  }
  return 0;
}

int new_file_close(struct new_file *file, int error)
{
  if (file->name && file->fd >= 0 && close(file->fd) < 0 && error >= 0)
    error = -errno;
  file->fd = file->name ? -1 : file->fd;
  if (file->temporary && error >= 0 && rename(file->temporary, file->name) < 0)
    error = -errno;
  if (file->temporary && error < 0)
    unlink(file->temporary);
  leftover_forget(file->temporary);
  return error;
}

void new_file_done(struct new_file *file)
{
  leftover_forget(file->temporary);
  free(file->name);
  free(file->temporary);
  *file = (struct new_file){.fd = -1};
}

void new_file_complain_trace(const char *name, int error)
{
  if (error == -EEXIST)
    message("%s.incomplete already exists: another run is writing it, or was interrupted; read it or remove it", name);
  else if (error == -ELOOP)
    message("%s: a symbolic link to something that is not a file; name the file itself", name);
  else
    message("%s: %s", name, lb_strerror(error));
}
