/* SPDX-License-Identifier: Apache-2.0
 *
 * Replaces elfutils.c in a static program, which has libelf and libdw in it.
 */
#include "symbol/elfutils.h"

#define ELFUTILS(library, name) __typeof__(name) *sym_##name = name;
#include "symbol/elfutils.def"
#undef ELFUTILS

int elfutils_load(enum elfutils_library library)
{
  (void)library;
  return 0;
}
