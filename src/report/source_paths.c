/* SPDX-License-Identifier: Apache-2.0
 *
 * Decides which source files may be shown, and where they are on this machine.
 */
#include "report/source_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* The path on this machine; NULL without memory. */
static char *path_translate(const struct source_paths *paths, const char *path)
{
  for (size_t i = 0; i < paths->prefix_count; i++) {
    const struct source_prefix *prefix = &paths->prefixes[i];
    char *made;

    if (!prefix->old || strncmp(path, prefix->old, prefix->old_length) != 0)
      continue;
    return asprintf(&made, "%s%s", prefix->new, path + prefix->old_length) < 0 ? NULL : made;
  }
  return strdup(path);
}

/* Both paths must be without links and "..". */
static bool is_below(const char *path, const char *folder)
{
  size_t length = strlen(folder);

  return !strncmp(path, folder, length) && (path[length] == '/' || (length && folder[length - 1] == '/'));
}

/* Whether this is a folder in which the program was compiled, according to the debug information. The root directory is
 * not accepted. */
static bool is_compiled_in(void *data, const char *directory)
{
  char *folder = realpath(directory, NULL);
  bool is_inside = folder && strcmp(folder, "/") != 0 && is_below(data, folder);

  free(folder);
  return is_inside;
}

static bool is_allowed(const struct source_paths *paths, char *path)
{
  bool is_inside = paths->allows_any;

  for (size_t i = 0; i < paths->prefix_count && !is_inside; i++) {
    char *folder = realpath(*paths->prefixes[i].new ? paths->prefixes[i].new : "/", NULL);

    is_inside = folder && is_below(path, folder);
    free(folder);
  }
  return is_inside || (paths->names && analysis_names_directories(paths->names, is_compiled_in, path));
}

int source_paths_open(struct source_paths *paths, const char *path)
{
  char *here = path_translate(paths, path), *real = here ? realpath(here, NULL) : NULL;
  int fd = here ? -errno : -ENOMEM;

  if (real && !is_allowed(paths, real)) {
    if (!paths->has_warned)
      message(
        "warning: %s: not shown, because it is outside the folders in which the program was compiled; --source-prefix DIR or --any-source shows it",
        path);
    paths->has_warned = true;
    fd = -EPERM;
  } else if (real) {
    fd = open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY); /* it may name a pipe or a terminal */
    fd = fd < 0 ? -errno : fd;
  }
  free(real);
  free(here);
  return fd;
}

bool source_paths_add(struct source_paths *paths, const char *argument)
{
  const char *equals = strchr(argument, '=');

  if (!*argument || equals == argument || paths->prefix_count >= SOURCE_PREFIXES_MAX)
    return false;
  paths->prefixes[paths->prefix_count++] = equals
                                             ? (struct source_prefix){argument, (size_t)(equals - argument), equals + 1}
                                             : (struct source_prefix){NULL, 0, argument};
  return true;
}
