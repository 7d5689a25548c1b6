/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of libraries that are loaded at run time, if this system has them. loader.c asks the dynamic linker; a
 * static program has loader_static.c in its place.
 */
#ifndef SYMBOL_LOADER_H
#define SYMBOL_LOADER_H

/* Stores a function of a library in the function pointer `ret_function`. Returns 0, -ELIBACC: this system has no such
 * library or function, or -ENOTSUP: this program is static and cannot load it. */
int loader_find(const char *library, const char *function, void *ret_function);

#endif
