/* SPDX-License-Identifier: Apache-2.0
 *
 * Source files in memory, each read once. Their names come from debug information, which is untrusted: only regular
 * files of moderate size are read, and unprintable characters are replaced.
 */
#include "report/source_lines.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/words.h"

#define FILE_MAX (8u << 20)   /* bytes of a file */
#define FILES_MAX (64u << 20) /* bytes of all files */
#define LINE_LENGTH_MAX 300u  /* bytes of a line that are shown */

struct source_file {
  char *path;   /* as the debug information has it */
  char *bytes;  /* NULL if it cannot be read */
  size_t *ends; /* of lines: offset of the next one */
  size_t line_count;
};

/* ---- reading ---- */

static int bytes_read(int fd, char *bytes, size_t size)
{
  for (size_t done = 0; done < size;) {
    ssize_t count = read(fd, bytes + done, size - done);

    if (count <= 0)
      return count < 0 ? -errno : -EIO;
    done += (size_t)count;
  }
  return 0;
}

static int lines_find(struct source_file *file, size_t size)
{
  size_t lines = 1, at = 0;

  for (size_t i = 0; i < size; i++)
    lines += file->bytes[i] == '\n';
  file->ends = calloc(lines, sizeof(*file->ends));
  if (!file->ends)
    return -ENOMEM;
  for (size_t i = 0; i < size; i++)
    if (file->bytes[i] == '\n')
      file->ends[at++] = i + 1;
  if (size && file->bytes[size - 1] != '\n')
    file->ends[at++] = size;
  file->line_count = at;
  return 0;
}

static int fd_read(struct source_files *files, struct source_file *file, int fd)
{
  struct stat status;
  int r;

  if (fstat(fd, &status) < 0)
    return -errno;
  if (!S_ISREG(status.st_mode))
    return -ESPIPE;
  if ((uint64_t)status.st_size > FILE_MAX || files->bytes + (size_t)status.st_size > FILES_MAX)
    return LB_E_TOO_BIG;
  file->bytes = malloc((size_t)status.st_size + 1);
  if (!file->bytes)
    return -ENOMEM;
  r = bytes_read(fd, file->bytes, (size_t)status.st_size);
  if (r >= 0)
    r = lines_find(file, (size_t)status.st_size);
  if (r < 0)
    return r;
  files->bytes += (size_t)status.st_size;
  if (files->time && (uint64_t)status.st_mtime > files->time && !files->has_warned) {
    message("warning: %s: changed since the recording began: line numbers may be wrong", file->path);
    files->has_warned = true;
  }
  return 0;
}

static void file_read(struct source_files *files, struct source_file *file)
{
  int fd = source_paths_open(&files->paths, file->path), r = fd < 0 ? fd : fd_read(files, file, fd);

  if (fd >= 0)
    close(fd);
  if (r >= 0)
    return;
  free(file->bytes);
  file->bytes = NULL;
  if (r != -EPERM && !files->has_complained && !files->is_quiet)
    message("warning: %s: %s; its source lines are left out (--source-prefix OLD=NEW says where source files are)",
            file->path, lb_strerror(r));
  files->has_complained |= r != -EPERM;
}

static struct source_file *file_get(struct source_files *files, const char *path)
{
  struct source_file *list;

  for (size_t i = files->count; i-- > 0;)
    if (!strcmp(files->files[i].path, path))
      return &files->files[i];
  list = array_grow(files->files, sizeof(*list), files->count, &files->capacity);
  if (!list)
    return NULL;
  files->files = list;
  list[files->count] = (struct source_file){.path = strdup(path)};
  if (!list[files->count].path)
    return NULL;
  file_read(files, &list[files->count]);
  return &list[files->count++];
}

bool source_add_line(struct source_files *files, const char *path, unsigned line, struct text *text)
{
  const struct source_file *file = file_get(files, path);
  size_t start, end;

  if (!file || !file->bytes || !line || line > file->line_count)
    return false;
  start = line > 1 ? file->ends[line - 2] : 0;
  end = file->ends[line - 1];
  while (end > start && isspace((unsigned char)file->bytes[end - 1]))
    end--;
  end = end - start > LINE_LENGTH_MAX ? start + LINE_LENGTH_MAX : end;
  return words_add_printable(text, file->bytes + start, end - start) >= 0;
}

void source_done(struct source_files *files)
{
  for (size_t i = 0; i < files->count; i++) {
    free(files->files[i].path);
    free(files->files[i].bytes);
    free(files->files[i].ends);
  }
  free(files->files);
  files->files = NULL;
  files->count = files->capacity = 0;
}
