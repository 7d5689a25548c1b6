/* SPDX-License-Identifier: Apache-2.0
 *
 * Internals of analysis_names: the files that modules name and where they are mapped (names.c), and code that the trace
 * itself contains (code_store.c). location.c looks things up by file and address.
 */
#ifndef ANALYSIS_NAMES_INSIDE_H
#define ANALYSIS_NAMES_INSIDE_H

#include "analysis/analysis.h"
#include "analysis/eh_frame.h"
#include "analysis/extent.h"
#include "analysis/names_jit.h"
#include "analysis/streams.h"
#include "base/base.h"
#include "symbol/symbol.h"

/* ---- code in the trace (code_store.c) ---- */

#define GRANULE 64u             /* bytes: as many as a mask has bits */
#define GRANULES_MAX (1u << 20) /* further code is not kept */

/* `known` has a bit for each byte. */
struct granule {
  uint64_t place, known; /* address / GRANULE */
  uint32_t file, space;
  uint8_t bytes[GRANULE];
};

struct code_store {
  struct granule *granules;
  size_t count, capacity;
  struct hash_index index; /* of granules by file, space and place */
};

/* Stores bytes, replacing earlier ones. Returns 0, or -ENOMEM. */
int code_store_add(struct code_store *store, const struct analysis_location *location, const uint8_t *bytes,
                   size_t size);

/* Copies the stored bytes from the location on, up to the first unknown one. Returns how many there are. */
size_t code_store_get(const struct code_store *store, const struct analysis_location *location, uint8_t *bytes,
                      size_t size);

void code_store_done(struct code_store *store);

/* ---- files ---- */

struct names_file {
  char *path; /* as the trace has it */
  char *name; /* the same, and its last part, to be printed */
  char *base;
  uint8_t build_id[LB_TRACE_BUILD_ID_MAX];
  size_t build_id_size;
  uint64_t address;
  size_t pieces;
  bool is_asked;
  struct symbol_table *table;
  struct symbol_module *module; /* NULL: none */
  struct symbol_layout *layout;
  struct eh_table unwind;
  char problem[200];
};

struct analysis_names {
  const struct analysis_files *files;
  struct symbol_demangler *demangler; /* NULL: names stay as the files have them */
  struct names_file *list;
  size_t count, capacity;
  struct interval_map map; /* values are numbers of files in the list, offsets those in the file */
  uint64_t bytes;          /* that were opened */
  bool is_full;            /* the limit was reached, and that was reported */
  uint32_t generation;
  struct stream_list streams;
  struct code_store code;
  struct start_list starts;
  struct jit_names jit;
};

#define NAMES_JIT "[jit]" /* the pseudo file of code that is in no file and has names */

/* Adds the pseudo file to the list. Returns 0 or -ENOMEM; beyond the limit the number stays ANALYSIS_NO_FILE. */
int names_pseudo_file(struct analysis_names *names, uint32_t *number);

/* The mappings are about to change. */
void names_change(struct analysis_names *names);

/* The mapping of a file at a linear address, or NULL. The file has then been opened, if it can be. */
const struct interval *names_mapping(struct analysis_names *names, uint32_t space, uint64_t address);

/* The location of code with a name that is in no file. Returns false, touching nothing, if there is none. */
bool names_locate_jit(struct analysis_names *names, const struct interval *mapping, uint32_t space, uint64_t address,
                      struct analysis_location *ret_location);

static inline bool names_file_has_symbols(const struct names_file *file)
{
  return file->table || file->module;
}

/* The linked address of the byte at an offset of the file, which must have a layout. Returns false if it has none. */
bool names_file_address(const struct names_file *file, uint64_t offset, uint64_t *ret_address);

/* The symbol at an address as the file is linked: sets symbol and offset. Returns false if there is none. */
bool names_file_find(const struct names_file *file, uint64_t linked, struct analysis_name *name);

/* Demangles the C++ symbol that was found, unless mangled names are wanted. */
void names_demangle(const struct analysis_names *names, struct analysis_name *name);

#endif
