/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of shared libraries, through the dynamic linker. A loaded library stays loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "symbol/loader.h"

int loader_find(const char *library, const char *function, void *ret_function)
{
  void *handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  void *found = handle ? dlsym(handle, function) : NULL;

  if (!found)
    return -ELIBACC;
  memcpy(ret_function, &found, sizeof(found));
  return 0;
}
