/* SPDX-License-Identifier: Apache-2.0
 *
 * Executes gdb, with settings that suit the target.
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
  /* In replay mode, gdb would read only read-only memory; our target does not change. */
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
