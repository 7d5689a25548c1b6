/* SPDX-License-Identifier: Apache-2.0
 *
 * What profiles of one binary share: BOLT's, AutoFDO's, llvm-profgen's, gcc's. All of them want straight pieces of code
 * with how often they ran, and taken branches, by addresses of that binary.
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
  uint64_t call; /* a return to behind the call that is here; 0: anything else */
};

/* Near branches, which is what a processor's branch records for a program hold. Returns false for the others. */
bool binary_kind_is_near(unsigned kind);

/* What a walk over the counts calls, in the order of addresses. Return 0, or negative. */
struct binary_visitor {
  /* Instructions from `first` to the one at `last`. */
  int (*straight)(struct export_job *job, uint64_t first, uint64_t last, uint64_t count);
  /* A conditional branch at `from` that was not taken: `next` is behind it. May be NULL. */
  int (*passed)(struct export_job *job, uint64_t from, uint64_t next, uint64_t count);
  /* The call at `from` was returned from, to `next` behind it: from there, as it were, one runs on. May be NULL. */
  int (*returned)(struct export_job *job, uint64_t from, uint64_t next, uint64_t count);
  int (*branch)(struct export_job *job, const struct binary_branch *branch);
};

/* Straight pieces and branches that were passed, of the job's binary, which must have run; then its branches, and calls
 * that were returned from. Branches are those that pass the job's filter; all others are pieces of straight code: they
 * are wanted if the place where they begin is. Return 0,
 * LB_E_NO_ENTRY after export_fail, or what a visitor returned. */
int binary_straights(struct export_job *job, const struct binary_visitor *visitor);
int binary_branches(struct export_job *job, const struct binary_visitor *visitor);

/* The job's binary and its file, opened: symbols, lines. It must be the one that ran. Returns 0, with a module that is
 * to be closed; LB_E_NO_ENTRY after export_fail; -ENOMEM. */
int binary_open(struct export_job *job, uint32_t *ret_file, struct symbol_module **ret_module);

/* Nothing of it ran, or nothing that was asked for. Returns LB_E_NO_ENTRY, after export_fail. */
int binary_fail(struct export_job *job, uint32_t file);

/* Its path, to be printed. */
const char *binary_name(const struct export_job *job, uint32_t file);

/* The offset in its file of an address as it is linked. Returns false if it is not in the file. */
bool binary_offset(const struct export_job *job, uint32_t file, uint64_t address, uint64_t *ret_offset);

/* ---- numbers by pairs of addresses (binary_tally.c) ---- */

struct tally_item {
  uint64_t from, to, count;
};

/* Sums of what was added, once it is finished, sorted by `from` and `to`. */
struct tally {
  struct tally_item *items;
  size_t count, capacity;
};

int tally_add(struct tally *tally, uint64_t from, uint64_t to, uint64_t count); /* 0, or -ENOMEM */
void tally_finish(struct tally *tally);
/* The first item at or behind `from`. */
size_t tally_seek(const struct tally *tally, uint64_t from);
void tally_done(struct tally *tally);

/* How often each instruction of the job's binary ran: `from` is its address, `to` 0. Returns as binary_straights. */
int binary_instructions(struct export_job *job, struct tally *tally);

/* ---- functions as BOLT sees them (binary_function.c) ---- */

struct binary_function {
  uint64_t start;
  uint64_t end;   /* of what the symbol says is its own */
  uint64_t limit; /* where the next one begins: BOLT takes what is between for a part of it */
  char *name;     /* in BOLT's way: local ones with their number, "main.cold/1" */
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
