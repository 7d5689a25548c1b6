/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of a traced program as gdb needs them: the program, its libraries, how far each lies from its linked
 * address, and their bytes.
 */
#ifndef GDB_MODULES_H
#define GDB_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/analysis.h"
#include "base/base.h"

/* A file that lies in the address space. */
struct gdb_module {
  char *path;
  uint64_t address, size, offset; /* of its first piece */
  uint8_t build_id[LB_TRACE_BUILD_ID_MAX];
  size_t build_id_size;
  /* The members below are set when it is opened. */
  const uint8_t *bytes; /* NULL: it cannot be used */
  size_t bytes_size;
  bool is_wide;  /* 64-bit */
  uint64_t bias; /* to be added to its addresses */
  uint64_t entry, dynamic, headers;
  uint16_t header_count;
};

struct gdb_modules {
  struct gdb_module *list;
  size_t count, capacity;
  const struct analysis_files *files;
};

/* Adds a module that was mapped, or removes one that was unmapped. Returns 0, or -ENOMEM. */
int gdb_modules_add(struct gdb_modules *modules, const struct lb_trace_module *module);

/* Opens the files. One that cannot be used is left out; `files` must stay valid. */
void gdb_modules_open(struct gdb_modules *modules, const struct analysis_files *files);
void gdb_modules_done(struct gdb_modules *modules);

/* The program itself: the first file; NULL: there is none that can be used. */
const struct gdb_module *gdb_modules_program(const struct gdb_modules *modules);

/* Reads bytes of the files that lie at an address and that the program cannot write to. Returns how many bytes there
 * are, at most `size`. */
size_t gdb_modules_read(const struct gdb_modules *modules, uint64_t address, uint8_t *bytes, size_t size);

/* Append an auxiliary vector, and a list of libraries. Return 0; -ENOENT; -ENOMEM. */
int gdb_modules_auxv(const struct gdb_modules *modules, struct text *text);
int gdb_modules_libraries(const struct gdb_modules *modules, struct text *text);

#endif
