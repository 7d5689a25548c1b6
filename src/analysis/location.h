/* SPDX-License-Identifier: Apache-2.0
 *
 * A location identifies code regardless of its address in a run: a file and an address in it. Code of one file that two
 * processes ran has the same locations; counts are kept by location. Code that is in no file is identified by its
 * address space.
 */
#ifndef ANALYSIS_LOCATION_H
#define ANALYSIS_LOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/trace.h"

#define ANALYSIS_NO_FILE UINT32_MAX

struct analysis_names;
struct analysis_name;
struct symbol_layout;
struct symbol_place;

struct analysis_location {
  uint32_t file;    /* for analysis_names_file, or ANALYSIS_NO_FILE */
  uint32_t space;   /* with ANALYSIS_NO_FILE; else 0 */
  uint64_t address; /* as the file is linked; for a file that is no ELF file or cannot be opened, the offset in it;
                       without a file, linear */
};

static inline bool analysis_location_is(const struct analysis_location *one, const struct analysis_location *other)
{
  return one->address == other->address && one->file == other->file && one->space == other->space;
}

/* The order of locations: by file, space and address. */
static inline int analysis_location_compare(const struct analysis_location *one, const struct analysis_location *other)
{
  if (one->file != other->file)
    return one->file < other->file ? -1 : 1;
  if (one->space != other->space)
    return one->space < other->space ? -1 : 1;
  return one->address < other->address ? -1 : one->address > other->address;
}

/* Takes the modules and code of a trace; other records do nothing. Returns 0, or -ENOMEM. */
int analysis_names_record(struct analysis_names *names, const struct lb_trace_record *record);

/* The generation of the mappings. The number changes whenever they change; results for linear addresses must then be
 * looked up again. Never 0. */
uint32_t analysis_names_generation(const struct analysis_names *names);

/* Would this record replace an existing mapping, so that linear addresses mean something else afterwards? (Counts by
 * linear address must be converted before that.) */
bool analysis_names_displaces(struct analysis_names *names, const struct lb_trace_record *record);

/* The location of a linear address, with the mappings as they are now. */
struct analysis_location analysis_names_locate(struct analysis_names *names, uint32_t space, uint64_t address);

/* The location of the target of a count that lb_trace_reader_counts gives. */
struct analysis_location analysis_names_target(struct analysis_names *names, const struct lb_trace_count *count);

/* The symbol there. Returns as analysis_names_find; with ANALYSIS_NO_FILE, false. Works for code that is not mapped any
 * more, too. */
bool analysis_names_symbol(struct analysis_names *names, const struct analysis_location *location,
                           struct analysis_name *ret_name);

/* The same with source lines and inlined functions (ret_place->frames; frame_count 0: not known). The first call for a
 * file is slow, because it reads the debug information. Strings are valid as long as `names`. Returns false, touching
 * nothing, if nothing at all is known. */
bool analysis_names_place(struct analysis_names *names, const struct analysis_location *location,
                          struct symbol_place *ret_place);

/* Only the file and the line of the code itself, which is many times faster. Returns false, touching nothing, if they
 * are not known. The string is valid as long as `names`. */
bool analysis_names_line(struct analysis_names *names, const struct analysis_location *location, const char **ret_file,
                         unsigned *ret_line);

/* The bytes of code there, from the trace itself if it has them, or from the file. Returns how many there are, at most
 * `size`. */
size_t analysis_names_code(struct analysis_names *names, const struct analysis_location *location, uint8_t *bytes,
                           size_t size);

/* The layout of a file: where its segments lie, and its build-id; NULL: it is no ELF file, or could not be opened. */
const struct symbol_layout *analysis_names_layout(const struct analysis_names *names, uint32_t file);

/* The stream's address space; UINT32_MAX for one that no record described. Taken from analysis_names_record. */
uint32_t analysis_names_space(const struct analysis_names *names, uint32_t stream);

#endif
