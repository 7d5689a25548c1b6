/* SPDX-License-Identifier: Apache-2.0
 *
 * The store: translations that recorded programs leave for later recordings, in files of the user. doc/process.md
 * describes it. Users know it as the cache of `lbr cache`.
 */
#ifndef PROCESS_STORE_H
#define PROCESS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STORE_PATH_MOST = 512 };

/* The folder of the store: lastbranch in $XDG_CACHE_HOME or in ~/.cache. Returns false if there is none: no absolute
 * path, or one that is too long. */
bool store_path(char ret_path[STORE_PATH_MOST]);

/* ---- for a recording ---- */

/* The share of the store that a recording has. */
struct store {
  char folder[STORE_PATH_MOST]; /* of the translations for this runtime and this processor. "": no store */
  uint32_t base, limit; /* the recording's steps have numbers from `base` on; no other recording ever gets those below
                           `limit` */
  uint64_t epoch;       /* within an epoch, no number is given out twice */
};

/* Opens the store and takes numbers from it. The folders are made if they are not there. The numbers are below `most`.
 * Without a store (it is disabled; the folder is not the user's own; another process holds its lock) `folder` is empty
 * and base and limit are 0. */
void store_begin(struct store *ret_store, uint32_t most);

/* The recording is over and has used numbers below `used`. Gives the others back, or all if it has stored nothing;
 * otherwise removes the least recently used files until the store is within its limit. */
void store_end(const struct store *store, uint32_t used, bool has_stored);

/* ---- for the user ---- */

/* A file of the store. */
struct store_file {
  char program[256];
  uint64_t size;  /* bytes on the disk */
  uint32_t units; /* translated paths */
  int64_t used;   /* seconds since 1970 when it was last read, as far as the file system tells, or written */
  bool is_old;    /* written by another version of lbr, or for another processor */
};

struct store_list {
  struct store_file *files; /* the largest first */
  size_t count;
  uint64_t size; /* of all files */
};

/* Lists the files. A store that is not there is empty. Returns 0 or -errno. */
int store_list(const char *path, struct store_list *ret_list);
void store_list_done(struct store_list *list);

/* Removes all files. Returns the number of bytes that were freed, or -errno. */
int64_t store_clear(const char *path);

/* The store can be disabled: recordings then neither read nor write it. Returns 0 or -errno. */
bool store_is_disabled(const char *path);
int store_set_disabled(const char *path, bool is_disabled);

#define STORE_SIZE_MOST (UINT64_C(1) << 30) /* bytes of all files; LBR_CACHE_LIMIT in the environment changes it */

uint64_t store_size_most(void);

#endif
