/* SPDX-License-Identifier: Apache-2.0
 *
 * libelf and libdw, which are loaded when they are first needed. With the libraries that they need in turn, they would
 * take half of the time in which lbr starts, and a run of a program that ends normally reads no ELF file.
 *
 * sym_NAME is the function NAME of the library, once the library is loaded.
 */
#ifndef SYMBOL_ELFUTILS_H
#define SYMBOL_ELFUTILS_H

#include <elfutils/libdw.h>
#include <gelf.h>

enum elfutils_library { ELFUTILS_ELF, ELFUTILS_DW };

/* Loads a library. Threads may call it at the same time. Returns 0, or -ELIBACC: this system has no such library. */
int elfutils_load(enum elfutils_library library);

#define ELFUTILS(library, name) extern __typeof__(name) *sym_##name;
#include "symbol/elfutils.def"
#undef ELFUTILS

#endif
