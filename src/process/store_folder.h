/* SPDX-License-Identifier: Apache-2.0
 *
 * The folders of the store, for store.c and store_list.c.
 */
#ifndef PROCESS_STORE_FOLDER_H
#define PROCESS_STORE_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STORE_NAME "lastbranch"
#define STORE_FOLDER "code-"      /* folders of translations begin with this */
#define STORE_DISABLED "disabled" /* a file in the store's folder: it is not used */

/* Opens a folder if the user owns it and no other user can write to it. With `is_made`, creates it and its parent if
 * they do not exist. A symbolic link is not followed. Returns a descriptor, or -errno. */
int folder_open(const char *path, bool is_made);
int folder_open_at(int parent, const char *name, bool is_made);

/* Removes the files of translations; `is_all`: all files. Returns the number of bytes that were freed. */
uint64_t folder_empty(int folder, bool is_all);

/* The name of the folder for this runtime and processor, at most 32 bytes. */
void store_version(char *ret_name, size_t size);

/* Removes the least recently used files until all together have at most `size_most` bytes. */
void store_trim(const char *path, uint64_t size_most);

#endif
