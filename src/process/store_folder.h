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

/* Opens a folder if it is the user's own, and nobody else can write to it; `is_made`: makes it, and the one that it
 * lies in, if they are not there. A symbolic link is not followed. Returns a descriptor, or -errno. */
int folder_open(const char *path, bool is_made);
int folder_open_at(int parent, const char *name, bool is_made);

/* Removes the files of translations; `is_all`: all files. Returns the number of bytes that were freed. */
uint64_t folder_empty(int folder, bool is_all);

/* The name of the folder for this runtime and processor, at most 32 bytes. */
void store_version(char *ret_name, size_t size);

/* Removes those that were not used for the longest time until all are not larger than that. */
void store_trim(const char *path, uint64_t size_most);

#endif
