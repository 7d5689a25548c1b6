/* SPDX-License-Identifier: Apache-2.0
 *
 * Becoming gdb, with the settings that suit what is served.
 */
#include "gdb/start.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

static const char *const gdb_settings[] = {
  "gdb",
  "-q",
  "-iex",
  "set confirm off",
  /* The files are those of this machine. */
  "-iex",
  "set sysroot",
  /* While gdb is in the past it reads only what cannot be written; what we serve does not change. */
  "-ex",
  "set record btrace replay-memory-access read-write",
  "-ex",
};

#define SETTINGS (sizeof(gdb_settings) / sizeof(gdb_settings[0]))

int gdb_execute(const char *target, char *const *arguments, int count)
{
  const char **words = calloc(SETTINGS + (size_t)count + 2, sizeof(*words));

  if (!words)
    return -ENOMEM;
  memcpy(words, gdb_settings, sizeof(gdb_settings));
  words[SETTINGS] = target;
  for (int i = 0; i < count; i++)
    words[SETTINGS + 1 + (size_t)i] = arguments[i];
  execvp("gdb", (char *const *)(uintptr_t)words);
  free(words);
  return -errno;
}

void gdb_complain(int error)
{
  if (error == -ENOENT)
    message("gdb is not installed");
  else
    message("gdb cannot be started: %s", lb_strerror(error));
}
