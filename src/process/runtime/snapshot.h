/* SPDX-License-Identifier: Apache-2.0
 *
 * The data that a process leaves for the next one that executes the same program: the files whose code it has
 * translated (module.c), and its cache, in the shared memory for processes of the same recording (snapshot.c,
 * snapshot_take.c) and in a file for later recordings (store.c). All functions need the lock, or are for the start.
 */
#ifndef PROCESS_RUNTIME_SNAPSHOT_H
#define PROCESS_RUNTIME_SNAPSHOT_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct runtime;
struct thread;

/* ---- files of code (module.c) ---- */

/* Distinguishes a file from all others, and from itself before it was changed. Times in nanoseconds. */
struct file_identity {
  uint64_t device, inode, size, modified;
  uint64_t content; /* a sum of its first bytes, where the linker puts the build ID */
  uint64_t changed; /* 0: the file is unknown, or so new that another change would have the same time */
};

/* Code of a file at an address, as the file has it: it was never writable. */
struct module {
  uint64_t start, end, offset;
  struct file_identity file;
  bool is_mapped;                /* in this process; else a snapshot brought units of it */
  bool is_early;                 /* it was mapped when the program itself began: by its dynamic linker */
  uint32_t way_first, way_count; /* of the snapshot that the process began with */
  uint32_t path;                 /* where its path begins in `paths` of the list */
};

enum { MODULES_MOST = 256, MODULE_PATHS = 16 << 10 };

struct module_list {
  uint32_t count;
  uint32_t paths_used;
  struct module modules[MODULES_MOST];
  char paths[MODULE_PATHS]; /* each ends with 0 */
};

/* Returns the identity of the open file. */
struct file_identity file_identify(int fd);

/* The file is mapped there from now on and can be executed. Units of an earlier process stay if they are of the same
 * file, or become stale. `fd` -1: the memory is that of no file, and there is no path. */
void module_add(struct runtime *runtime, uint64_t start, uint64_t end, uint64_t offset, int fd, const char *path);

/* The memory is gone, or may change. Its units are stale already. */
void module_remove(struct runtime *runtime, uint64_t start, uint64_t end);

/* The dynamic linker is done, and the program itself begins. */
void module_enter(struct runtime *runtime);

/* The module that holds the address, mapped or not; NULL: none. */
const struct module *module_find(const struct runtime *runtime, uint64_t address);

/* Forgets the modules whose memory differs from the file: a debugger writes there, or the program by /proc. Returns
 * false if the kernel does not tell. */
bool module_forget_changed(struct runtime *runtime);

/* Adds a module of a snapshot. */
void module_inherit(struct runtime *runtime, const struct module *module, const char *path);

/* ---- targets of indirect branches (way.c) ---- */

/* An entry of a lookup table. */
struct way {
  uint64_t address;    /* of the target */
  const uint8_t *code; /* which compares with that address */
  uint64_t is_wide;    /* it is for the wide table */
};

uint32_t ways_count(const struct runtime *runtime);

/* Lists the ways of each module; there is room for as many as there are. The modules are a copy of the runtime's. */
void ways_save(const struct runtime *runtime, struct module_list *modules, struct way *ways);

/* The list lies at this offset of the file. Returns false if it cannot be mapped. */
bool ways_map(struct runtime *runtime, int fd, uint64_t offset, uint64_t size);

/* Puts the ways of a mapped module into the thread's tables. */
void ways_publish(struct thread *thread, const struct module *module);

/* ---- the cache (snapshot.c) ---- */

/* Memory that a snapshot holds, in whole pages. */
struct piece {
  uint64_t address, size;
};

enum { PIECES_MOST = 2048 };

struct piece_list {
  uint32_t count;
  bool is_full; /* there were more pieces than fit */
  struct piece pieces[PIECES_MOST];
};

void piece_add(struct piece_list *list, const void *start, uint64_t size);

/* The program is loaded: begins with the newest snapshot of it, if there is one that fits. */
void snapshot_use(struct runtime *runtime);

/* The program's first thread is about to begin: it gets the ways of the modules that are mapped. */
void snapshot_publish(struct thread *thread);

/* The process ends, or executes another program: leaves a snapshot if there is much that the last one does not have. */
void snapshot_take(struct thread *thread);

#pragma GCC visibility pop

#endif
