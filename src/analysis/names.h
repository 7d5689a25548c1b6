/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the addresses of a trace: the module and the symbol at each. The caller opens the files.
 */
#ifndef ANALYSIS_NAMES_H
#define ANALYSIS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/branch.h"
#include "lastbranch/trace.h"

struct symbol_module;

/* Callbacks that open the files that a trace names. */
struct analysis_files {
  void *data; /* passed to the functions */
  /* The whole file. Returns 0 with bytes that stay valid until `close`; 1 if it was changed since the trace was begun;
   * or negative. */
  int (*open)(void *data, const char *name, const void **ret_bytes, size_t *ret_size);
  void (*close)(void *data, const void *bytes, size_t size);
  /* The symbols of this file cannot be used; once for each file. Both strings are fit to be printed. */
  void (*warn)(void *data, const char *name, const char *why);
  /* Opens the same file together with its debug file, if it has one, which has more names than the file itself. Returns
   * 0, or negative. May be NULL. */
  int (*module)(void *data, const char *name, struct symbol_module **ret_module);
};

struct analysis_names;

/* `files` and what it points to must stay valid; NULL: no file is opened. Returns 0, or -ENOMEM. */
int analysis_names_new(const struct analysis_files *files, struct analysis_names **ret_names);
void analysis_names_free(struct analysis_names *names); /* takes NULL */

/* Shows C++ names mangled, as the files have them; by default they are demangled. Must be called before the first
 * lookup of a name. */
void analysis_names_keep_mangled(struct analysis_names *names);

/* Calls `visit` with the compilation folders of the code whose lines were asked for, until it returns true. Returns
 * what it returned last, or false. */
bool analysis_names_directories(const struct analysis_names *names, bool (*visit)(void *data, const char *directory),
                                void *data);

/* Maps the module, replacing what was mapped there before, or unmaps it. Beyond a limit, further modules are ignored
 * (`warn` says so). Returns 0, or -ENOMEM. */
int analysis_names_module(struct analysis_names *names, const struct lb_trace_module *module);

struct analysis_name {
  const char *symbol;  /* NULL: none is known */
  const char *mangled; /* the name as its file has it, if it differs from `symbol`; else NULL */
  const char *module;  /* the last part of the file's name; fit to be printed, as is the symbol */
  uint64_t offset;     /* offset from the symbol; without one, `linked` */
  uint64_t start;      /* address of the symbol as its file has it, */
  uint64_t size;       /* and its bytes; 0: not known */
  uint32_t file;       /* for analysis_names_file */
  uint64_t linked;     /* the address as the file is linked, as that of a location */
};

/* Finds what lies at a linear address. The file is opened on first use. A file whose build-id is not the module's gives
 * no symbols. Strings are valid as long as `names`. Returns false, touching nothing, if no module lies there. */
bool analysis_names_find(struct analysis_names *names, uint32_t space, uint64_t address,
                         struct analysis_name *ret_name);

struct analysis_file {
  const char *name; /* whole, fit to be printed */
  const uint8_t *build_id;
  size_t build_id_size;
  uint64_t address;    /* of the module that came first */
  size_t pieces;       /* modules that are pieces of it */
  size_t symbols;      /* 0: none, or they were not asked for */
  const char *problem; /* why its symbols cannot be used; NULL: they can, or they were not asked for */
};

/* The files that modules named, from 0 on. Returns false past the last. */
bool analysis_names_file(const struct analysis_names *names, size_t number, struct analysis_file *ret_file);

/* The linear address of either end of a branch: outside 64-bit mode there is a base, and 32 bits. */
static inline uint64_t analysis_from(const struct lb_branch *branch)
{
  return branch->flags & LB_BRANCH_FROM_32 ? (uint32_t)(branch->from + branch->from_base) : branch->from;
}

static inline uint64_t analysis_to(const struct lb_branch *branch)
{
  return branch->flags & LB_BRANCH_TO_32 ? (uint32_t)(branch->to + branch->to_base) : branch->to;
}

#endif
