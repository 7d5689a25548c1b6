/* SPDX-License-Identifier: Apache-2.0
 *
 * Loads libelf and libdw. Both have had these names since their first release.
 */
#include "symbol/elfutils.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "symbol/loader.h"

#define ELFUTILS(library, name) __typeof__(name) *sym_##name;
#include "symbol/elfutils.def"
#undef ELFUTILS

struct function {
  enum elfutils_library library;
  const char *name;
  void *pointer; /* to sym_NAME */
};

static const struct function functions[] = {
#define ELFUTILS(library, name) {library, #name, (void *)&sym_##name},
#include "symbol/elfutils.def"
#undef ELFUTILS
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int functions_find(enum elfutils_library library)
{
  const char *file = library == ELFUTILS_ELF ? "libelf.so.1" : "libdw.so.1";
  int r = 0;

  for (size_t i = 0; i < sizeof(functions) / sizeof(*functions) && r == 0; i++)
    if (functions[i].library == library)
      r = loader_find(file, functions[i].name, functions[i].pointer);
  return r;
}

int elfutils_load(enum elfutils_library library)
{
  static bool is_tried[2];
  static int results[2];

  pthread_mutex_lock(&lock);
  if (!is_tried[library]) {
    results[library] = functions_find(library);
    is_tried[library] = true;
  }
  int r = results[library];
  pthread_mutex_unlock(&lock);
  return r;
}
