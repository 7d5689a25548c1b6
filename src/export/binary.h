/* SPDX-License-Identifier: Apache-2.0
 *
 * Code that the profiles of one binary share: those of BOLT, AutoFDO, llvm-profgen and gcc. All of them need straight
 * pieces of code with their counts, and taken branches, by addresses of that binary.
 */
#ifndef EXPORT_BINARY_H
#define EXPORT_BINARY_H

#include "export/export.h"

struct symbol_module;

/* A taken branch of which at least one end is in the binary. */
struct binary_branch {
  bool has_from, has_to; /* this end is in the binary */
  uint64_t from, to;     /* addresses as it is linked */
  uint8_t kind;
  uint64_t count;
  uint64_t call; /* of a return to the instruction after a call: the address of that call; otherwise 0 */
};

/* Is it a kind of near branch? A processor's branch records for a program hold only these. */
bool binary_kind_is_near(unsigned kind);

/* Callbacks of a walk over the counts, in the order of addresses. Return 0, or negative. */
struct binary_visitor {
  /* Instructions from `first` to the one at `last`. */
  int (*straight)(struct export_job *job, uint64_t first, uint64_t last, uint64_t count);
  /* A conditional branch at `from` that was not taken: `next` is the instruction after it. May be NULL. */
  int (*passed)(struct export_job *job, uint64_t from, uint64_t next, uint64_t count);
  /* The call at `from` returned to `next`, the instruction after it, as if execution had continued straight on. May be
   * NULL. */
  int (*returned)(struct export_job *job, uint64_t from, uint64_t next, uint64_t count);
  int (*branch)(struct export_job *job, const struct binary_branch *branch);
};

/* The first visits straight pieces and passed branches of the job's binary, which must have run; the second visits its
 * taken branches, and calls that were returned from. Taken branches must pass the job's filter. Everything else counts
 * as straight code and is visited if its first location passes. Return 0, LB_E_NO_ENTRY after export_fail, or what a
 * visitor returned. */
int binary_straights(struct export_job *job, const struct binary_visitor *visitor);
int binary_branches(struct export_job *job, const struct binary_visitor *visitor);

/* Finds the job's binary and opens its file, for symbols and lines. The file must be the one that ran. Returns 0, with
 * a module that is to be closed; LB_E_NO_ENTRY after export_fail; -ENOMEM. */
int binary_open(struct export_job *job, uint32_t *ret_file, struct symbol_module **ret_module);

/* Fails because nothing of the binary ran, or nothing that was asked for. Returns LB_E_NO_ENTRY, after export_fail. */
int binary_fail(struct export_job *job, uint32_t file);

/* Its path, to be printed. */
const char *binary_name(const struct export_job *job, uint32_t file);

/* The offset in its file of an address as it is linked. Returns false if it is not in the file. */
bool binary_offset(const struct export_job *job, uint32_t file, uint64_t address, uint64_t *ret_offset);

/* ---- numbers by pairs of addresses (binary_tally.c) ---- */

struct tally_item {
  uint64_t from, to, count;
};

/* Items that were added; after tally_finish, equal ones are summed up and sorted by `from` and `to`. */
struct tally {
  struct tally_item *items;
  size_t count, capacity;
};

int tally_add(struct tally *tally, uint64_t from, uint64_t to, uint64_t count); /* 0, or -ENOMEM */
void tally_finish(struct tally *tally);
/* The first item at or after `from`. */
size_t tally_seek(const struct tally *tally, uint64_t from);
void tally_done(struct tally *tally);

/* How often each instruction of the job's binary ran: `from` is its address, `to` 0. Returns as binary_straights. */
int binary_instructions(struct export_job *job, struct tally *tally);

/* ---- functions as BOLT sees them (binary_function.c) ---- */

struct binary_function {
  uint64_t start;
  uint64_t end;   /* according to its symbol */
  uint64_t limit; /* where the next function begins: BOLT counts the code in between as part of this one */
  char *name;     /* in BOLT's notation: local names have a number, "main.cold/1" */
};

struct binary_functions {
  struct binary_function *functions; /* by address */
  size_t count, capacity;
  struct tally entries; /* symbols inside of functions that others may jump to: `from` is the address */
};

/* The functions of the job's binary. Returns 0; LB_E_NO_ENTRY after export_fail: it is stripped; -ENOMEM. */
int binary_functions_read(struct export_job *job, struct binary_functions *functions);
void binary_functions_done(struct binary_functions *functions);

/* The one at an address, or NULL. */
const struct binary_function *binary_functions_find(const struct binary_functions *functions, uint64_t address);

#endif
