/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces loader.c in a static program. glibc's dlopen works there only together with exactly the glibc that the
 * program was linked with. A static program is meant for other systems, so it loads nothing. The demangler of C++ names
 * is linked into it instead, if the compiler has it as an archive.
 */
#include <errno.h>
#include <string.h>

#include "symbol/loader.h"

#ifdef LB_HAS_DEMANGLER
extern char *__cxa_demangle(const char *name, char *buffer, size_t *size, int *ret_status); /* the C++ ABI, 3.4 */
#endif

int loader_find(const char *library, const char *function, void *ret_function)
{
  (void)library, (void)function, (void)ret_function;
#ifdef LB_HAS_DEMANGLER
  if (!strcmp(function, "__cxa_demangle")) {
    char *(*demangle)(const char *, char *, size_t *, int *) = __cxa_demangle;

    memcpy(ret_function, &demangle, sizeof(demangle));
    return 0;
  }
#endif
  return -ENOTSUP;
}
