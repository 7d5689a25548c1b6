/* SPDX-License-Identifier: Apache-2.0
 *
 * The parts of a snapshot, for snapshot.c, snapshot_take.c and store.c. All functions need the lock, or are for the
 * start.
 */
#ifndef PROCESS_RUNTIME_STORE_H
#define PROCESS_RUNTIME_STORE_H

#include "process/runtime/runtime.h"
#include "process/store_file.h"

#pragma GCC visibility push(hidden)

/* The values that must be equal in the two processes for a snapshot to be usable. All members are words, since they are
 * compared and hashed as such. */
struct fit {
  uint64_t magic, runtime; /* address of the runtime: translated code jumps there */
  uint64_t area_size;
  uint64_t units, places, index, local, pages, habits; /* addresses of the memory */
  struct file_identity file;                           /* the program's */
};

/* The first bytes of a snapshot. The memory follows in the order of the pieces, from the next page on. */
struct snapshot {
  struct fit fit;
  struct cache_counts counts;
  uint32_t number_next; /* higher than the numbers of all its steps */
  struct pool pool;
  struct page_counts pages;
  struct module_list modules;
  struct piece_list pieces;
  uint64_t ways_size; /* bytes of the list of ways, which follows the memory */
};

static inline uint64_t snapshot_header_size(void)
{
  return page_up(sizeof(struct snapshot));
}

uint64_t pieces_size(const struct piece_list *pieces); /* bytes of all; snapshot_take.c */

/* A snapshot of this process, ready to be written: a header, the memory of its pieces, and the ways. */
struct snapshot_parts {
  const struct snapshot *header;
  const struct way *ways;
  uint64_t size; /* bytes of all */
};

/* Maps a part of a file temporarily, far from where areas of the cache and the program's libraries will be. Maps it
 * with all rights, so that the call fails for a file that cannot be executed. Returns the kernel's result. */
int64_t snapshot_look(int fd, uint64_t offset, uint64_t size);

struct fit snapshot_fit(const struct runtime *runtime);
uint64_t snapshot_key(const struct runtime *runtime); /* of the program; never 0 */
bool snapshot_is_for(const struct runtime *runtime, const struct snapshot *snapshot);

/* Can snapshots of the program be taken? It is a file that is known, at addresses that do not change. */
bool snapshot_is_possible(const struct runtime *runtime);

/* Returns the program's slot. With `is_new`, takes a free one if it has none. NULL: there is none. */
struct process_snapshot *snapshot_slot(const struct runtime *runtime, bool is_new);

/* Puts the snapshot, which has `units` units, into the slot. Other processes may do the same: the snapshot with the
 * most units stays. Returns whether it is this one. */
bool snapshot_offer(struct process_snapshot *slot, uint32_t page, uint32_t units);

static inline uint32_t snapshot_units(uint64_t value)
{
  return (uint32_t)(value >> 32);
}

/* Returns the offset in the shared memory of a snapshot that begins at this page. */
static inline uint64_t snapshot_offset(const struct runtime *runtime, uint32_t page)
{
  return process_snapshots_offset(runtime->control) + (uint64_t)page * PROCESS_PAGE;
}

/* ---- files that later recordings use (store.c) ---- */

/* The first bytes of a file of the store. The snapshot follows from the next page on, and then the steps. */
struct store_start {
  struct store_header header;
  struct piece_list steps;
  uint64_t unused[3];
};

/* A file of the store that was opened. */
struct stored {
  int fd;
  const struct store_start *start; /* the whole file, mapped */
  const struct snapshot *snapshot;
  uint64_t size, offset; /* of the file; of the snapshot in it */
};

/* Opens the program's file. Returns false if there is none that can be used: only the owner may have written it, and
 * the numbers of its steps must be given out for ever. Its contents are not checked yet. */
bool store_open(struct runtime *runtime, struct stored *ret_file);
void store_close(const struct stored *file);
bool store_is_whole(const struct stored *file);
uint64_t store_sum(const struct stored *file);

/* Copies its steps into the shared memory, where lbr reads them. They get a new address space, whose modules are those
 * of the file. Returns false if there is no room. */
bool store_bring_steps(struct runtime *runtime, const struct stored *file);

/* Can this process store a snapshot? Stores it, unless there is already one with as many units. */
bool store_is_open(const struct runtime *runtime);
void store_write(struct runtime *runtime, const struct snapshot_parts *parts);

#pragma GCC visibility pop

#endif
