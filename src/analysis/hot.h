/* SPDX-License-Identifier: Apache-2.0
 *
 * Where a program spends its instructions and which way its branches go: tables made of exact counts (counts.h).
 * Functions, modules, edges, conditional and indirect branches are made at once; lines of source, which take longer,
 * are made on request.
 */
#ifndef ANALYSIS_HOT_H
#define ANALYSIS_HOT_H

#include "analysis/counts.h"

struct analysis_hot;

/* The code that the tables cover; NULL: all. */
struct analysis_hot_filter {
  const char
    *function; /* as analysis_word_names. Edges pass if they begin or end in it, everything else if it lies in it */
  const char *module; /* as analysis_module_is; likewise */
};

/* The short name by which a person calls the function that is shown as `symbol`. */
struct analysis_spelling {
  const char *name; /* points into the symbol, after the return type */
  size_t length;    /* up to its parameters, or the mark of a copy ("f(int)", "f.cold"), */
  size_t bare;      /* or up to the arguments of a template ("f<int>") */
};

struct analysis_spelling analysis_symbol_spell(const char *symbol);

/* Is this the name of the symbol? A name matches with or without its parameters ("f" for "f(int)"), for an instance of
 * a template ("f" and "f<int>" for "void f<int>(int)"), for copies that a compiler made ("f" for "f.cold", "f.part.0"),
 * and as the file has it (`mangled`, may be NULL). */
bool analysis_symbol_is(const char *symbol, const char *mangled, const char *name);

/* Is this the name of a module: the last part of its path, or all of it? It may be a pattern as those of a shell; only
 * one with a '/' is compared with the whole path. */
bool analysis_module_is(const struct analysis_names *names, uint32_t file, const char *name);

/* Was such a module mapped, as far as the trace has been read? */
bool analysis_module_is_mapped(const struct analysis_names *names, const char *name);

/* `names`, `code` and `counts` must stay valid; `filter` may be NULL. Returns 0, or -ENOMEM. */
int analysis_hot_new(struct analysis_names *names, struct analysis_code *code, const struct analysis_counts *counts,
                     const struct analysis_hot_filter *filter, struct analysis_hot **ret_hot);
void analysis_hot_free(struct analysis_hot *hot); /* takes NULL */

/* ---- rows ---- */

/* A function as extent.h has it: code without a symbol (symbol NULL) may be in no file (module NULL). */
struct analysis_hot_function {
  const char *symbol, *mangled, *module;
  uint32_t file, space;  /* as of a location */
  uint64_t start, size;  /* as its file is linked; for a guess, the size is that of the code that ran */
  uint64_t instructions; /* that ran in it, without its callees; as far as known */
  uint64_t taken;        /* branches in it, */
  uint64_t passed;       /* and conditional ones that were not taken */
  uint64_t calls;        /* calls and events that lead into it, and jumps from elsewhere to its start */
  uint8_t source;        /* enum analysis_extent_source */
  bool has_unknown;      /* some of its code is not known: `instructions` is too low */
};

struct analysis_hot_module {
  const char *module; /* NULL: code that lies in no file */
  uint32_t file;
  uint64_t instructions, taken, passed;
  uint64_t entries; /* branches that lead into it from elsewhere */
};

/* A conditional branch. */
struct analysis_hot_branch {
  struct analysis_location from, to; /* `to`.address 0: it was never taken */
  uint64_t taken, passed;
  bool has_unknown; /* some code of its function is not known: `passed` is too low */
};

/* An indirect jump or call. Its targets, most frequent first. */
struct analysis_hot_indirect {
  struct analysis_location from;
  uint8_t kind; /* enum lb_branch_kind */
  uint64_t count;
  const struct analysis_jump *const *targets;
  size_t target_count;
};

/* A line of source. A line whose code was inlined at several places has one row. */
struct analysis_hot_line {
  const char *file;     /* path */
  const char *function; /* that the line is in; NULL: not known */
  const char *module;   /* where its code lies; of several, the first */
  unsigned line;        /* 0: code of the function that has no line */
  uint64_t executed; /* how often it ran: the count of its most frequent instruction, the copies of an inlined function
                        added up */
  uint64_t instructions; /* that ran for it */
  uint64_t taken, passed;
  bool is_inlined; /* some of it is inlined into another function */
};

/* All rows, in the order of the last analysis_hot_sort. Valid until the next one, or until analysis_hot_free. */
const struct analysis_hot_function *analysis_hot_functions(const struct analysis_hot *hot, size_t *ret_count);
const struct analysis_hot_module *analysis_hot_modules(const struct analysis_hot *hot, size_t *ret_count);
const struct analysis_jump *const *analysis_hot_edges(const struct analysis_hot *hot, size_t *ret_count);
const struct analysis_hot_branch *analysis_hot_branches(const struct analysis_hot *hot, size_t *ret_count);
const struct analysis_hot_indirect *analysis_hot_indirects(const struct analysis_hot *hot, size_t *ret_count);

/* Makes the table of lines. Returns 0, or -ENOMEM. */
int analysis_hot_read_lines(struct analysis_hot *hot);
const struct analysis_hot_line *analysis_hot_lines(const struct analysis_hot *hot, size_t *ret_count);
/* Number of instructions that ran and belong to no known line. */
uint64_t analysis_hot_without_line(const struct analysis_hot *hot);

/* ---- order ---- */

enum analysis_hot_table {
  ANALYSIS_HOT_FUNCTION,
  ANALYSIS_HOT_LINE,
  ANALYSIS_HOT_EDGE,
  ANALYSIS_HOT_BRANCH,
  ANALYSIS_HOT_INDIRECT,
  ANALYSIS_HOT_MODULE,
};

enum analysis_hot_order {
  ANALYSIS_HOT_BY_INSTRUCTIONS,
  ANALYSIS_HOT_BY_TAKEN,
  ANALYSIS_HOT_BY_PASSED,
  ANALYSIS_HOT_BY_CALLS,   /* of a module: entries */
  ANALYSIS_HOT_BY_COUNT,   /* of a conditional branch: taken and passed; of a line: executed */
  ANALYSIS_HOT_BY_RATE,    /* of being taken */
  ANALYSIS_HOT_BY_TARGETS, /* how many there are */
  ANALYSIS_HOT_BY_NAME,    /* in alphabetical order; rows with addresses are sorted by address */
  ANALYSIS_HOT_ORDERS,
};

/* "instructions", "taken", ...; NULL past the last. */
const char *analysis_hot_order_name(unsigned order);

/* Does this order mean something for this table? */
bool analysis_hot_can_sort(enum analysis_hot_table table, enum analysis_hot_order order);

/* Sorts a table: the greatest first. Equal rows stay in the order of their names or addresses. */
void analysis_hot_sort(struct analysis_hot *hot, enum analysis_hot_table table, enum analysis_hot_order order);

/* ---- every instruction ---- */

struct analysis_ran {
  struct analysis_location at;
  uint8_t length;
  uint64_t executed;
};

typedef int analysis_ran_function(void *data, const struct analysis_ran *ran); /* 0, or negative to stop */

/* Gives each instruction of some blocks once, with how often it ran, by file, space and address. The blocks are sorted
 * as analysis_counts_blocks has them. Blocks whose instructions are not known are left out; so is the rest of a block
 * whose bytes have changed since it was counted. Returns 0, what the function returned, or -ENOMEM. */
int analysis_blocks_walk(struct analysis_code *code, const struct analysis_block *blocks, size_t count,
                         analysis_ran_function *function, void *data);

#endif
