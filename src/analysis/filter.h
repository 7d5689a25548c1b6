/* SPDX-License-Identifier: Apache-2.0
 *
 * Selects branches of a trace by their kind and by the location of their ends. For all code that takes the branches of
 * a trace in order.
 */
#ifndef ANALYSIS_FILTER_H
#define ANALYSIS_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lastbranch/trace.h"

struct analysis_block;
struct analysis_jump;
struct analysis_location;
struct analysis_names;

/* A place as a user names it: of a function, of a module, of a line of source, or linear addresses. */
struct analysis_target {
  const char *symbol;   /* NULL: addresses. Else as `functions` below */
  const char *inner;    /* not NULL: `symbol` may be MODULE:NAME, and this is the name */
  const char *source;   /* not NULL: a source file, by its path or the end of it, */
  unsigned line;        /* and a line of it */
  bool is_offset;       /* `symbol` is followed by an offset, and may also be a module: MODULE or [MODULE] */
  uint64_t first, last; /* inclusive: addresses, offsets from the symbol, or addresses as the module is linked */
};

/* Parses one of these forms; `word` is modified: ADDRESS, ADDRESS..ADDRESS, NAME, NAME+OFFSET, MODULE:NAME,
 * MODULE+ADDRESS, [MODULE]+ADDRESS, MODULE:0xADDRESS, FILE:LINE; ANALYSIS_EXTENT_GUESS may follow it. Returns 0;
 * LB_E_BAD_SYNTAX for an empty word; -ERANGE for a range that ends before it begins. */
int analysis_target_parse(char *word, struct analysis_target *ret_target);

struct analysis_extent;

/* Is the target this function, or a place in it? Addresses are linear, with the mappings as they are now; where nothing
 * is mapped, they are addresses of files as linked. A range counts by its first address. */
bool analysis_target_names(const struct analysis_target *target, struct analysis_names *names,
                           const struct analysis_extent *extent);

/* The same for a word that was not parsed yet; a word that cannot be parsed names nothing. */
bool analysis_word_names(const char *word, struct analysis_names *names, const struct analysis_extent *extent);

/* Is the word more than a name or a pattern of names? */
bool analysis_word_is_place(const char *word);

/* Is the target an address in this module? */
bool analysis_target_is_module(const struct analysis_target *target, const char *module);

/* Does the code at a location come from the line of the target? The target must have a line. */
bool analysis_target_is_line(const struct analysis_target *target, struct analysis_names *names,
                             const struct analysis_location *location);

/* Strings and arrays must stay valid as long as the filter. Each member that is set is a condition, and all conditions
 * must be met. A condition with several values is met by any of them. */
struct analysis_filter_options {
  uint32_t kinds;             /* a bit 1 << enum lb_branch_kind for each; 0: all */
  const char *const *modules; /* a branch that begins or ends in one of them: last part of the file's name, or all */
  size_t module_count;        /* 0: any */
  /* A branch that begins or ends in one of them. All names may be patterns as those of a shell. A C++ function is found
   * by its name with arguments, without, and as its file has it. */
  const char *const *functions;
  size_t function_count;
  const struct analysis_target *from, *to;
  size_t from_count, to_count;
};

/* Does it let every branch pass? */
bool analysis_filter_is_empty(const struct analysis_filter_options *options);

/* Does it use names? If so, nothing passes without names (analysis_names of NULL). */
bool analysis_filter_needs_names(const struct analysis_filter_options *options);

/* Does it ask for regions of code and nothing else: for modules, or for functions? Then every branch that begins or
 * ends there passes. */
bool analysis_filter_is_region(const struct analysis_filter_options *options);

/* Does it ask for functions by places in them? The names must then learn first where functions begin
 * (analysis_starts_read). */
bool analysis_filter_needs_starts(const struct analysis_filter_options *options);

struct analysis_filter;

/* `names`, which may be NULL, must stay valid; the caller passes the modules to it. Returns 0, or -ENOMEM. */
int analysis_filter_new(const struct analysis_filter_options *options, struct analysis_names *names,
                        struct analysis_filter **ret_filter);
void analysis_filter_free(struct analysis_filter *filter); /* takes NULL */

/* Takes note of streams and modules; other records do nothing. Returns 0, or -ENOMEM. */
int analysis_filter_record(struct analysis_filter *filter, const struct lb_trace_record *record);

/* Selects the wanted branches among at most LB_TRACE_BATCH_MAX: gives their indices in the array, in order. Returns how
 * many there are. */
size_t analysis_filter_branches(struct analysis_filter *filter, const struct lb_trace_branches *branches,
                                uint16_t places[LB_TRACE_BATCH_MAX]);

/* Is a linear address in one of the modules and in one of the functions? If the filter names none, every address is. */
bool analysis_filter_address(struct analysis_filter *filter, uint32_t space, uint64_t address);

/* The same for counts by location, with a filter that is used for nothing else: addresses of `from` and `to` are then
 * those of the locations. analysis_filter_file returns whether the file is one of the filter's modules, and
 * analysis_filter_function whether the location is in one of its functions. A filter without modules or without
 * functions accepts all of them. analysis_filter_block tests only these two conditions, for the first location of the
 * block: the other conditions are about branches. */
bool analysis_filter_file(const struct analysis_filter *filter, uint32_t file);
bool analysis_filter_function(struct analysis_filter *filter, const struct analysis_location *location);
bool analysis_filter_block(struct analysis_filter *filter, const struct analysis_block *block);
bool analysis_filter_location(struct analysis_filter *filter, const struct analysis_location *location); /* likewise */
bool analysis_filter_jump(struct analysis_filter *filter, const struct analysis_jump *jump);

/* Is this linear address in the target, with the mappings as they are now? */
bool analysis_target_has(const struct analysis_target *target, struct analysis_names *names, uint32_t space,
                         uint64_t address);

/* Does this branch, which leads to the target, enter it? Only the start of a function has a further condition: a jump
 * there from the same function is a loop and does not enter it. */
bool analysis_target_is_entered(const struct analysis_target *target, struct analysis_names *names, uint32_t space,
                                const struct lb_branch *branch);

#endif
